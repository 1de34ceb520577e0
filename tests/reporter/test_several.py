"""The pages of several runs, and of runs without all of their pictures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from convergebench.chain import IMPORTED, Chain, ChainKey, FrameRef, Outcome, Step
from convergebench.errors import StoreError, StoreMismatch
from convergebench.frame import Frame, encode
from convergebench.reporter import report
from convergebench.runner import run
from convergebench.scorer import score
from convergebench.source import Source
from convergebench.store import RunStore
from convergebench.suite import Suite
from tests.analysis.several import TRIP
from tests.analysis.test_imported import only_scores
from tests.reporter.pages import assert_links_resolve, read_page
from tests.support.runs import picture, write_suite


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two real runs of two suites that share one picture."""
    folder = tmp_path_factory.mktemp("pair")
    first = write_suite(folder / "one", 2)
    second = write_suite(folder / "two", pictures=[picture(0), picture(7)], version=2)
    for name, suite, editor in (("alpha", first, "ref:blur"), ("beta", second, "ref:noise")):
        run(folder / name, {"suite": str(suite), "editors": [editor], "rounds": 2})
        score(folder / name, ["psnr", "ssim"], workers=1)
    return folder / "alpha", folder / "beta"


def test_the_page_of_two_runs_names_both_everywhere(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = report(*pair)
    assert made.path == Path("alpha+beta-report/index.html")
    assert_links_resolve(made.path.parent.resolve())
    page = read_page(made.path)
    (facts,) = page.all("dl", "facts")
    for path in pair:
        info = RunStore.open(path).info
        assert f"{path.name} {info.suite} {info.fingerprint[:8]}" in facts.text
    rows = {r.all("th")[0].text: r for r in page.one("leaderboard").all("tr") if r.all("th")}
    assert any("ref:blur" in name and name.endswith("alpha") for name in rows)
    assert any("ref:identity" in name and name.endswith("alpha, beta") for name in rows)
    assert "s1 is the name of 2 different pictures" in page.one("leaderboard").text
    sessions = page.one("provenance").text
    assert "alpha: suite tiny@1, content" in sessions
    assert "beta: suite tiny@2, content" in sessions
    pages = {p.name for p in made.path.parent.glob("source-*.html")}
    assert pages == {"source-s0.html", "source-s1-in-alpha.html", "source-s1-in-beta.html"}
    written = json.loads((made.path.parent / "findings.json").read_text())
    assert [told["name"] for told in written["runs"]] == ["alpha", "beta"]
    assert not any((path / "findings.json").exists() for path in pair)


def test_a_folder_belongs_to_its_set_of_runs(pair: tuple[Path, Path], tmp_path: Path) -> None:
    report(*pair, out=tmp_path / "pages")
    report(*reversed(pair), out=tmp_path / "pages")
    with pytest.raises(StoreError, match="holds the report of another run"):
        report(pair[0], out=tmp_path / "pages")


def test_rounds_are_told_and_limit_the_pictures(pair: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(pair[0], copy)
    page = read_page(report(copy, out=tmp_path / "pages", rounds=1).path)
    assert "Homecomings the first 1" in page.all("dl", "facts")[0].text
    strips = read_page(tmp_path / "pages" / "source-s0.html").one("cycle-copy")
    assert [th.text.split()[0] for th in strips.all("th") if th.all("b")] == ["0", "1"]


def test_runs_that_share_nothing_leave_no_folder(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = only_scores(tmp_path / "other")
    with pytest.raises(
        StoreMismatch, match="alpha cannot be compared with other: no source picture"
    ):
        report(pair[0], other, out=tmp_path / "pages")
    assert not (tmp_path / "pages").exists()


def test_scores_without_pictures_have_pages_without_holes(tmp_path: Path) -> None:
    made = report(only_scores(tmp_path / "run"))
    assert_links_resolve(made.path.parent)
    page = read_page(made.path)
    assert [e.attributes["id"] for e in page.all("div", "chart")] == ["value-psnr", "value-ssim"]
    assert "a floor needs pictures, and only scores are here" in page.one("numbers").text
    assert "as far as the published scores tell" in page.one("failures").text
    assert "ssim as they measured it" in page.one("curves").text
    assert "Wang" not in page.text, "nobody knows how they measured it"
    assert "picture not here" in page.one("pictures").text
    assert "published by lab-x" in page.one("leaderboard").text
    assert "pixels" not in page.one("provenance").text
    source = read_page(made.path.parent / "source-s0.html")
    assert not source.all("img")
    assert "The picture is not here: scores only" in source.text
    assert source.one("cycle-trip").text.count("scores only, up to step 6; the pictures") == 2


def imported(path: Path, outcomes: list[Outcome]) -> Path:
    """A run with pictures, brought from elsewhere: one chain with these outcomes."""
    frames = [Frame(encode(picture(n))) for n in range(len(outcomes) + 2)]
    sources = [("s0", frames[0]), ("s1", frames[-1])]
    suite = Suite(
        name="brought",
        version=1,
        source=tuple(
            Source(name=n, file=f"{n}.png", sha256=f.digest, licence="CC0-1.0") for n, f in sources
        ),
        cycle=(TRIP,),
    )
    store = RunStore.create(path, suite, 32, imported=True)
    for _, frame in sources:
        store.put(frame)
    known = {n: [FrameRef.of(f).model_dump(mode="json"), None] for n, f in sources}
    store.write_json("sources.json", known)
    key = ChainKey(suite=suite.label, source="s0", cycle="trip@1", editor="lab:x")
    store.start(Chain(key, FrameRef.of(frames[0]), None, IMPORTED))
    for n, outcome in enumerate(outcomes, 1):
        made = frames[n] if outcome == "edited" else None
        step = Step(
            step=n,
            outcome=outcome,
            prompt="p",
            inputs=(),
            frame=FrameRef.of(made) if made else None,
            detail="" if made else f"why it is {outcome}",
        )
        store.append(key.id, step, made)
    score(path, ["psnr", "ssim"], workers=1)
    return path


def test_gaps_and_failures_of_an_import_are_shown(tmp_path: Path) -> None:
    made = report(imported(tmp_path / "run", ["edited", "edited", "missing", "edited", "failed"]))
    assert_links_resolve(made.path.parent)
    page = read_page(made.path)
    assert "1 missing" in page.one("leaderboard").text
    assert "1 failed" in page.one("leaderboard").text
    assert "1 chain ended early" in page.one("leaderboard").text
    rows = [r.text for r in page.one("failures").all("tr")[1:]]
    assert ["missing why it is missing" in r or "failed why it is failed" in r for r in rows] == [
        True,
        True,
    ]
    assert "no failure of the editor" in page.one("failures").text
    strip = read_page(made.path.parent / "source-s0.html").one("cycle-trip")
    assert [c.text for c in strip.all("td", "lost")] == [
        "missing why it is missing 3",
        "failed why it is failed 5",
    ]
    assert len(strip.all("img")) == 4


def test_an_import_that_grew_keeps_its_report(tmp_path: Path) -> None:
    path = imported(tmp_path / "run", ["edited", "edited"])
    report(path)
    info = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**info, "fingerprint": "0" * 64}))
    report(path)
