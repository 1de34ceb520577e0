"""Cards and the self-test that runs on the user's machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from convergebench import testcard as cards_source
from convergebench.cards import card, cards
from convergebench.doctor import doctor
from convergebench.errors import UnknownName
from convergebench.metric import KnownAnswer, LiftedMetric, Metric, MetricSpec, Needs, NoScore
from convergebench.registry import lacking
from tests.support.plugins import install


def right() -> Metric:
    spec = MetricSpec("right", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, lambda view: 2.05)


def wrong() -> Metric:
    spec = MetricSpec("wrong", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, lambda view: 2.2)


def silent() -> Metric:
    spec = MetricSpec("silent", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, lambda view: NoScore("cannot say"))


def raising() -> Metric:
    def measure(view: object) -> float:
        raise RuntimeError("broken inside")

    spec = MetricSpec("raising", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, measure)


def wanting() -> Metric:
    needs = Needs("iqa", ("no_such_module_here",), ("no-such-set",), ("NO_SUCH_SETTING",))
    spec = MetricSpec("wanting", "1", "no-reference", True, needs=needs)
    return LiftedMetric(spec, lambda view: 1.0)


def unknowing() -> Metric:
    return LiftedMetric(MetricSpec("unknowing", "1", "no-reference", True), lambda view: 1.0)


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("right", "wrong", "silent", "raising", "wanting", "unknowing")
    entries = {name: f"tests.test_doctor:{name}" for name in names}
    entries["broken"] = "tests.no_such_module:broken"
    place = install(tmp_path / "plugin", "clinic", {"metrics": entries})
    monkeypatch.syspath_prepend(str(place))


def test_the_test_card_has_the_same_pixels_everywhere() -> None:
    home, frame = cards_source.testcard()
    digests = [hashlib.sha256(pixels.tobytes()).hexdigest()[:8] for pixels in (home, frame)]
    assert digests == ["50bfc725", "3540c324"]


@pytest.mark.usefixtures("clinic")
def test_every_state_is_told() -> None:
    names = ("right", "wrong", "silent", "raising", "wanting", "unknowing")
    found = {check.metric: check for check in doctor(names).checks}
    assert {name: check.state for name, check in found.items()} == {
        "right": "ok",
        "wrong": "wrong",
        "silent": "failed",
        "raising": "failed",
        "wanting": "failed",  # it was asked for by name
        "unknowing": "unchecked",
    }
    assert found["wrong"].value == 2.2
    assert found["silent"].note == "cannot say"
    assert "broken inside" in found["raising"].note
    assert "no_such_module_here: not installed; `pip install" in found["wanting"].note
    assert "NO_SUCH_SETTING is not set" in found["wanting"].note
    listed = {one.name: one.state for one in cards()}["wanting"]
    assert listed == "lacks no_such_module_here, weights no-such-set, NO_SUCH_SETTING"


def test_every_ready_metric_gives_its_known_answer() -> None:
    found = doctor()
    assert not found.failed, str(found)
    assert sum(check.state == "ok" for check in found.checks) >= 10


@pytest.mark.usefixtures("clinic")
def test_cards_tell_what_is_missing_and_how_to_get_it() -> None:
    found = {one.name: one for one in cards()}
    assert found["psnr"].state == "ready"
    assert "pip install 'convergebench[iqa]'" in found["wanting"].remedy
    assert "cannot be loaded" in found["broken"].remedy
    assert "scikit-image" in str(card("psnr"))
    assert "10·log10(255² / MSE)" in str(card("PSNR"))
    with pytest.raises(UnknownName, match="psnr"):
        card("psnrr")


def test_nothing_lacks_where_nothing_is_needed() -> None:
    assert lacking(Needs()) == []
    assert lacking(Needs(modules=("json",))) == []


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "convergebench", *words], capture_output=True, text=True
    )


def test_commands() -> None:
    listed = json.loads(run("metrics", "list", "--json").stdout)
    assert {"psnr", "niqe", "musiq", "vlm"} <= {one["name"] for one in listed}
    ready = json.loads(run("metrics", "list", "--ready", "--json").stdout)
    assert ready
    assert all(one["ready"] for one in ready)
    sets = json.loads(run("metrics", "sets", "--json").stdout)
    assert len(sets["paper"]) == 23
    assert "typical range" in run("metrics", "show", "ssim").stdout
    done = run("doctor", "psnr", "ssim", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["failed"] == 0
    unknown = run("metrics", "show", "nicke")
    assert unknown.returncode == 2
    assert unknown.stderr.count("\n") == 1
