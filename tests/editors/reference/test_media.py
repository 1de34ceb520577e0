from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from convergebench.editors.reference import media
from convergebench.testing.pictures import colourful


def dice(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def rmse(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float(np.sqrt(np.mean((one.astype(float) - other) ** 2)))


def flat(level: int = 128, side: int = 128) -> NDArray[np.uint8]:
    return np.full((side, side, 3), level, np.uint8)


def checkerboard(side: int = 64) -> NDArray[np.uint8]:
    cells = np.indices((side, side)).sum(axis=0) % 2
    return np.repeat((cells * 100 + 78).astype(np.uint8)[..., None], 3, axis=2)


def test_resample_loses_what_the_smaller_size_cannot_hold() -> None:
    board, smooth = checkerboard(), colourful(64, 64)
    assert media.resample(board, 0.5).std() < board.std() / 4
    assert media.resample(smooth, 0.9).shape == smooth.shape
    assert 0 < rmse(media.resample(smooth, 0.9), smooth) < rmse(media.resample(smooth, 0.5), smooth)
    assert np.array_equal(media.resample(smooth, 1.0), smooth)


def test_blur_spreads_a_point_by_its_sigma() -> None:
    point = flat(0, 65)
    point[32, 32] = 255
    for sigma in (1.0, 1.5):
        peak = media.blur(point, sigma)[32, 32, 0]
        assert peak == pytest.approx(255 / (2 * math.pi * sigma**2), rel=0.05)


@pytest.mark.parametrize("sigma", [1.0, 5.0, 20.0])
def test_noise_has_its_sigma_and_no_bias(sigma: float) -> None:
    change = media.noise(flat(side=256), dice(), sigma).astype(float) - 128
    assert change.std() == pytest.approx(math.sqrt(sigma**2 + 1 / 12), rel=0.02)  # plus rounding
    assert abs(change.mean()) < 5 * sigma / math.sqrt(change.size)
    channels = np.corrcoef(change.reshape(-1, 3), rowvar=False)
    assert np.abs(channels - np.eye(3)).max() < 0.03


def test_tint_moves_green_up_and_the_others_down() -> None:
    assert media.tint(flat(128), 5)[0, 0].tolist() == [126, 133, 126]
    assert media.tint(flat(254), 5)[0, 0].tolist() == [252, 255, 252]
    assert media.tint(flat(1), 5)[0, 0].tolist() == [0, 6, 0]


def test_shift_moves_exactly_and_repeats_the_edge() -> None:
    picture = colourful(40, 30)
    moved = media.shift(picture, 3, -2)
    assert np.array_equal(moved[:-2, 3:], picture[2:, :-3])
    assert np.array_equal(moved[:-2, 0], picture[2:, 0])
    assert np.array_equal(moved[-1, 3:], picture[-1, :-3])
    assert np.array_equal(media.shift(picture, -500, 0)[:, 0], picture[:, -1])


def test_crop_cuts_the_middle_out() -> None:
    picture = colourful(100, 50)
    cut = media.crop(picture, 0.04, "both", keep_size=False)
    assert np.array_equal(cut, picture[1:49, 2:98])
    assert np.array_equal(media.crop(picture, 0.04, "width", keep_size=False), picture[:, 2:98])
    assert np.array_equal(media.crop(picture, 0.04, "height", keep_size=False), picture[1:49])
    back = media.crop(picture, 0.04, "both", keep_size=True)
    assert back.shape == picture.shape
    assert rmse(back, picture) > 1
    assert media.crop(picture[:1, :1], 0.9, "both", keep_size=False).shape == (1, 1, 3)


def test_smooth_takes_texture_and_leaves_edges() -> None:
    textured = media.noise(flat(90), dice(), 6)
    textured[:, 64:] = media.noise(flat(190), dice(2), 6)[:, 64:]
    result = media.smooth(textured, 18, 3).astype(float)
    assert result[10:-10, 10:54].std() < textured[10:-10, 10:54].std() / 2
    assert result[:, 66].mean() - result[:, 61].mean() == pytest.approx(100, abs=4)


def test_scatter_hits_its_share_of_pixels_by_its_contrast() -> None:
    change = media.scatter(flat(side=300), dice(), 0.01, 50).astype(int) - 128
    assert (change[..., 0] == change[..., 1]).all()
    assert (change[..., 1] == change[..., 2]).all()
    assert set(np.unique(change)) == {-50, 0, 50}
    assert (change[..., 0] != 0).mean() == pytest.approx(0.01, abs=0.002)
    assert (change[..., 0] > 0).sum() == pytest.approx((change[..., 0] < 0).sum(), rel=0.2)


def test_latent_with_a_fine_quantum_and_all_orders_is_the_identity() -> None:
    picture = colourful(53, 37)
    for step in range(8):
        assert np.array_equal(media.latent(picture, step, 15, 0.01, moving=True), picture)


def test_latent_drops_the_high_orders() -> None:
    board = checkerboard()
    assert media.latent(board, 0, 6, 0.01, moving=False).std() < board.std() / 4
    ramp = np.repeat(np.arange(64, dtype=np.uint8)[None, :, None] * 3, 3, axis=2)
    ramp = np.repeat(ramp, 64, axis=0)
    assert rmse(media.latent(ramp, 0, 8, 0.01, moving=False), ramp) < 1


def test_latent_settles_on_a_fixed_grid_and_drifts_on_a_moving_one() -> None:
    source = media.noise(colourful(128, 128), dice(), 8)
    losses = {}
    for moving in (False, True):
        frame, found = source, []
        for step in range(1, 13):
            frame = media.latent(frame, step, 6, 12, moving=moving)
            found.append(rmse(frame, source))
        losses[moving] = found
    assert losses[False][-1] == pytest.approx(losses[False][0], rel=0.02)
    assert losses[True][-1] > 1.15 * losses[True][0]
    assert np.all(np.diff(losses[True]) > -0.05)


def test_a_latent_block_keeps_its_mean() -> None:
    """The lowest coefficient survives, so areas stay as bright as they were, within a quantum."""
    picture = colourful(64, 64)
    result = media.latent(picture, 0, 1, 1.0, moving=False)
    assert result.astype(float).mean() == pytest.approx(picture.mean(), abs=0.5)
    assert (result[:8, :8].reshape(-1, 3) == result[0, 0]).all()


def test_levels_round_and_clip() -> None:
    samples = np.array([-3.0, 0.4, 0.6, 254.6, 300.0])
    assert media.levels(samples).tolist() == [0, 0, 1, 255, 255]


def test_luma_is_that_of_bt_601() -> None:
    primaries = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]], np.uint8)
    assert media.luma(primaries)[0] == pytest.approx([76.245, 149.685, 29.07, 255.0], abs=0.01)
