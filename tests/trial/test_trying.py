"""From run directories to a trial: arms, versions, what is missing, several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench.chain import Settings
from convergebench.errors import ConvergeBenchError, InputError, UnknownName
from convergebench.registry import metric_spec
from convergebench.runspec import RunSpec
from convergebench.trial import try_metrics
from tests.analysis.handmade import MORE_CYCLES, HandMade
from tests.analysis.several import Made, ref
from tests.support.runs import CYCLES
from tests.trial.runs import scored_run
from tests.trial.tables import falling

SECOND = """
[[cycle]]
name = "again"
kind = "replicate"
[[cycle.edit]]
prompt = "Once more."
"""


class Tables(HandMade):
    """A run directory with made-up no-reference scores; PIQE is the better the lower."""

    def falls(
        self,
        source: str,
        editor: str,
        values: list[float | None],
        *,
        cycle: str = "copy",
        metric: str = "piqe",
        version: str | None = None,
        **more: Any,
    ) -> str:
        chain = self.chain(source, cycle, editor, len(values), **more)
        for step, value in enumerate(values, 1):
            self.score(chain.key.id, step, metric, value, against="none", version=version)
        return chain.key.id


def worse(steps: int = 5) -> list[float | None]:
    return [*falling(20, -3, steps)]


def better(steps: int = 5) -> list[float | None]:
    return [*falling(60, 3, steps)]


def test_an_arm_is_an_editor_and_its_variant_where_it_has_several(tmp_path: Path) -> None:
    made = Tables(tmp_path, cycles=CYCLES + MORE_CYCLES + SECOND)
    made.falls("s0", "one", worse())
    made.falls("s0", "two", worse())
    made.falls("s0", "two", worse(), settings=Settings(phrasing=1))
    made.falls("s0", "three", worse())
    made.falls("s0", "three", worse(), cycle="again")
    made.falls("s0", "three", worse(), cycle="again", settings=Settings(temperature=0.4))
    made.falls("s0", "one", worse(), cycle="more")
    trial = try_metrics(made.done(), steps=[5])
    assert trial.arms == (
        "one",
        "three · again",
        "three · again, temperature 0.4",
        "three · copy",
        "two · defaults",
        "two · phrasing 1",
    )
    assert trial.card("piqe").cells == 6, "object additions are on no verdict"
    added = trial.trajectories.filter(pl.col("kind") == "accumulate")
    assert added["arm"].unique().to_list() == ["one"]
    only = try_metrics(made.path, steps=[5], cycles=["again"])
    assert only.arms == ("three · defaults", "three · temperature 0.4")
    with pytest.raises(UnknownName, match="no cycle that replicates or adds objects called 'agan'"):
        try_metrics(made.path, steps=[5], cycles=["agan"])


def test_sources_are_in_the_order_of_the_suite(tmp_path: Path) -> None:
    made = Tables(tmp_path, sources=3)
    for source in ("s2", "s0", "s1"):
        made.falls(source, "a", worse())
    assert try_metrics(made.done(), steps=[5]).sources == ("s0", "s1", "s2")


def test_the_direction_is_the_metrics_own(tmp_path: Path) -> None:
    made = Tables(tmp_path)
    made.falls("s0", "a", worse())
    made.falls("s1", "a", better())
    trial = try_metrics(made.done(), steps=[5])
    assert trial.success["verdict"].to_list() == ["success", "failure"]
    assert trial.gaps["gap"].to_list() == [pytest.approx(-12), pytest.approx(12)]
    card = trial.card("piqe")
    assert (card.higher_is_better, card.low, card.high) == (False, 0, 100)
    assert card.origin == "an installed metric"


def test_chains_that_were_planned_or_refused_are_incomplete(tmp_path: Path) -> None:
    made = Tables(tmp_path, sources=3)
    made.falls("s0", "a", worse())
    made.falls("s1", "a", worse(3), ended="refused")
    spec = RunSpec(editors=("a",), cycles=("copy",), rounds=5, controls=False)
    made.store.write_json("spec.json", spec.model_dump(mode="json"))
    trial = try_metrics(made.done(), steps=[3, 5])
    assert trial.success.select("source", "known", "verdict").rows() == [
        ("s0", 2, "success"),
        ("s1", 1, "incomplete"),
        ("s2", 0, "incomplete"),
    ]
    assert trial.card("piqe").verdict == "incomplete"


def test_only_the_installed_version_counts(tmp_path: Path) -> None:
    made = Tables(tmp_path)
    made.falls("s0", "a", worse())
    made.falls("s1", "a", worse(), metric="niqe", version="0")
    trial = try_metrics(made.done(), steps=[5])
    assert trial.metrics == ("piqe",)
    assert any(
        "another version than the installed one, so left out: niqe" in n for n in trial.notes
    )
    with pytest.raises(
        InputError, match=r"has no scores of niqe\. Compute them with: convergebench"
    ):
        try_metrics(made.path, steps=[5], metrics=["niqe"])


def test_metrics_that_are_not_installed_are_named(tmp_path: Path) -> None:
    made = Tables(tmp_path)
    made.falls("s0", "a", worse())
    made.falls("s1", "a", worse(), metric="gone-metric")
    trial = try_metrics(made.done(), steps=[5])
    assert any("not installed here, so left out: gone-metric" in note for note in trial.notes)
    with pytest.raises(InputError, match="gone-metric cannot be tried: no metric called"):
        try_metrics(made.path, metrics=["gone-metric"])


def test_what_cannot_be_tried_is_one_sentence(tmp_path: Path) -> None:
    made = Tables(tmp_path / "a")
    made.walk("s0", "copy", "a", (0.9, 0.8))
    path = made.done()
    with pytest.raises(InputError, match=r"psnr compares frames with a reference"):
        try_metrics(path, metrics=["psnr"])
    with pytest.raises(UnknownName, match="brisk"):
        try_metrics(path, metrics=["brisk"])
    with pytest.raises(
        ConvergeBenchError, match=r"no scores of no-reference metrics.*score .*run "
    ):
        try_metrics(path)
    other = Tables(tmp_path / "b")
    other.walk("s0", "ball", "a", (0.9, 0.8))
    with pytest.raises(InputError, match="has no chains that replicate their source"):
        try_metrics(other.done())


def test_how_sure_a_judge_is_is_no_quality_unless_asked_for(tmp_path: Path) -> None:
    made = Tables(tmp_path)
    made.falls("s0", "a", worse())
    name = "visualquality-r1-unparsed"
    made.falls("s1", "a", worse(), metric=name, version=metric_spec(name).version)
    assert try_metrics(made.done(), steps=[5]).metrics == ("piqe",)
    assert try_metrics(made.path, steps=[5], metrics=[name]).metrics == (name,)


def test_full_reference_scores_are_witnesses(tmp_path: Path) -> None:
    made = Tables(tmp_path)
    chain = made.falls("s0", "a", better())
    for step in range(1, 6):
        # RMSE 10 at every step, and SSIM falling from 0.8 by 0.1 a step.
        made.score(chain, step, "psnr", 28.13080360867910)
        made.score(chain, step, "ssim", 0.9 - 0.1 * step)
        made.score(chain, step, "registration-dx", 100.0 * step)
        made.score(chain, step, "colour-cast", 1.0 * step)
    trial = try_metrics(made.done(), steps=[5])
    assert trial.premise.sort("metric").select("metric", "change").rows() == [
        ("psnr", pytest.approx(0)),
        ("ssim", pytest.approx(-0.4)),
    ]
    assert trial.success["premise"].to_list() == ["sound"]
    agreement = {a.other: a.spearman.value for a in trial.card("piqe").agreement}
    assert agreement == {"ssim": pytest.approx(-1)}, "a constant says nothing"


def test_identical_frames_have_an_infinite_psnr_and_no_loss(tmp_path: Path) -> None:
    made = Tables(tmp_path)
    chain = made.falls("s0", "a", [20.0] * 5)
    for step in range(1, 6):
        made.score(chain, step, "psnr", float("inf"))
    trial = try_metrics(made.done(), steps=[5])
    assert trial.premise["change"].to_list() == [0]
    assert trial.success["premise"].to_list() == ["doubtful"]
    assert trial.card("piqe").doubtful == 1
    assert any("lost nothing since frame 1" in note for note in trial.notes)


def test_published_scores_stand_in_where_there_are_no_pictures(tmp_path: Path) -> None:
    made = Made(tmp_path / "run", {"s0": "", "s1": ""}, imported=True)
    for source in ("s0", "s1"):
        chain = made.walk(source, "copy", "theirs", [0.9] * 5, metrics=())
        for step in range(1, 6):
            told = {"version": "published:paper", "against": "none"}
            made.row(chain.key.id, step, "piqe", 20.0 + step, **told)
    trial = try_metrics(made.done(), steps=[5])
    card = trial.card("piqe")
    assert (card.verdict, card.version) == ("fully succeeds", "published:paper")
    assert any("2 chains are as published by paper" in note for note in trial.notes)


def test_several_runs_are_tried_together(tmp_path: Path) -> None:
    for name, values in (("x", worse()), ("y", better())):
        made = Made(tmp_path / name)
        for source in ("s0", "s1"):
            chain = made.walk(source, "copy", name, [0.9] * 5, frames=name)
            for step, value in enumerate(values, 1):
                made.row(chain.key.id, step, "piqe", value, against="none")
        made.done()
    trial = try_metrics(tmp_path / "x", tmp_path / "y", steps=[5])
    assert (trial.title, trial.arms) == ("x + y", ("x", "y"))
    assert trial.card("piqe").failures_by_arm == {"x": 0, "y": 2}
    assert ref("x").sha256, "frames are named, not there"


def test_a_real_run_with_controls(tmp_path: Path) -> None:
    trial = try_metrics(scored_run(tmp_path), steps=[3, 5])
    assert trial.arms == ("ref:blur", "ref:noise,sigma=8")
    assert "ref:identity" in trial.controls
    assert trial.card("noise").failures_by_arm["ref:noise,sigma=8"] == 0
    assert trial.card("sharpness").failures_by_arm["ref:noise,sigma=8"] == 2, "fooled by grain"
    assert not set(trial.gaps["arm"]) & set(trial.controls)
    assert set(trial.controls) <= set(trial.trajectories["arm"])
    assert {a.other for a in trial.card("noise").agreement} == {"psnr", "ssim"}
    assert trial.premise["change"].max() < 0  # type: ignore[operator]
