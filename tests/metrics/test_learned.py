"""The cards of the learned metrics, and what they say where pyiqa or weights are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from convergebench import weights
from convergebench.errors import MetricUnavailable
from convergebench.metrics import learned
from convergebench.metrics.learned import Factory

PAPER = {
    "arniqa": (0, 1),
    "clipiqa": (0, 1),
    "cnniqa": (0, 1),
    "dbcnn": (0, 1),
    "hyperiqa": (0, 1),
    "liqe": (1, 5),
    "maniqa": (0, 1),
    "musiq": (0, 100),
    "nima": (0, 10),
    "paq2piq": (0, 100),
    "qalign": (1, 5),
    "qualiclip": (0, 1),
    "topiq-nr": (0, 1),
    "tres": (0, 100),
    "wadiqam": (-1, 0.1),
}
"""Typical ranges of the replication paper's table; higher is better in each of these."""


def factory(name: str) -> Factory:
    found: Factory = getattr(learned, name.replace("-", "_"))
    return found


@pytest.mark.parametrize(("name", "typical"), PAPER.items())
def test_names_ranges_and_directions_are_the_papers(name: str, typical: tuple[float, ...]) -> None:
    spec = factory(name).spec
    assert (spec.name, spec.typical, spec.higher_is_better) == (name, typical, True)


@pytest.mark.parametrize("name", [*PAPER, "cnniqa-live"])
def test_a_card_says_what_it_needs(name: str) -> None:
    spec = factory(name).spec
    assert spec.kind == "no-reference"
    assert spec.isolated
    assert spec.cost != "cheap"
    assert spec.needs.extra == "iqa"
    assert {"pyiqa", "torch"} <= set(spec.needs.modules)
    assert spec.needs.weights == (name,)
    assert spec.paper.startswith("https://")
    assert f"pyiqa{learned.PYIQA}-" in spec.version
    assert spec.title in (factory(name).__doc__ or "")


@pytest.mark.parametrize("name", [*PAPER, "cnniqa-live"])
def test_the_catalogue_knows_every_file(name: str) -> None:
    for file in factory(name).files:
        assert weights.catalogue().member(name, file).file.name == file


def test_what_lower_means_for_live() -> None:
    spec = learned.cnniqa_live.spec
    assert not spec.higher_is_better  # it predicts DMOS: what was lost
    assert spec.typical == (0, 100)


def test_cards_load_nothing_heavy() -> None:
    program = (
        "import sys; from convergebench.metrics import learned; learned.musiq.spec;"
        "sys.exit(bool({'torch', 'pyiqa', 'timm'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_the_extra_it_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "find_spec", lambda module: None)
    with pytest.raises(
        MetricUnavailable,
        match=r"musiq needs pyiqa, torch\. Run pip install 'convergebench\[iqa\]'",
    ):
        learned.musiq()


@pytest.mark.parametrize("name", PAPER)
def test_without_weights_it_names_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _installed(monkeypatch)
    for variable in ("CONVERGEBENCH_WEIGHTS", "TORCH_HOME", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    with pytest.raises(MetricUnavailable, match=f"convergebench weights pull {name}`"):
        factory(name)()


def test_a_folder_without_the_file_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _installed(monkeypatch)
    with pytest.raises(MetricUnavailable, match=r"tres: there is no file .*tres_koniq-f0502926"):
        learned.tres(folder=tmp_path)


def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if pyiqa were installed; the network itself is not opened by these tests."""
    monkeypatch.setattr(learned, "find_spec", lambda module: object())
    monkeypatch.setattr(learned, "version", lambda package: learned.PYIQA)
