"""A dataset becomes the run it was made from: chains, records, frames, suite and scores."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from convergebench.chain import Call, Chain, Outcome, Settings, Step
from convergebench.dataset import export
from convergebench.errors import ConvergeBenchError, ImportProblem, InputError
from convergebench.importer import import_run
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.scoretable import SCORE_COLUMNS
from convergebench.store import RunStore
from convergebench.verifier import verify
from tests.dataset.made import SUITE, Made, Walk, jpeg, make_run, odd_run, png
from tests.support.runs import write_suite

words = st.text(st.characters(codec="utf-8", exclude_characters="/\\~:"), max_size=12)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
dicts = st.dictionaries(words, plain, max_size=2)
calls = st.builds(
    Call,
    model=st.none() | words,
    request_id=st.none() | words,
    effective_prompt=st.none() | words,
    parameters=dicts,
    usage=dicts,
    cost=st.none() | st.floats(0, 10),
    basis=st.sampled_from(["", "reported", "usage", "rule", "assumed"]),
    reasoning=st.none() | words,
    caveats=st.lists(words, max_size=2).map(tuple),
    size=st.none() | words,
    format=st.none() | words,
    session=dicts,
    task=dicts,
    latency=st.none() | st.floats(0, 99),
    ledger=words,
)
PICTURES = [png(1), png(2), jpeg(3), png(4, 16)]


@st.composite
def steps(draw: st.DrawFn) -> Made:
    outcome = draw(st.sampled_from(get_args(Outcome)))
    data = None
    if outcome == "edited":
        data = draw(st.sampled_from(PICTURES))
    elif outcome == "malformed":
        data = draw(st.binary(max_size=40))
    more = {
        "prompt": draw(words),
        "inputs": tuple(draw(st.lists(words, max_size=2))),
        "seed": draw(st.none() | st.integers()),
        "detail": draw(words),
        "attempts": draw(st.integers(0, 2**40)),
        "call": draw(calls),
        "started": draw(words),
        "seconds": draw(st.floats(0, 1e6)),
        "again": draw(st.booleans()),
    }
    return Made(draw(st.integers(1, 6)), outcome, data, more)


walks = st.builds(
    Walk,
    source=st.sampled_from([s.name for s in SUITE.source]),
    cycle=st.sampled_from([f"{c.name}@1" for c in SUITE.cycle]),
    editor=words,
    settings=st.builds(
        Settings,
        phrasing=st.integers(0, 5),
        seed=st.sampled_from(["none", "fixed", "per-step"]),
        temperature=st.none() | st.floats(0, 2),
        session=st.sampled_from(["stateless", "chat"]),
    ),
    repeat=st.integers(0, 9),
    version=words,
    first=st.none() | st.sampled_from(PICTURES),
    truth=st.none() | st.sampled_from(PICTURES),
    steps=st.lists(steps(), max_size=5),
)
rows = st.lists(
    st.tuples(
        words, st.integers(0, 9), words, words, words, words, st.none() | st.floats(), words
    ),
    max_size=6,
    unique_by=lambda row: row[:6],
)  # fmt: skip


def published(step: Step) -> Step:
    """A record as a dataset keeps it."""
    call = step.call.model_copy(update={"session": {}, "task": {}, "ledger": ""})
    return step.model_copy(update={"call": call})


def content(path: Path) -> dict[str, Any]:
    """All of a run that a dataset keeps."""
    store = RunStore.open(path)
    chains = store.chains()
    named = {store.frame_path(r) for c in chains for r in [c.source, c.truth] if r}
    named |= {store.frame_path(s.frame) for c in chains for s in c.steps if s.frame}
    return {
        "info": store.info,
        "suite": store.suite,
        "sources": store.read_json("sources.json"),
        "chains": {c.key.id: _kept(c) for c in chains},
        "frames": {p.name: p.read_bytes() for p in sorted(named)},
        "scores": [repr(row) for row in store.scores().sort(list(SCORE_COLUMNS)).rows()],
    }


def _kept(chain: Chain) -> Any:
    head = (chain.key, chain.editor_version, chain.source, chain.truth)
    return head, tuple(map(published, chain.steps))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    made=st.lists(walks, min_size=1, max_size=3, unique_by=lambda w: (w.source, w.editor)),
    scores=rows,
    form=st.sampled_from(["parquet", "webdataset", "both"]),
)
def test_any_run_comes_back_as_it_was(made: list[Walk], scores: list[Any], form: str) -> None:
    with TemporaryDirectory() as place:
        here = Path(place)
        make_run(here / "run", made, scores)
        result = export(here / "run", here / "out", form=form)
        assert result.cleaned == 0
        import_run(here / "out", here / "back")
        assert content(here / "back") == content(here / "run")
        export(here / "back", here / "again", form=form, name="out")
        assert sums(here / "again") == sums(here / "out"), "and the same dataset again"


def sums(out: Path) -> str:
    return (out / "SHA256SUMS").read_text()


@pytest.mark.parametrize("form", ["parquet", "webdataset"])
def test_a_real_run_comes_back_sound_and_goes_on(tmp_path: Path, form: str) -> None:
    suite = write_suite(tmp_path / "suite")
    wanted = {"suite": str(suite), "editors": ["ref:jpeg", "ref:noise,sigma=4"], "steps": 2}
    run(tmp_path / "run", wanted)
    score(tmp_path / "run", ["psnr", "niqe"])
    export(tmp_path / "run", tmp_path / "out", form=form)
    result = import_run(tmp_path / "out", tmp_path / "back")
    assert (result.layout, result.new_chains) == ("convergebench", 24)
    assert content(tmp_path / "back") == content(tmp_path / "run")
    for file in (tmp_path / "run" / "chains").rglob("*.jsonl"):
        twin = tmp_path / "back" / file.relative_to(tmp_path / "run")
        assert twin.read_bytes() == file.read_bytes(), "records of free editors lose nothing"
    assert verify(tmp_path / "back").sound
    assert score(tmp_path / "back", ["psnr", "niqe"]).new == 0, "every score is known"
    run(tmp_path / "back", {**wanted, "steps": 3})
    assert {c.length for c in RunStore.open(tmp_path / "back").chains()} == {3}


def test_importing_again_changes_nothing_and_another_run_is_refused(tmp_path: Path) -> None:
    first, out = odd_run(tmp_path / "run"), tmp_path / "out"
    export(first, out)
    import_run(out, tmp_path / "back")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "back").rglob("*")}
    result = import_run(out, tmp_path / "back")
    assert (result.new_chains, result.known_chains) == (0, 3)
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "back").rglob("*")}
    with pytest.raises(ImportProblem, match="is another run than the one"):
        import_run(out, first)  # whose records have sessions, which a dataset leaves out
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and is no empty folder"):
        import_run(out, tmp_path / "full")


def test_dry_run_writes_nothing_and_wishes_are_told_to_be_unheard(tmp_path: Path) -> None:
    export(odd_run(tmp_path / "run"), tmp_path / "out")
    result = import_run(tmp_path / "out", dry_run=True, editor="me")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "run"]
    assert any("Not used" in note and "editor" in note for note in result.notes)
    with pytest.raises(ImportProblem, match="has its own suite"):
        import_run(tmp_path / "out", tmp_path / "back", suite="starter")
    with pytest.raises(ImportProblem, match="--to DIRECTORY"):
        import_run(tmp_path / "out")


@pytest.mark.parametrize("form", ["parquet", "webdataset"])
def test_what_was_altered_is_refused(tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    export(odd_run(tmp_path / "run"), out, form=form)
    for name in sums(out).split("\n")[:-1]:
        file = out / name.partition("  ")[2]
        if file.name == "README.md":
            continue
        data = file.read_bytes()
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(ImportProblem, match=f"{file.name} is not what SHA256SUMS says"):
            import_run(out, tmp_path / "back")
        file.unlink()
        if file.name != "dataset.json":
            with pytest.raises(ImportProblem, match="cannot read"):
                import_run(out, tmp_path / "back")
        file.write_bytes(data)
    assert not (tmp_path / "back").exists()
    (out / "README.md").write_text("a card of my own")
    import_run(out, tmp_path / "back")


def test_a_dataset_that_lies_is_refused(tmp_path: Path) -> None:
    import polars as pl

    out = tmp_path / "out"
    export(odd_run(tmp_path / "run"), out)
    shard = out / "frames" / "frames-00000.parquet"
    frames = pl.read_parquet(shard)

    def lie(rows: pl.DataFrame, match: str) -> None:
        rows.write_parquet(shard)
        seal(out)
        with pytest.raises(ImportProblem, match=match):
            import_run(out, tmp_path / "back")
        assert not (tmp_path / "back").exists()
        assert not (tmp_path / "back.part").exists()

    lie(frames.head(4), "table frames has 4 rows, and 10 were exported")
    lie(
        frames.with_columns(sha256=pl.lit("../../x"), format=pl.lit("png"), bytes=1), "has the hash"
    )
    lie(frames.with_columns(chain=pl.lit("../x")), "has no header")
    lie(frames.with_columns(outcome=pl.lit("splendid")), "no record of ours")
    lie(frames.with_columns(line=pl.col("line").clip(0, 2)), "there twice")
    lie(frames.drop("line"), "no record of ours")
    lie(frames.drop("image"), "has no column of pictures")
    lie(frames.with_columns(image=pl.lit(b"x")), "has no column of pictures")
    lie(frames.with_columns(image=pl.lit(None, frames.schema["image"])), "lacks .* picture")


@pytest.mark.parametrize(
    ("file", "before", "after", "match"),
    [
        ("dataset.json", '"format": 1,\n  "suite"', '"format": 9,\n  "suite"', "has format 9"),
        ("dataset.json", '"suite": "odd@3"', '"suite": "even@3"', "with another suite"),
        ("suite.json", "Copy the picture.", "Paint the picture.", "with another suite"),
        ("headers.jsonl", '"cycle":"copy@1"', '"cycle":"other@1"', "no cycle called 'other'"),
    ],
)
def test_records_that_make_no_run_are_refused(
    tmp_path: Path, file: str, before: str, after: str, match: str
) -> None:
    out = tmp_path / "out"
    export(odd_run(tmp_path / "run"), out)
    path = out / "convergebench" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    seal(out)
    with pytest.raises(ConvergeBenchError, match=match):
        import_run(out, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def _link(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
    return member


def _large(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = 2**42
    return member


def _sparse(name: str) -> tarfile.TarInfo:
    member = _large(name)
    member.type, member.size = tarfile.GNUTYPE_SPARSE, 0
    return member


@pytest.mark.parametrize("member", [_link("a.png"), _large("a.png"), _sparse("a.png")])
def test_members_of_a_shard_that_are_no_plain_files_are_refused(
    tmp_path: Path, member: tarfile.TarInfo
) -> None:
    out = tmp_path / "out"
    export(odd_run(tmp_path / "run"), out, form="webdataset")
    shard = out / "webdataset" / "frames" / "frames-00000.tar"
    shard.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + shard.read_bytes())
    seal(out)
    with pytest.raises(ImportProblem, match=r"'a\.png' is no plain file"):
        import_run(out, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def seal(out: Path) -> None:
    """Bring the checksums up to date, as somebody who lies would."""
    lines = []
    for line in sums(out).splitlines():
        digest = hashlib.sha256((out / line[66:]).read_bytes()).hexdigest()
        lines.append(f"{digest}  {line[66:]}\n")
    (out / "SHA256SUMS").write_text("".join(lines))


def test_a_copy_elsewhere_is_the_same(tmp_path: Path) -> None:
    export(odd_run(tmp_path / "run"), tmp_path / "out", form="webdataset")
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    import_run(tmp_path / "elsewhere", tmp_path / "deep" / "er" / "back")
    assert content(tmp_path / "deep" / "er" / "back") == content(tmp_path / "run")
