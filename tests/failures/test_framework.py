"""Finding failures in a stored run: rows, rates, resuming, and what is computed only once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from convergebench import failures
from convergebench.errors import SettingsError, StoreDamaged, StoreError, UnknownName
from convergebench.failures import catalogue
from convergebench.failures.detector import Detector, Sighting
from convergebench.failures.finding import ROWS, stored_rows
from convergebench.failures.looking import Looker, Piece
from convergebench.failures.result import ROW_COLUMNS, band_of
from convergebench.failures.situation import constructed
from convergebench.metric import NoScore
from convergebench.runner import run
from convergebench.store import RunStore
from tests.failures.cycles import COPY
from tests.support.runs import picture, write_suite

MIRROR = """
[[cycle]]
name = "copy"
kind = "replicate"
[[cycle.edit]]
prompt = "Copy the picture."

[[cycle]]
name = "mirror"
kind = "mirror"
[[cycle.edit]]
prompt = "Mirror the picture."
operation = { kind = "flip", axis = "horizontal" }
"""
IMAGE = (
    "aspect-change", "crop", "size-mismatch", "mirror-failure", "colour-cast", "persistent-noise",
    "fixed-point",
)  # fmt: skip


def made(folder: Path, *, steps: int = 6, size: int = 64, **more: Any) -> Path:
    """A run of three editors over two small sources."""
    suite = write_suite(folder / "suite", cycles=MIRROR, size=size)
    table = {
        "suite": str(suite),
        "editors": ["ref:identity", "ref:noise,sigma=12", "ref:transport,format=jpeg"],
        "steps": steps,
        "controls": False,
    }
    run(folder / "run", table | more)
    return folder / "run"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("failures"))


def test_every_frame_has_a_row_of_every_detector_that_applies(small: Path) -> None:
    found = failures.find(small, detectors=IMAGE)
    assert list(found.rows.columns) == [*ROW_COLUMNS, "control"]
    assert found.rows.select("chain", "step", "detector").is_duplicated().sum() == 0
    counts = dict(found.rows.group_by("detector").len().iter_rows())
    frames = 3 * 2 * 2 * 6
    assert counts == {name: frames // (2 if name.startswith("mirror") else 1) for name in IMAGE}
    assert stored_rows(small).height == found.rows.height


def test_known_editors_fail_as_they_must(small: Path) -> None:
    found = failures.find(small, detectors=IMAGE)

    def rate(detector: str, editor: str) -> float:
        rows = found.rows.filter(
            (pl.col("detector") == detector) & pl.col("editor").str.starts_with(editor)
        )
        mean = rows["failed"].mean()
        assert isinstance(mean, float), rows
        return mean

    assert rate("fixed-point", "ref:identity") == 1
    assert rate("persistent-noise", "ref:noise") == 1
    assert rate("fixed-point", "ref:noise") == 0
    for name in ("aspect-change", "crop", "size-mismatch", "mirror-failure", "persistent-noise"):
        assert rate(name, "ref:identity") == 0


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    path = made(tmp_path, steps=4)
    chains, frames = 12, 12 * 4
    first = failures.find(path, detectors=["colour-cast"], steps=[1, 2], workers=1)
    assert (first.new, first.known) == (chains * 2, 0)
    assert first.decoded == chains * 3  # the source and two frames, each once
    same = failures.find(path, detectors=["colour-cast"], steps=[1, 2], workers=1)
    assert (same.new, same.known, same.decoded) == (0, chains * 2, 0)
    rest = failures.find(path, detectors=["colour-cast", "aspect-change"], workers=1)
    assert (rest.new, rest.known) == (chains * 2 + frames, chains * 2)
    assert rest.decoded == chains * 3  # sizes need no decoding


def test_a_frame_is_decoded_once_for_all_detectors(tmp_path: Path) -> None:
    path = made(tmp_path, steps=4)
    found = failures.find(path, detectors=IMAGE, workers=1)
    assert found.decoded == 12 * 5


def test_several_processes_find_what_one_finds(tmp_path: Path, small: Path) -> None:
    one = made(tmp_path)
    alone = failures.find(one, detectors=IMAGE, workers=1)
    several = failures.find(small, detectors=IMAGE, workers=3)
    assert alone.rows.drop("chain", "settings").equals(several.rows.drop("chain", "settings"))


def test_a_new_version_is_measured_again_and_replaces_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path, steps=2)
    before = failures.find(path, detectors=["aspect-change"], workers=1)
    newer = tuple(replace(d, version="next", threshold=-1.0) for d in catalogue.every())
    monkeypatch.setattr(catalogue, "every", lambda: newer)
    monkeypatch.setattr("convergebench.failures.looking.every", lambda: newer)
    after = failures.find(path, detectors=["aspect-change"], workers=1)
    assert (after.new, after.known) == (before.new, 0)
    assert after.rows["failed"].all()
    assert set(stored_rows(path)["version"]) == {"next"}


def test_controls_are_counted_and_marked(tmp_path: Path) -> None:
    path = made(tmp_path, steps=2, controls=True, editors=["ref:noise,sigma=12"])
    found = failures.find(path, detectors=["persistent-noise"])
    marks = dict(found.rows.select("editor", "control").unique().iter_rows())
    assert marks["ref:noise,sigma=12"] is False
    assert marks["ref:identity"] is True
    assert "ref:identity (control)" in str(found)


def test_rates_count_failed_frames_of_those_measured(small: Path) -> None:
    found = failures.find(small, detectors=["persistent-noise", "fixed-point"])
    rates = found.rates.filter(
        (pl.col("detector") == "fixed-point") & (pl.col("editor") == "ref:identity")
    )
    assert rates.select("band", "frames", "failed", "rate", "chains").rows() == [
        ("1", 4, 4, 1.0, 4),
        ("2–5", 16, 16, 1.0, 4),
        ("6–10", 4, 4, 1.0, 4),
    ]
    assert found.table.columns == ("detector", "editor", "step 1", "step 2–5", "step 6–10", "all")
    assert "24/24 (100 %)" in str(found)
    assert "<td>24/24 (100 %)</td>" in found._repr_html_()
    assert found.to_dict()["rates"][0]["detector"] == "persistent-noise"


@pytest.mark.parametrize(
    ("step", "band"),
    [(1, "1"), (2, "2–5"), (5, "2–5"), (6, "6–10"), (20, "11–20"), (100, "51–100"), (101, ">100")],
)
def test_steps_are_counted_in_bands(step: int, band: str) -> None:
    assert band_of(step) == band


def test_a_detector_that_fails_on_a_picture_is_a_null_row_with_its_reason() -> None:
    def broken(_: object) -> Sighting:
        raise ZeroDivisionError("by nothing")

    detector = Detector("broken", "1", "image", "", "", "", 0.0, True, lambda _: "", broken)
    situation = constructed(COPY, {0: picture(1), 1: picture(2)})
    assert detector.look(situation) == NoScore("ZeroDivisionError: by nothing")
    odd = replace(detector, measure=lambda _: Sighting(float("nan")))
    assert odd.look(situation) == NoScore("not a number")


def test_a_frame_that_is_not_there_is_a_null_row(tmp_path: Path) -> None:
    path = made(tmp_path, steps=2, editors=["ref:noise,sigma=12"], cycles=["copy"], sources=["s0"])
    store = RunStore.open(path)
    chain = store.chains()[0]
    store.frame_path(chain.held[2]).unlink()
    found = failures.find(path, detectors=["colour-cast"])
    lost = found.rows.filter(pl.col("step") == 2)
    assert lost["failed"].to_list() == [None]
    assert "cannot be read" in lost["detail"][0]
    assert "not measured: 1 × colour-cast" in str(found)
    again = failures.find(path, detectors=["colour-cast"], retry_null=True)
    assert (again.new, again.known) == (1, 1)


def test_a_piece_of_work_survives_the_pipe() -> None:
    piece = Piece("a--b--c", {1: ("crop",), 3: ("crop", "colour-cast")})
    assert Piece.from_json(piece.to_json()) == piece


def test_a_worker_that_dies_leaves_null_rows(
    small: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chain = RunStore.open(small).chains()[0].key.id
    seen = Looker(small).given_up(Piece(chain, {1: ("crop",)}), "its worker died 2 times")
    assert seen.rows[0][10:13] == (None, None, "its worker died 2 times")


def test_unknown_detectors_and_steps_are_one_sentence(small: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no detector called 'corp'. Did you mean crop\?"):
        failures.find(small, detectors=["corp"])
    with pytest.raises(SettingsError, match="no chain has step 50; the longest has 6"):
        failures.find(small, steps=[50])
    with pytest.raises(StoreError, match="is not a run directory"):
        failures.find(tmp_path)


def test_a_damaged_file_of_rows_says_what_to_do(tmp_path: Path) -> None:
    path = made(tmp_path, steps=1)
    (path / "failures").mkdir()
    (path / ROWS).write_bytes(b"no parquet")
    with pytest.raises(StoreDamaged, match="Remove it: everything in it can be computed again"):
        failures.find(path)


def test_error_rates_are_those_of_known_detectors() -> None:
    names = {detector.name for detector in failures.DETECTORS}
    rates = failures.error_rates()
    assert set(rates) <= names
    for rate in rates.values():
        assert rate.true_positive <= rate.positives
        assert rate.recall == pytest.approx(rate.true_positive / rate.positives, abs=1e-4)


KILLED = """
import sys
from convergebench import failures
from convergebench.failures import finding
finding.SAVE_EVERY = 0.0
failures.find(sys.argv[1], detectors=sys.argv[2].split(), workers=2)
"""


def test_a_killed_search_goes_on_where_it_was(tmp_path: Path) -> None:
    path, names = made(tmp_path, steps=30, size=96), "crop persistent-noise colour-cast"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), names], start_new_session=True
    )
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None and not (path / ROWS).exists():
        time.sleep(0.01)
    assert process.poll() is None, "the search ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = stored_rows(path).height
    whole = 12 * 30 * 3
    assert 0 < kept < whole
    found = failures.find(path, detectors=names.split())
    assert (found.new, found.known) == (whole - kept, kept)
    assert found.rows.select("chain", "step", "detector").is_duplicated().sum() == 0
    assert not found.rows["failed"].is_null().any()
