"""Answers in a run: rows of the score table, the file beside them, and every command after that."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from convergebench import opinions
from convergebench.errors import InputError, StoreDamaged, StoreMismatch
from convergebench.opinions.answers import checked
from convergebench.opinions.keeping import answers_in, has_answers, keep_in_run, score_rows
from convergebench.opinions.opening import answers_at, scores_for
from convergebench.store import RunStore

RATERS = 6


def _command(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "convergebench", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scored run of three sources, two editors and ten replications."""
    path = tmp_path_factory.mktemp("runs") / "rated"
    sources = [word for name in ("grid", "fog", "text") for word in ("--source", name)]
    editors = ["--editor", "ref:blur", "--editor", "ref:jpeg"]
    options = ["--suite", "starter", "--size", "96", "--cycle", "replicate", "--steps", "10"]
    made = _command("run", path, *options, *sources, *editors)
    assert made.returncode == 0, made.stderr
    told = _command("score", path, "--metrics", "psnr,ssim,brisque")
    assert told.returncode == 0, told.stderr
    return path


@pytest.fixture
def run(scored: Path, tmp_path: Path) -> RunStore:
    """A copy of it of one's own."""
    return RunStore.open(shutil.copytree(scored, tmp_path / "rated"))


def _answers(store: RunStore, study: str = "first") -> pl.DataFrame:
    rows = []
    for at, chain in enumerate(store.chains()):
        for rater in range(RATERS):
            for step in (1, 5, 10):
                value = float(max(0, min(5, 5 - step // 3 + (at + rater) % 2)))
                rows.append({
                    "study": study, "rater": f"p{rater:02d}", "question": "quality",
                    "order": at, "design": "single", "image": chain.key.source,
                    "method": chain.key.editor, "chain": chain.key.id, "step": step,
                    "value": value, "comment": "odd\u2028one\n" if value == 5 else None,
                })  # fmt: skip
    rows.append({**rows[0], "kind": "repeat", "value": 0.0})
    rows.append({**rows[0], "kind": "attention", "chain": "(broken)", "step": 0})
    rows.append({**rows[0], "kind": "practice", "value": 1.0})
    return checked(pl.DataFrame(rows, infer_schema_length=None))


def test_answers_become_rows_once_however_often_they_are_kept(run: RunStore) -> None:
    answers = _answers(run)
    before = run.scores()
    first = keep_in_run(answers, run)
    count = len(run.chains()) * RATERS * 3
    assert (first.added, first.known, first.answers) == (count, 0, count + 3)
    file = run.path / "ratings" / "first.jsonl"
    content = file.read_bytes()
    again = keep_in_run(answers, run)
    assert (again.added, again.known) == (0, count)
    assert file.read_bytes() == content
    rows = run.scores()
    assert rows.height == before.height + count
    mine = rows.filter(pl.col("metric") == "human/quality")
    assert set(mine["version"]) == {f"first:p{rater:02d}" for rater in range(RATERS)}
    assert set(mine["against"]) == {"none"}
    assert set(mine["where"]) == {"all"}


def test_later_answers_are_added_to_the_earlier_ones(run: RunStore) -> None:
    answers = _answers(run)
    keep_in_run(answers.head(20), run)
    told = keep_in_run(answers, run)
    assert told.known == 20
    assert told.answers == answers.height
    assert answers_in(run).sort(pl.all()).equals(answers.sort(pl.all()))


def test_answers_come_back_whole_even_without_the_file(run: RunStore) -> None:
    answers = _answers(run)
    keep_in_run(answers, run)
    assert has_answers(run, run.scores())
    whole = opinions.analyse(answers_at(run.path))
    (run.path / "ratings" / "first.jsonl").unlink()
    rows = opinions.analyse(answers_at(run.path))
    assert whole.quality is not None
    assert rows.quality is not None
    assert rows.quality.methods == whole.quality.methods
    assert rows.quality.reliability == whole.quality.reliability


def test_a_pair_has_a_row_for_each_side(run: RunStore) -> None:
    blur, jpeg = (chain.key.id for chain in run.chains()[:2])
    answers = checked(
        pl.DataFrame([
            {"study": "pairs", "rater": "p01", "question": "preference", "chain": blur,
             "other_chain": jpeg, "method": "ref:blur", "other_method": "ref:jpeg", "value": 1.0},
        ])
    )  # fmt: skip
    rows = score_rows(answers)
    assert rows.select("chain", "against", "value").rows() == [(blur, jpeg, 1.0), (jpeg, blur, 0.0)]
    keep_in_run(answers, run)
    (run.path / "ratings" / "pairs.jsonl").unlink()
    back = answers_in(run)
    assert back.height == 2
    told = opinions.analyse(back).preferences
    assert told is not None
    assert told.comparisons == 1
    assert told.strengths[0].wins == 1


def test_answers_about_another_run_are_refused(run: RunStore) -> None:
    answers = _answers(run).with_columns(
        chain=pl.when(pl.col("rater") == "p01").then(pl.lit("other--chain")).otherwise("chain")
    )
    with pytest.raises(StoreMismatch, match=r"is not the run that was rated: it has no other--"):
        keep_in_run(answers, run)
    assert not (run.path / "ratings").exists()
    told = keep_in_run(answers, run, partly=True)
    assert told.elsewhere > 0
    strange = answers.with_columns(chain=pl.lit("other--chain"))
    with pytest.raises(StoreMismatch, match="Give the run that the study was made from"):
        keep_in_run(strange, run, partly=True)
    with pytest.raises(InputError, match="has none of the chains that were rated"):
        scores_for(strange, run.path)


def test_no_answers_and_odd_names_are_told(run: RunStore) -> None:
    with pytest.raises(InputError, match="there is no answer to keep yet"):
        keep_in_run(_answers(run).head(0), run)
    with pytest.raises(InputError, match=r"'\.\./x' cannot be kept as a file"):
        keep_in_run(_answers(run, "../x"), run)
    with pytest.raises(InputError, match="has no human answers"):
        answers_at(run.path)
    with pytest.raises(InputError, match="neither a rating study nor a run directory"):
        answers_at(run.path.parent)


def test_a_damaged_file_is_told(run: RunStore) -> None:
    keep_in_run(_answers(run), run)
    (run.path / "ratings" / "first.jsonl").write_text('{"study": 1\n')
    with pytest.raises(StoreDamaged, match=r"first\.jsonl cannot be read"):
        answers_in(run)


@pytest.mark.slow
def test_no_other_command_trips_over_human_rows(run: RunStore, tmp_path: Path) -> None:
    plain = _command("analyze", run.path, "--json")
    keep_in_run(_answers(run), run)
    judged = (
        run.scores()
        .filter(pl.col("metric") == "brisque")
        .head(3)
        .with_columns(
            metric=pl.lit("judge/infidelity"), version=pl.lit("infidelity@1:some-model"), value=1.0
        )
    )
    run.add_scores(judged)
    rated = _command("analyze", run.path, "--json")
    assert json.loads(rated.stdout) == json.loads(plain.stdout)
    bundle = tmp_path / "rated.zip"
    for words in (
        ("report", run.path),
        ("trial", run.path, "--steps", "5,10"),
        ("verify", run.path),
        ("score", run.path, "--metrics", "psnr"),
        ("export", run.path, tmp_path / "dataset"),
        ("import", tmp_path / "dataset", "--to", tmp_path / "back"),
        ("bundle", run.path, "--out", bundle),
        ("verify", bundle),
    ):
        done = _command(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert not any(word in done.stdout for word in ("human/", "judge/")), words
    first = (run.path / "report" / "index.html").read_text()
    assert 'href="ratings.html"' in first
    page = (run.path / "report" / "ratings.html").read_text()
    assert "What people say of rated" in page
    assert (run.path / "report" / "ratings.json").is_file()
    frames = pl.read_parquet(tmp_path / "dataset" / "frames" / "*.parquet")
    assert any(name.startswith("score:psnr@") for name in frames.columns)
    assert not any("human" in name or "judge" in name for name in frames.columns)
    published = pl.read_parquet(tmp_path / "dataset" / "scores" / "*.parquet")
    people = published.filter(pl.col("metric") == "human/quality")
    assert people.height == len(run.chains()) * RATERS * 3
    assert people["note"].null_count() == people.height  # comments are not published
    back = RunStore.open(tmp_path / "back")
    assert opinions.analyse(answers_at(back.path)).answers == people.height
