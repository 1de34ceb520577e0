"""Submissions and the leaderboard's site."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from convergebench import leaderboard
from convergebench.errors import InputError, SettingsError, StoreError, StoreMismatch
from convergebench.runner import run
from convergebench.scorer import score
from tests.support.bundles import tree
from tests.support.runs import write_suite

COPY = """
[[cycle]]
name = "copy"
kind = "replicate"
[[cycle.edit]]
prompt = "Copy the <b>picture</b>."
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two scored runs of one suite, and one of another version of it."""
    place = tmp_path_factory.mktemp("runs")
    suite = write_suite(place / "suite", 3, cycles=COPY, size=32)
    other = write_suite(place / "other", 3, cycles=COPY, size=32)
    other.write_text(other.read_text().replace("version = 1", "version = 2", 1))
    for name, path, editor in (
        ("january", suite, "ref:blur"),
        ("february", suite, "ref:noise"),
        ("later", other, "ref:tint"),
    ):
        spec = {"suite": str(path), "editors": (editor,), "rounds": 2}
        run(place / name, spec)
        score(place / name, ["psnr", "ssim"], workers=1)
    return {name: place / name for name in ("january", "february", "later")}


@pytest.fixture
def packed(runs: dict[str, Path], tmp_path: Path) -> Path:
    return leaderboard.pack(runs["january"], tmp_path / "sent", by="A. Lab").path


def change(path: Path, **told: Any) -> None:
    file = path / "submission.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **told}))


def test_a_submission_has_no_picture_and_can_be_recomputed(packed: Path) -> None:
    checked = leaderboard.check(packed)
    assert checked.sound
    assert checked.submission.by == "A. Lab"
    assert not [name for name in tree(packed) if name.startswith("frames/")]
    assert "sessions.jsonl" not in tree(packed)
    scores = {claim.editor: claim.score for claim in checked.submission.editors}
    assert scores["ref:identity"] == pytest.approx(1)
    assert 0 < (scores["ref:blur"] or 0) < 1


def test_packing_again_replaces_and_gives_the_same_but_for_the_time(
    runs: dict[str, Path], packed: Path
) -> None:
    before = tree(packed)
    again = leaderboard.pack(runs["january"], packed.parent, by="A. Lab")
    assert again.path == packed
    after = tree(packed)
    assert before.keys() == after.keys()
    assert {n for n in before if before[n] != after[n]} <= {"submission.json"}


def test_a_submission_is_not_packed_over_anything_else(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match="not a submission"):
        leaderboard.pack(runs["january"], runs["january"].parent, by="Me")
    assert (runs["january"] / "run.json").exists()
    (tmp_path / "january").mkdir()
    (tmp_path / "january" / "submission.json").write_text("{}")
    (tmp_path / "january" / "thesis.txt").write_text("years")
    with pytest.raises(StoreError, match="not a submission"):
        leaderboard.pack(runs["january"], tmp_path, by="Me")
    assert (tmp_path / "january" / "thesis.txt").read_text() == "years"


@pytest.mark.parametrize(
    ("told", "match"),
    [({"by": ""}, "by: "), ({"by": "Me", "frames": "file:///etc"}, "frames: "),
     ({"by": "Me", "notes": "x" * 2001}, "notes: ")],
)  # fmt: skip
def test_what_is_told_must_be_legal(
    runs: dict[str, Path], tmp_path: Path, told: dict[str, str], match: str
) -> None:
    with pytest.raises(SettingsError, match=match):
        leaderboard.pack(runs["january"], tmp_path, **told)
    assert not list(tmp_path.iterdir())


def test_an_altered_file_a_missing_one_and_a_stranger_are_named(packed: Path) -> None:
    (packed / "suite.json").write_text((packed / "suite.json").read_text() + " ")
    chain = next((packed / "chains").rglob("*.jsonl"))
    chain.unlink()
    (packed / "extra.exe").write_bytes(b"MZ")
    problems = " ".join(leaderboard.check(packed).problems)
    assert "suite.json: is" in problems
    assert f"{chain.name}: No such file" in problems
    assert "files that it does not name: extra.exe" in problems


def test_a_claim_that_the_scores_do_not_bear_out_is_named(packed: Path) -> None:
    claims = json.loads((packed / "submission.json").read_text())["editors"]
    mine = next(claim for claim in claims if claim["editor"] == "ref:blur")
    true = mine["score"]
    mine["score"] = 0.99
    change(packed, editors=claims)
    (problem,) = leaderboard.check(packed).problems
    assert problem == f"ref:blur: claims score 0.99, recomputed it is {true}"


def test_a_submission_cannot_name_files_elsewhere(packed: Path) -> None:
    files = json.loads((packed / "submission.json").read_text())["files"]
    change(packed, files=[*files, {"path": "../../secret", "bytes": 1, "sha256": "0" * 64}])
    assert (
        "../../secret: no submission has a file of this name" in leaderboard.check(packed).problems
    )


def test_what_is_no_submission_is_refused_in_a_sentence(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a submission"):
        leaderboard.check(tmp_path)
    change(packed, by=7, unknown=1)
    with pytest.raises(InputError, match=r"does not follow the schema: .*by"):
        leaderboard.check(packed)


def test_the_schema_describes_what_is_written(packed: Path) -> None:
    told = json.loads((packed / "submission.json").read_text())
    schema = leaderboard.schema()
    assert set(told) == set(schema["properties"])
    assert set(schema["required"]) <= set(told)
    assert schema["additionalProperties"] is False


def test_runs_and_submissions_are_merged_into_one_site(
    runs: dict[str, Path], packed: Path, tmp_path: Path
) -> None:
    made = leaderboard.build([packed, runs["february"]], tmp_path / "site", by="B & <i>Co</i>")
    assert {s.editor for s in made.findings.standings} >= {"ref:blur", "ref:noise", "ref:random"}
    page = (tmp_path / "site" / "index.html").read_text()
    assert "B &amp; &lt;i&gt;Co&lt;/i&gt;" in page
    assert "<i>Co" not in page
    for standing in made.findings.standings:
        if standing.score is not None:
            assert f"{standing.score:.3f}" in page
    rows = list(csv.DictReader((tmp_path / "site" / "leaderboard.csv").read_text().splitlines()))
    assert [row["editor"] for row in rows] == [s.editor for s in made.findings.standings]
    assert [float(r["score"]) for r in rows if r["score"]] == [
        s.score for s in made.findings.standings if s.score is not None
    ]
    assert (tmp_path / "site" / "report" / "index.html").exists()
    for name in ("january", "february"):
        assert leaderboard.check(tmp_path / "site" / "submissions" / name).sound


def test_a_site_can_be_built_again_from_its_own_submissions(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    site = tmp_path / "site"
    first = leaderboard.build([runs["january"], runs["february"]], site, by="Us")
    own = sorted((site / "submissions").iterdir())
    again = leaderboard.build(own, site)
    assert [s.score for s in again.findings.standings] == [
        s.score for s in first.findings.standings
    ]
    alone = leaderboard.build(own[:1], site)
    assert "ref:noise" in {s.editor for s in alone.findings.standings}


def test_other_suites_and_versions_are_refused_with_the_reason(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(StoreMismatch, match=r"tiny@1, .* of tiny@2: a leaderboard is of one"):
        leaderboard.build([runs["january"], runs["later"]], tmp_path / "site", by="Us")
    copy = tmp_path / "forged"
    shutil.copytree(runs["later"], copy)
    for name in ("run.json", "suite.json"):
        text = (copy / name).read_text().replace("tiny@2", "tiny@1")
        (copy / name).write_text(
            text.replace('"version": 2', '"version": 1', 1).replace("Copy the", "Copy this")
        )
    with pytest.raises(StoreMismatch, match="changed without a new version"):
        leaderboard.build([runs["january"], copy], tmp_path / "site", by="Us")
    assert not (tmp_path / "site").exists()


def test_a_build_refuses_what_is_not_sound_and_leaves_foreign_folders_alone(
    runs: dict[str, Path], packed: Path, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="--by NAME"):
        leaderboard.build([runs["january"]], tmp_path / "site")
    with pytest.raises(SettingsError, match="at least one"):
        leaderboard.build([], tmp_path / "site")
    with pytest.raises(InputError, match="two submissions are called 'january'"):
        leaderboard.build([packed, runs["january"]], tmp_path / "site", by="Us")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("x")
    with pytest.raises(StoreError, match="not a leaderboard"):
        leaderboard.build([packed], tmp_path / "mine")
    (packed / "suite.json").unlink()
    with pytest.raises(InputError, match="is not sound"):
        leaderboard.build([packed], tmp_path / "site2")
