"""The degradation engine as a whole: repeatable, of any size, ordered by severity, aligned."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convergebench import degrading
from convergebench.degrading import KINDS, SEVERITIES, degrade, degrade_all, parameters
from convergebench.errors import InputError, UnknownName
from convergebench.frame import Frame
from convergebench.preparation.clean import squared
from tests.degrading.measured import SCENES, Pixels, displacement, drawn, psnr, ssim

# What decides these digests: the drawn scene (itself pinned), the engine, NumPy's PCG64 streams,
# OpenCV's demosaicing and drawing (whole numbers), and libjpeg-turbo's whole-number transform.
# Arithmetic in floats does not: see test_other_processor_features_give_the_same_bytes.
GOLDEN: dict[str, str] = json.loads((Path(__file__).parent / "golden.json").read_text())

DIGESTS = """
import hashlib, json, sys
import cv2
from convergebench.degrading import KINDS, SEVERITIES, degrade
from convergebench.drawing import scene
cv2.setNumThreads(int(sys.argv[1]))
clean = scene("foliage", 96, 96)
print(json.dumps({
    f"{kind}/{severity}": hashlib.sha256(degrade(clean, kind, severity, 1).tobytes()).hexdigest()
    for kind in KINDS for severity in SEVERITIES
}))
"""

every_kind = pytest.mark.parametrize("kind", KINDS)


def digests(threads: int, **environment: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS, str(threads)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_public_names_are_sorted_and_complete() -> None:
    assert degrading.__all__ == sorted(degrading.__all__)
    for name in degrading.__all__:
        assert hasattr(degrading, name)


@every_kind
@pytest.mark.parametrize("severity", SEVERITIES)
def test_damage_is_what_was_pinned(kind: str, severity: int) -> None:
    damaged = degrade(drawn("foliage", 96), kind, severity, 1)
    assert hashlib.sha256(damaged.tobytes()).hexdigest() == GOLDEN[f"{kind}/{severity}"]


def test_other_processor_features_give_the_same_bytes() -> None:
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    features = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    plain = digests(
        1,
        NPY_DISABLE_CPU_FEATURES=",".join(features),
        OPENCV_CPU_DISABLE="AVX512-SKX,AVX2,FP16,AVX",
        OPENCV_IPP="disabled",
    )
    assert plain == GOLDEN


def test_the_number_of_threads_changes_nothing() -> None:
    clean = drawn("library", 200)
    before = cv2.getNumThreads()
    try:
        for kind in KINDS:
            found = set()
            for threads in (1, 5):
                cv2.setNumThreads(threads)
                found.add(degrade(clean, kind, 3, 2).tobytes())
            assert len(found) == 1, kind
    finally:
        cv2.setNumThreads(before)


@every_kind
def test_other_seeds_and_other_severities_give_other_pictures(kind: str) -> None:
    clean = drawn("still-life", 128)
    made = {
        degrade(clean, kind, severity, seed).tobytes() for severity in SEVERITIES for seed in (0, 1)
    }
    assert len(made) == 6


@settings(max_examples=40)
@given(
    kind=st.sampled_from(list(KINDS)),
    severity=st.sampled_from(SEVERITIES),
    height=st.integers(16, 90),
    width=st.integers(16, 90),
    seed=st.integers(0, 2**63),
    fill=st.sampled_from(["noise", "black", "white"]),
)
def test_size_and_type_are_kept_and_the_input_is_not_touched(
    kind: str, severity: int, height: int, width: int, seed: int, fill: str
) -> None:
    if fill == "noise":
        clean = np.random.default_rng(1).integers(0, 256, (height, width, 3)).astype(np.uint8)
    else:
        clean = np.full((height, width, 3), 255 if fill == "white" else 0, np.uint8)
    kept = clean.copy()
    damaged = degrade(clean, kind, severity, seed)
    assert damaged.shape == clean.shape
    assert damaged.dtype == np.uint8
    assert np.array_equal(clean, kept)
    assert np.array_equal(damaged, degrade(clean, kind, severity, seed))


@every_kind
@pytest.mark.parametrize("shape", [(16, 700), (700, 16), (333, 64)])
def test_long_and_narrow_pictures_are_damaged_too(kind: str, shape: tuple[int, int]) -> None:
    clean = np.random.default_rng(2).integers(0, 256, (*shape, 3)).astype(np.uint8)
    damaged = degrade(clean, kind, 3, 0)
    assert damaged.shape == clean.shape
    assert not np.array_equal(damaged, clean)


@every_kind
def test_views_of_larger_arrays_are_taken_as_they_are(kind: str) -> None:
    whole = drawn("foliage", 128)
    view: Pixels = whole[8:72, 100:20:-1]
    assert np.array_equal(degrade(view, kind), degrade(np.ascontiguousarray(view), kind))


@every_kind
def test_more_severe_is_worse_on_average(kind: str) -> None:
    cleans = [drawn(name) for name in SCENES]
    levels = []
    for severity in SEVERITIES:
        made = [(clean, degrade(clean, kind, severity, seed)) for seed, clean in enumerate(cleans)]
        levels.append(
            (np.mean([psnr(*pair) for pair in made]), np.mean([ssim(*pair) for pair in made]))
        )
    assert [p for p, _ in levels] == sorted((p for p, _ in levels), reverse=True), levels
    assert [s for _, s in levels] == sorted((s for _, s in levels), reverse=True), levels
    assert levels[0][1] - levels[2][1] > 0.05, levels


# Where a picture shaken along a hook lies is a matter of taste; that the hook's centroid is the
# middle is tested with the kernel.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "motion"])
def test_pairs_stay_aligned(kind: str) -> None:
    for name in ("library", "still-life"):
        clean = drawn(name, 256)
        for severity in SEVERITIES:
            assert displacement(clean, degrade(clean, kind, severity, 4)) < 1.0, (name, severity)


def test_a_shifted_picture_would_be_noticed() -> None:
    clean = drawn("library", 256)
    assert displacement(clean, np.roll(clean, 3, axis=1)) > 2.0


@every_kind
def test_a_preview_looks_like_the_picture_it_is_a_preview_of(kind: str) -> None:
    large = drawn("portrait", 512)
    small = cv2.resize(large, (256, 256), interpolation=cv2.INTER_AREA).astype(np.uint8)
    shrunk = cv2.resize(
        degrade(large, kind, 2, 3), (256, 256), interpolation=cv2.INTER_AREA
    ).astype(np.uint8)
    preview = degrade(small, kind, 2, 3)
    # The same marks in the same places: nearer to each other than to the clean picture.
    soft = [cv2.GaussianBlur(p, (0, 0), 2.0).astype(np.uint8) for p in (shrunk, preview, small)]
    other = cv2.GaussianBlur(degrade(small, kind, 2, 4), (0, 0), 2.0).astype(np.uint8)
    assert psnr(soft[0], soft[1]) > 30.0
    assert psnr(soft[0], soft[1]) > psnr(soft[0], soft[2])
    assert psnr(soft[0], soft[1]) > psnr(soft[0], other)


def test_several_damages_are_applied_in_order() -> None:
    clean = drawn("still-life", 96)
    first = degrade(clean, "defocus", 2, 5)
    both = degrade_all(clean, [("defocus", 2, 5), ("surveillance", 1, 6)])
    assert np.array_equal(both, degrade(first, "surveillance", 1, 6))
    turned = degrade_all(clean, [("surveillance", 1, 6), ("defocus", 2, 5)])
    assert not np.array_equal(both, turned)
    assert np.array_equal(degrade_all(clean, []), clean)


@every_kind
def test_parameters_are_frozen_numbers_for_three_severities(kind: str) -> None:
    table = parameters(kind)
    assert len(table) == len(SEVERITIES)
    for level in table:
        assert is_dataclass(level)
        told = type(level).__doc__ or ""
        for field in fields(level):
            assert f"{field.name}:" in told
            value = getattr(level, field.name)
            assert isinstance(value, int | float) or is_dataclass(value)
    assert len(set(table)) == len(table)


def test_what_cannot_be_damaged_is_said() -> None:
    clean = drawn("foliage", 32)
    with pytest.raises(UnknownName, match="no degradation called 'defocuss'"):
        degrade(clean, "defocuss")
    with pytest.raises(UnknownName, match="no degradation called"):
        parameters("fog")
    with pytest.raises(InputError, match="severity 4 of motion: give 1, 2 or 3"):
        degrade(clean, "motion", 4)
    with pytest.raises(InputError, match="seed -1 of motion"):
        degrade(clean, "motion", 1, -1)
    with pytest.raises(InputError, match="20×15 pixels: give a picture of at least 16×16"):
        degrade(clean[:15, :20], "motion")
    with pytest.raises(InputError, match="give H×W×3 uint8 pixels"):
        degrade(clean[..., 0], "motion")
    with pytest.raises(InputError, match="cannot degrade float64 values"):
        degrade(clean / 255.0, "motion")  # type: ignore[arg-type]


def test_importing_the_engine_loads_no_heavy_library() -> None:
    code = "import sys, convergebench.degrading; print(sorted({'cv2', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.shared
def test_photographs_are_damaged_more_by_every_severity_and_stay_in_place(shared: Path) -> None:
    photos = [
        squared(Frame(path.read_bytes()).pixels, 192)
        for path in sorted((shared / "data" / "photos" / "kodak24").glob("*.png"))[3:24:6]
    ]
    assert len(photos) == 4
    for kind in KINDS:
        made = [[degrade(photo, kind, level, 1) for photo in photos] for level in SEVERITIES]
        likeness = [
            float(np.mean([ssim(*pair) for pair in zip(photos, damaged, strict=True)]))
            for damaged in made
        ]
        assert likeness == sorted(likeness, reverse=True), (kind, likeness)
        apart = [displacement(*pair) for pair in zip(photos, made[1], strict=True)]
        assert kind == "motion" or max(apart) < 1.0, (kind, apart)
