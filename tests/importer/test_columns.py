"""Which column is what: synonyms, flags, the mapping file, and refusals where it is in doubt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import ImportProblem
from convergebench.importer.columns import SYNONYMS, find_columns, our_metric, read_mapping
from convergebench.importer.found import Track, Wishes
from tests.importer.tables import HEAD, read, told, values, write


def test_rounds_become_even_steps_and_the_steps_between_are_there(tmp_path: Path) -> None:
    finds = read(write(tmp_path, HEAD + "a,x.jpg,hat,1,30,0.9\na,x.jpg,hat,2,29,0.8\n"))
    track = Track("x", "hat", "a")
    assert values(finds) == {
        (track, 2, "psnr"): 30.0,
        (track, 4, "psnr"): 29.0,
        (track, 2, "ssim"): 0.9,
        (track, 4, "ssim"): 0.8,
    }
    assert [(f.step, f.outcome, f.place) for f in finds.frames] == [
        (step, "reported", None) for step in (1, 2, 3, 4)
    ]
    assert finds.cycles["hat"].kind == "round-trip"
    assert finds.cycles["hat"].prompts == ()
    assert "round-trip" in told(finds, "column of rounds")
    assert {score.note for score in finds.scores} == {"column psnr", "column ssim"}


def test_steps_are_steps_of_a_replication_unless_the_user_says_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path, "Method,Filename,Iteration,PSNR (dB) ↑,NIQE\nb,y.png,3,20,4\n")
    finds = read(path)
    assert {(s.step, s.metric, s.against) for s in finds.scores} == {
        (3, "psnr", "home"),
        (3, "niqe", "none"),
    }
    assert [(f.step, f.outcome) for f in finds.frames] == [
        (1, "missing"), (2, "missing"), (3, "reported")
    ]  # fmt: skip
    assert finds.cycles["replicate"].kind == "replicate"
    assert told(finds, "No column names the cycles")
    assert "2 steps" in told(finds, "no row")
    crossed = read(path, kind="cross", cycle="both", columns={"round": "Iteration"})
    assert {s.step for s in crossed.scores} == {12}
    assert crossed.cycles["both"].kind == "cross"


def test_the_even_steps_alone_make_a_whole_round_trip(tmp_path: Path) -> None:
    path = write(tmp_path, "model,image,step,psnr\na,x,2,30\na,x,4,29\na,x,8,28\n")
    finds = read(path, kind="round-trip")
    assert [f.outcome for f in finds.frames] == ["reported"] * 4 + ["missing"] * 2 + [
        "reported"
    ] * 2


@pytest.mark.parametrize(("field", "words"), [(f, w) for f, w in SYNONYMS.items()])
def test_every_synonym_is_found_whatever_its_spelling(field: str, words: tuple[str, ...]) -> None:
    for word in words:
        column = word.replace("_", " ").title()
        base = {"editor": "model", "source": "image", "step": "step", "metric": "metric",
                "value": "value"}  # fmt: skip
        if field == "round":
            del base["step"]
        header = [name for key, name in base.items() if key != field] + [column, "psnr"]
        if field in ("metric", "value", "against"):
            header.remove("psnr")
        else:
            header = [name for name in header if name not in ("metric", "value")]
        assert find_columns(header, Wishes()).fields[field] == column


def test_seed_is_no_repeat_and_a_text_score_is_no_clip() -> None:
    found = find_columns(["model", "image", "step", "seed", "clip_score", "psnr"], Wishes())
    assert found.unused == ("seed", "clip_score")
    names = ("clip_similarity", "CLIP-I", "LPIPS↓", "ms_ssim", "MS-SSIM", "lpips_alex", "fid")
    ours = [our_metric(name) for name in names]
    assert ours == ["clip", "clip", "lpips", "ms-ssim", "ms-ssim", "lpips", None]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("model,method,image,round,psnr", r"'model', 'method' could all be the editor.*--column"),
        ("model,image,round,step,psnr", r"'round' \(round\) and 'step' \(step\) both"),
        ("model,image,round,psnr,PSNR (dB)", r"could all be psnr.*--metric psnr="),
        ("model,image,psnr", r"no column says where in its chain.*'model', 'image', 'psnr'"),
        ("image,round,psnr", r"which editor a row is of.*--column editor=.*--editor NAME"),
        ("model,round,psnr", r"which source a row is of.*--source NAME"),
        ("model,image,round,colour", r"no column is a metric.*'colour'"),
        ("model,image,round,metric,value,psnr", r"metric and value columns.*'psnr'.*--drop"),
        ("model,image,round,psnr,psnr", r"several columns called 'psnr'"),
    ],
)
def test_doubt_is_refused_with_the_flag_that_settles_it(
    tmp_path: Path, header: str, message: str
) -> None:
    row = ",".join("1" for _ in header.split(","))
    with pytest.raises(ImportProblem, match=message):
        read(write(tmp_path, f"{header}\n{row}\n"))


def test_flags_settle_doubt_and_unused_columns_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, "model,method,image,round,psnr,PSNR (dB),colour\na,b,x,1,30,31,red\n")
    chosen = read(path, columns={"editor": "method"}, metrics={"psnr": "PSNR (dB)"})
    assert values(chosen) == {(Track("x", "round-trip", "b"), 2, "psnr"): 31.0}
    assert told(chosen, "not read") == "Columns not read: 'model', 'psnr', 'colour'."
    other = find_columns(["model", "image", "step", "ssim"], Wishes(metrics={"ssim-rgb": "ssim"}))
    assert other.metrics == {"ssim-rgb": "ssim"}, "a column is read once"
    dropped = read(path, drop=("method", "PSNR (dB)"))
    assert values(dropped) == {(Track("x", "round-trip", "a"), 2, "psnr"): 30.0}


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"columns": {"edittor": "model"}}, "no field called 'edittor'. Did you mean editor"),
        ({"columns": {"editor": "modle"}}, "'modle', which the table has not. Did you mean model"),
        ({"metrics": {"lpips": "pips"}}, "metric lpips is to be read from column 'pips'"),
        ({"drop": ("imag",)}, "no column 'imag' to leave out. Did you mean image"),
        ({"drop": ("psnr",), "metrics": {"psnr": "psnr"}}, "both asked for and left out"),
        ({"columns": {"value": "psnr"}}, "takes both a metric and a value column"),
        ({"floors": {"ssim": math.nan}}, "floor of ssim must be a finite number"),
    ],
)
def test_wrong_wishes_are_refused(tmp_path: Path, wishes: dict[str, Any], message: str) -> None:
    with pytest.raises(ImportProblem, match=message):
        read(write(tmp_path, HEAD + "a,x,hat,1,30,0.9\n"), **wishes)


def test_names_given_by_the_user_fill_what_the_table_leaves_open(tmp_path: Path) -> None:
    finds = read(
        write(tmp_path, "round,psnr,my_dino\n1,30,0.5\n"),
        editor="e",
        source="s",
        cycle="c",
        metrics={"dino": "my_dino"},
        floors={"SSIM": 0.1, "dino": 0.2},
        prompts=("add a hat", "remove it"),
    )
    track = Track("s", "c", "e")
    assert values(finds) == {(track, 2, "psnr"): 30.0, (track, 2, "dino"): 0.5}
    assert "none of ours" in told(finds, "'dino'")
    assert finds.floors == {"ssim": 0.1, "dino": 0.2}
    assert finds.cycles["c"].prompts == ("add a hat", "remove it")


def test_sources_lose_folder_and_ending_only_while_they_stay_different(tmp_path: Path) -> None:
    def sources(*names: str) -> list[str]:
        text = "model,image,round,psnr\n" + "".join(f"a,{name},1,30\n" for name in names)
        return [score.track.source for score in read(write(tmp_path, text)).scores]

    assert sources("in/x.jpg", "in/y.v2.png", "z.v3") == ["x", "y.v2", "z.v3"]
    assert sources("in/x.jpg", "out/x.jpg") == ["in/x", "out/x"]
    assert sources("x.jpg", "x.png") == ["x.jpg", "x.png"]


def test_prompts_of_steps_are_kept_and_those_of_rounds_are_not(tmp_path: Path) -> None:
    rows = "a,x,1,copy,30\na,x,2,copy,29\n"
    steps = read(write(tmp_path, "model,image,step,prompt,psnr\n" + rows))
    assert [frame.prompt for frame in steps.frames] == ["copy", "copy"]
    assert steps.cycles["replicate"].prompts == ("copy",)
    rounds = read(write(tmp_path, "model,image,round,prompt,psnr\n" + rows))
    assert {frame.prompt for frame in rounds.frames} == {None}
    assert "several edits" in told(rounds, "is not read")


def test_kinds_may_differ_by_cycle_and_must_not_within_one(tmp_path: Path) -> None:
    head = "model,image,edit,kind,round,psnr\n"
    finds = read(write(tmp_path, head + "a,x,hat,Round_Trip,1,30\na,x,copy,replication,1,29\n"))
    assert {(s.track.cycle, s.step) for s in finds.scores} == {("hat", 2), ("copy", 1)}
    with pytest.raises(ImportProblem, match=r"'hat' is of kind 'cross' in one row and of 'free'"):
        read(write(tmp_path, head + "a,x,hat,cross,1,30\na,x,hat,free,2,29\n"))
    with pytest.raises(ImportProblem, match=r"kind 'zigzag'; the kinds are round-trip"):
        read(write(tmp_path, head + "a,x,hat,zigzag,1,30\n"))


# -- the mapping file -------------------------------------------------------------------------


def test_mapping_file_says_what_columns_are(tmp_path: Path) -> None:
    mapping = write(
        tmp_path,
        'editor = "mine"\nkind = "cross"\ndrop = ["junk"]\nfirst = 1\nconflicts = "repeat"\n'
        '[columns]\nsource = "what"\nround = "lap"\n[metrics]\nssim-uniform = "S"\n'
        "[floors]\nssim = 0.25\n",
        "map.toml",
    )
    wishes = read_mapping(mapping)
    assert wishes == {
        "editor": "mine",
        "kind": "cross",
        "drop": ("junk",),
        "first": 1,
        "conflicts": "repeat",
        "columns": {"source": "what", "round": "lap"},
        "metrics": {"ssim-uniform": "S"},
        "floors": {"ssim": 0.25},
    }
    finds = read(write(tmp_path, "what,lap,S,junk\nx,2,0.5,1\n"), **wishes)
    assert values(finds) == {(Track("x", "cross", "mine"), 4, "ssim-uniform"): 0.5}
    assert finds.floors == {"ssim": 0.25}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('metric = "psnr"', r"there is no key 'metric'. Did you mean metrics"),
        ('[columns]\nsorce = "x"', r"no field called 'sorce'. Did you mean source"),
        ('kind = "zigzag"', r"kind"),
        ("columns = 3", r"columns"),
        ("editor = ", r"not valid TOML"),
    ],
)
def test_wrong_mapping_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ImportProblem, match=message):
        read_mapping(write(tmp_path, text, "map.toml"))


def test_missing_mapping_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ImportProblem, match=r"cannot read .*No such file"):
        read_mapping(tmp_path / "map.toml")
