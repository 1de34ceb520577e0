"""`rate export` and `rate analyze` on a study that people answered, with real files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from convergebench.cli import app
from convergebench.errors import ConvergeBenchError
from convergebench.opinions import read_answers
from convergebench.ratings.export import answers as answers_of
from convergebench.ratings.storage import Answers
from convergebench.ratings.study import SPECIAL, open_study
from convergebench.store import RunStore
from tests.opinions.material import FILES
from tests.ratings.made import SECRETIVE, restored_run, small_study

LETTERS = "abcdefghij"


def _command(*words: object) -> subprocess.CompletedProcess[str]:
    """As `main` does it, but in this process: ten times as fast."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    code, told = done.exit_code, done.stderr
    if isinstance(done.exception, ConvergeBenchError):
        code, told = 2, f"{told}convergebench: {done.exception}\n"
    elif done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess("convergebench", code, done.stdout, told)


def _answered(folder: Path, raters: int | None = None) -> Path:
    """Everybody has answered all pages: the first methods are best."""
    study = open_study(folder)
    order = {method.label: at for at, method in enumerate(study.methods)}
    with Answers.open(folder, study.name, study.created) as stored:
        for number, participant in enumerate(study.participants[:raters]):
            stored.consent(participant.id)
            for place, item in enumerate(participant.items):
                ranks = [order.get(slot, 5) for slot in item.slots]
                answer: dict[str, Any]
                if study.design == "pairs":
                    answer = {"choice": "tie" if place % 5 == 0 else LETTERS[ranks[0] > ranks[1]]}
                else:
                    answer = {
                        letter: max(0, min(5, 5 - rank + (place + number) % 2))
                        for letter, rank in zip(LETTERS, ranks, strict=False)
                    }
                passed = True if item.kind == "attention" else None
                said = '=1+1, "so"' if place == 3 else None
                stored.add(
                    participant.id, place, answer, milliseconds=900, comment=said, passed=passed
                )
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = small_study(
        tmp_path_factory.mktemp("rated") / "first", participants=4, attention=1, repeats=1
    )
    run = folder.with_name("first-run")
    scored = _command("score", run, "--metrics", "psnr,ssim")
    assert scored.returncode == 0, scored.stderr
    return _answered(folder)


def test_every_answer_comes_out_as_csv_and_parquet(study: Path, tmp_path: Path) -> None:
    done = _command("rate", "export", study, "--csv", tmp_path / "a.csv", "--parquet",
                    tmp_path / "a.parquet")  # fmt: skip
    assert done.returncode == 0, done.stderr
    theirs = answers_of(study)
    for name in ("a.csv", "a.parquet"):
        assert read_answers(tmp_path / name).equals(theirs)
    assert set(theirs["kind"]) == {"practice", "item", "repeat", "attention"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.parquet"]
    assert "'=1+1" in (tmp_path / "a.csv").read_text()
    plain = _command("rate", "export", study)
    assert plain.stdout == (tmp_path / "a.csv").read_text()


def test_answers_go_into_the_run_once_and_out_again(study: Path) -> None:
    run = study.with_name("first-run")
    told = json.loads(_command("rate", "export", study, "--to", run, "--json").stdout)
    again = json.loads(_command("rate", "export", study, "--to", run, "--json").stdout)
    count = 4 * 4 * len(SECRETIVE)
    assert (told["added"], told["known"]) == (count, 0)
    assert (again["added"], again["known"]) == (0, count)
    rows = RunStore.open(run).scores().filter(pl.col("metric") == "human/quality")
    assert rows.height == count
    assert {version.partition(":")[0] for version in rows["version"]} == {"first"}
    assert not rows["chain"].is_in(list(SPECIAL)).any()
    from_run = json.loads(_command("rate", "analyze", run, "--json").stdout)
    from_study = json.loads(_command("rate", "analyze", study, "--run", run, "--json").stdout)
    from_run["title"] = from_study["title"]
    assert from_run == from_study
    assert {one["metric"] for one in from_run["correlations"]} == {"psnr", "ssim"}
    assert [one["of"] for one in from_run["quality"]["methods"]] == sorted(SECRETIVE)


def test_a_run_that_was_not_rated_is_refused(study: Path, tmp_path: Path) -> None:
    other = restored_run(tmp_path / "other", methods=("somebody-else",))
    done = _command("rate", "export", study, "--to", other)
    assert done.returncode == 2
    assert "is not the run that was rated" in done.stderr
    done = _command("rate", "analyze", study, "--run", other)
    assert done.returncode == 2
    assert "has none of the chains that were rated" in done.stderr


def test_analysis_tells_and_writes_a_page(study: Path, tmp_path: Path) -> None:
    done = _command("rate", "analyze", study, "--report", tmp_path / "page", "--keep-outliers")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("first: mean opinion\n")
    assert "How far raters agree" in done.stdout
    assert f"Page: {tmp_path / 'page' / 'ratings.html'}" in done.stderr
    assert (tmp_path / "page" / "ratings.json").is_file()


def test_pairs_are_told_from_both_sides_and_counted_once(tmp_path: Path) -> None:
    folder = _answered(
        small_study(tmp_path / "pairs", design="pairs", ties=True, methods=SECRETIVE[:3])
    )
    told = json.loads(_command("rate", "analyze", folder, "--json").stdout)
    pages = answers_of(folder).filter(pl.col("kind") == "item").height // 2
    assert told["preferences"]["comparisons"] == pages == told["answers"]
    strengths = told["preferences"]["strengths"]
    assert [one["method"] for one in strengths] == sorted(SECRETIVE[:3])
    assert sum(one["theta"] for one in strengths) == pytest.approx(0)


@pytest.mark.shared
def test_raw_scores_of_others_are_analysed(shared: Path) -> None:
    done = _command("rate", "analyze", shared / "data" / "ratings" / FILES["nflx"], "--json")
    mean = json.loads(done.stdout)["quality"]["overall"]["mean"]
    assert mean == pytest.approx(3.544790652385589, abs=1e-12)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("rate", "analyze", "nothing.csv"), "cannot read nothing.csv"),
        (("rate", "analyze", "."), "neither a rating study nor a run directory"),
        (("rate", "export", "."), "is not a rating study"),
    ],
)
def test_mistakes_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], match: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = _command(*words)
    assert done.returncode == 2
    assert match in done.stderr
    assert "Traceback" not in done.stderr
