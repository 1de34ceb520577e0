"""An installed plug-in is on trial like any metric of ours: a real package, scored for real."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from convergebench.scorer import score
from convergebench.trial import try_metrics
from tests.support.plugins import install
from tests.trial.runs import scored_run

MODULE = '''
from convergebench.metric import MetricSpec, StepView, lift

SPEC = MetricSpec("lowest", "3", "no-reference", True, typical=(0, 200), title="Darkest value")


@lift(SPEC)
def lowest(view: StepView) -> float:
    """The mean of the darkest tenth of all values."""
    values = sorted(view.frame.pixels.ravel().tolist())
    return sum(values[: len(values) // 10]) / (len(values) // 10)
'''


def test_a_plug_in_joins_by_being_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = install(tmp_path / "site", "darkest", {"metrics": {"lowest": "darkest_module:lowest"}})
    (place / "darkest_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(place))
    run = scored_run(tmp_path, repeats=1)
    score(run, ["lowest"], workers=1)
    trial = try_metrics(run, steps=[3, 5])
    assert set(trial.metrics) == {"noise", "sharpness", "lowest"}
    card = trial.card("lowest")
    assert (card.version, card.title, card.origin) == ("3", "Darkest value", "an installed metric")
    assert (card.low, card.high) == (0, 200)
    # Noise makes the darkest values darker, blur makes them brighter.
    assert card.failures_by_arm == {"ref:blur": 2, "ref:noise,sigma=8": 0}
    sys.modules.pop("darkest_module", None)
