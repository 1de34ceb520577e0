"""A table of one's own scores, and one of people's ratings."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from convergebench.errors import InputError, SettingsError
from convergebench.store import RunStore
from convergebench.trial import Reading, ScoreFile, try_metrics
from convergebench.trial.result import Trial
from tests.trial.runs import scored_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scored_run(tmp_path_factory.mktemp("own"))


def write(path: Path, header: str, rows: Sequence[tuple[object, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])
    return path


def frames(run: Path) -> list[tuple[str, str, str, int, int, str, Path]]:
    """chain, editor, source, repeat, step, sha256 and path of every frame made."""
    store = RunStore.open(run)
    return [
        (
            c.key.id,
            c.key.editor,
            c.key.source,
            c.key.repeat,
            step,
            ref.sha256,
            store.frame_path(ref),
        )
        for c in store.chains()
        if c.key.cycle.startswith("copy")
        for step, ref in c.held.items()
        if step
    ]


def alone(run: Path, scores: str | Path | ScoreFile, **more: object) -> Trial:
    return try_metrics(run, metrics=[], scores=[scores], steps=[3, 5], **more)  # type: ignore[arg-type]


def test_rows_by_chain_and_step(run: Path, tmp_path: Path) -> None:
    rows = [(chain, step, 100 - step) for chain, _, _, _, step, _, _ in frames(run)]
    trial = alone(run, f"{write(tmp_path / 'mine.csv', 'chain,step,score', rows)},range=0:200")
    card = trial.card("mine")
    assert (card.verdict, card.origin) == ("fully succeeds", "file mine.csv")
    assert (card.cells, card.version, card.low, card.high) == (4, "", 0, 200)
    assert trial.gaps["gap"].unique().sort().to_list() == [pytest.approx(-2), pytest.approx(-1)]


def test_rows_by_editor_source_repeat_and_step_with_lower_better(run: Path, tmp_path: Path) -> None:
    rows = [(e, s, r, step, 100 - step) for _, e, s, r, step, _, _ in frames(run)]
    file = write(tmp_path / "mine.csv", "editor,source,repeat,step,score", rows)
    card = alone(run, f"{file},name=mine-2,lower-is-better").card("mine-2")
    assert (card.verdict, card.failed, card.higher_is_better) == ("fails", 4, False)
    assert (card.low, card.high) == (95, 99)
    assert any("No range was given" in text for text in card.caveats)
    card = alone(run, file, lower_is_better=["mine"]).card("mine")
    assert (card.failed, card.higher_is_better) == (4, False)


def test_rows_by_the_frames_hash_or_path_fit_every_chain_that_has_the_frame(
    run: Path, tmp_path: Path
) -> None:
    by_hash = [(digest, 100 - step) for *_, step, digest, _ in frames(run)]
    unique = list({digest: value for digest, value in by_hash}.items())
    file = write(tmp_path / "a.csv", "sha256,score", unique)
    one = alone(run, file).single
    shutil.copy(frames(run)[0][-1], tmp_path / "copied.png")
    paths = {digest: path for *_, digest, path in frames(run)}
    rows: list[tuple[object, ...]] = [(paths[digest], value) for digest, value in unique]
    first = frames(run)[0][-2]
    rows = [("copied.png" if first in str(path) else path, value) for path, value in rows]
    two = alone(run, write(tmp_path / "b.csv", "path,score", rows)).single
    assert one.drop("metric").equals(two.drop("metric"))
    chains = [c for c in RunStore.open(run).chains() if not c.key.cycle.startswith("ball")]
    known = dict(unique)
    assert len(one) == sum(ref.sha256 in known for c in chains for ref in c.held.values())
    assert len(one) > len(frames(run)), "controls give back the very same frame"


def test_parquet_and_a_column_of_the_metrics_name(run: Path, tmp_path: Path) -> None:
    rows = [(chain, step, 1.0 / step) for chain, _, _, _, step, _, _ in frames(run)]
    pl.DataFrame(rows, schema=["chain", "step", "mine"], orient="row").write_parquet(
        tmp_path / "mine.parquet"
    )
    file = ScoreFile(tmp_path / "mine.parquet", Reading("mine", typical=(0, 1)))
    assert alone(run, file).card("mine").verdict == "fully succeeds"


def test_missing_numbers_are_nulls_and_rows_of_no_frame_are_told(run: Path, tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [
        (chain, step, "" if step == 5 else 100 - step) for chain, _, _, _, step, _, _ in frames(run)
    ]
    rows.insert(1, ("elsewhere", 1, 7))
    trial = alone(run, write(tmp_path / "mine.csv", "chain,step,score", rows))
    assert trial.card("mine").verdict == "incomplete"
    assert trial.card("mine").nulls == 2 * 2 * 2, "editors, sources, repeats"
    assert "mine.csv: 1 row of" in " ".join(trial.notes)
    assert "the first in line 3" in " ".join(trial.notes)


def test_frames_that_a_table_says_nothing_of_are_counted(run: Path, tmp_path: Path) -> None:
    rows = [(chain, step, 100 - step) for chain, _, _, _, step, _, _ in frames(run)]
    kept = [row for row in rows if row[1] in (1, 3, 5)]
    card = alone(run, write(tmp_path / "few.csv", "chain,step,score", kept)).card("few")
    assert card.verdict == "fully succeeds"
    whole = alone(run, write(tmp_path / "all.csv", "chain,step,score", rows))
    assert whole.card("all").nulls == 0
    lacking = pl.col("step").is_in([2, 4]) & pl.col("arm").is_in(whole.arms)
    assert card.nulls == len(whole.single.filter(lacking)) > 0


def test_a_file_named_like_a_key_does_not_make_the_key_its_score(run: Path, tmp_path: Path) -> None:
    rows = [(chain, step, 100 - step) for chain, _, _, _, step, _, _ in frames(run)]
    path = write(tmp_path / "step.csv", "chain,step,score", rows)
    assert alone(run, path).card("step").verdict == "fully succeeds"


def test_what_is_wrong_with_a_table_is_one_sentence(run: Path, tmp_path: Path) -> None:
    chain = frames(run)[0][0]

    def complaint(header: str, *rows: tuple[object, ...]) -> pytest.ExceptionInfo[InputError]:
        file = write(tmp_path / "mine.csv", header, list(rows))
        with pytest.raises(InputError) as caught:
            alone(run, file)
        return caught

    assert "line 3: 'good' is not a number" in str(
        complaint("chain,step,score", (chain, 1, 5), (chain, 2, "good")).value
    )
    assert "step 'one' is not a whole number" in str(
        complaint("chain,step,score", (chain, "one", 5)).value
    )
    assert "no column mine or score or value; it has chain, step, points" in str(
        complaint("chain,step,points", (chain, 1, 5)).value
    )
    assert "has the columns frame, score. Say which frame" in str(
        complaint("frame,score", (1, 5)).value
    )
    assert "none of the 1 row of mine.csv is of a frame of run" in str(
        complaint("chain,step,score", ("nobody", 1, 5)).value
    )
    assert "has another score further up" in str(
        complaint("chain,step,score", (chain, 1, 5), (chain, 1, 6)).value
    )
    assert "is of 2 chains at once" in str(
        complaint("editor,source,step,score", ("ref:blur", "s0", 1, 5)).value
    )
    with pytest.raises(InputError, match=r"cannot read gone\.csv"):
        alone(run, tmp_path / "gone.csv")


def test_options_of_a_score_file(run: Path) -> None:
    file = ScoreFile.parse("a/b.csv,name=x,lower-is-better,range=-1:2.5")
    assert file == ScoreFile(Path("a/b.csv"), Reading("x", False, (-1, 2.5)))
    for text, why in (
        ("b.csv,better", "'better' is no option"),
        ("b.csv,range=5", "got '5'"),
        ("b.csv,range=5:1", "the lower first"),
        ("b.csv,lower-is-better=yes", "is no option"),
    ):
        with pytest.raises(SettingsError, match=why):
            ScoreFile.parse(text)
    with pytest.raises(SettingsError, match="no --scores and no --command has that name"):
        try_metrics(run, steps=[5], lower_is_better=["piqe"])


def test_two_metrics_of_one_name_are_refused(run: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "x.csv", "chain,step,score", [(frames(run)[0][0], 1, 1)])
    with pytest.raises(SettingsError, match="two metrics called 'noise'"):
        try_metrics(run, steps=[5], scores=[f"{file},name=noise"])


def test_ratings_are_another_witness(run: Path, tmp_path: Path) -> None:
    rows = [(chain, step, 6 - step) for chain, _, _, _, step, _, _ in frames(run)]
    rows += [(chain, step, 4 - step) for chain, step, _ in rows]  # a second rater: the mean counts
    scores = [(chain, step, 100 - step) for chain, step, _ in rows[: len(rows) // 2]]
    file = write(tmp_path / "mine.csv", "chain,step,score", scores)
    people = write(tmp_path / "people.csv", "chain,step,rating", rows)
    trial = alone(run, file, ratings=people)
    (witness,) = [a for a in trial.card("mine").agreement if a.kind == "ratings"]
    assert witness.other == "people.csv"
    assert witness.spearman.value == pytest.approx(1)
    with pytest.raises(InputError, match="has no column rating or mos or value"):
        alone(run, file, ratings=file)
