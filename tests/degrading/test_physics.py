"""Known answers: what optics, sensors, film, paper and recorders must do."""

from __future__ import annotations

import numpy as np
import pytest

from convergebench.degrading import blur, chance, film, lettering, light, marks, paper, photo, zoom
from convergebench.degrading import surveillance as cctv
from convergebench.degrading.blur import disc, traced, trajectory
from tests.degrading.measured import Pixels, blocking, drawn


def plain(value: int, side: int = 128) -> Pixels:
    return np.full((side, side, 3), value, np.uint8)


@pytest.mark.parametrize("radius", [0.1, 0.5, 1.0, 2.5, 7.3, 20.0])
@pytest.mark.parametrize("blades", [0, 6, 9])
def test_a_disc_sums_to_one_and_is_centred(radius: float, blades: int) -> None:
    kernel = disc(radius, blades, 0.3)
    side = len(kernel)
    assert side % 2 == 1
    assert kernel.sum() == pytest.approx(1.0, abs=1e-12)
    at = np.arange(side) - side // 2
    assert abs((kernel.sum(axis=0) * at).sum()) < 0.02 * max(radius, 1.0)
    assert abs((kernel.sum(axis=1) * at).sum()) < 0.02 * max(radius, 1.0)


def test_a_disc_is_flat_and_as_large_as_it_should_be() -> None:
    kernel = disc(10.0)
    assert kernel.max() == pytest.approx(1.0 / (np.pi * 100.0), rel=0.01)
    y, x = np.mgrid[-10:11, -10:11]
    inside = np.hypot(x, y) < 9.0
    assert np.ptp(kernel[inside]) == 0.0
    # The second moment of a disc of radius r about a diameter is r²/4.
    assert (kernel * x**2).sum() == pytest.approx(25.0, rel=0.02)
    assert len(disc(0.2)) == 1


def test_blur_keeps_the_energy_of_light_away_from_borders() -> None:
    scene = np.zeros((81, 81, 3))
    scene[38:42, 40:44] = (0.9, 0.5, 0.2)
    for kernel in (disc(9.0, 7), traced(12.0 * trajectory(chance.generator(1), 1.0))):
        blurred = light.convolved(scene, kernel)
        assert blurred.sum(axis=(0, 1)) == pytest.approx(scene.sum(axis=(0, 1)), rel=1e-9)
        assert blurred.min() > -1e-12


def test_linear_light_and_back_is_the_same_picture() -> None:
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, axis=2)
    assert np.array_equal(light.to_bytes(light.encoded(light.linear(ramp))), ramp)
    assert light.linear(plain(188))[0, 0, 0] == pytest.approx(0.503, abs=1e-3)


def test_defocus_mixes_light_and_not_the_numbers_of_a_file() -> None:
    # Black and white lines finer than the disc become the grey of half the light, 188, not 128.
    lines = plain(0, 256)
    lines[::2] = 255
    settings = blur.Defocus(least=60.0, most=60.0, bloom=0.0, noise=0.0)
    damaged = blur.defocus(lines, settings, chance.generator(0))
    assert damaged[64:192, 64:192].mean() == pytest.approx(188.0, abs=1.5)


def test_defocus_varies_over_the_picture_and_highlights_become_discs() -> None:
    lamp = plain(8, 512)
    lamp[254:258, 254:258] = 255
    settings = blur.Defocus(least=24.0, most=24.0, bloom=6.0, noise=0.0)
    damaged = blur.defocus(lamp, settings, chance.generator(0))
    without = blur.defocus(
        lamp, blur.Defocus(24.0, 24.0, bloom=0.0, noise=0.0), chance.generator(0)
    )
    assert damaged[256, 256, 0] > without[256, 256, 0] > 8
    assert damaged[256, 256, 0] == pytest.approx(damaged[256, 264, 0], abs=2)  # flat inside
    away = blur.depth(chance.generator(3), (120, 200, 3))
    assert away.min() == 0.0
    assert away.max() == 1.0
    assert np.abs(np.diff(away, axis=0)).max() < 0.1


@pytest.mark.parametrize("seed", range(8))
def test_a_shaken_camera_draws_a_curved_centred_path_of_extent_one(seed: int) -> None:
    path = trajectory(chance.generator(seed), 1.0)
    assert np.abs(path.mean(axis=0)).max() < 1e-9
    apart = np.sqrt(((path[:, None] - path[None]) ** 2).sum(axis=2))
    assert apart.max() == pytest.approx(1.0)
    steps = np.sqrt((np.diff(path, axis=0) ** 2).sum(axis=1))
    assert steps.max() < 0.05  # it does not jump
    chord = np.hypot(*(path[-1] - path[0]))
    assert steps.sum() > 1.005 * chord  # nor is it straight


@pytest.mark.parametrize("extent", [0.3, 3.0, 17.5, 60.0])
def test_a_motion_kernel_sums_to_one_and_its_centroid_is_the_middle(extent: float) -> None:
    kernel = traced(extent * trajectory(chance.generator(5), 1.0))
    side = len(kernel)
    at = np.arange(side) - side // 2
    assert side % 2 == 1
    assert kernel.sum() == pytest.approx(1.0, abs=1e-12)
    assert abs((kernel.sum(axis=0) * at).sum()) < 1e-9
    assert abs((kernel.sum(axis=1) * at).sum()) < 1e-9


def test_roll_blurs_corners_more_than_the_middle() -> None:
    dots = plain(0, 513)
    places = [(256, 256), (40, 40), (40, 472), (472, 40), (472, 472)]
    for y, x in places:
        dots[y - 2 : y + 3, x - 2 : x + 3] = 255
    settings = blur.Motion(extent=2.0, roll=4.0, jerk=0.0, noise=0.0)
    damaged = blur.motion(dots, settings, chance.generator(2))
    middle, *corners = (damaged[y - 3 : y + 4, x - 3 : x + 4].max() for y, x in places)
    assert middle > 1.3 * max(corners)


def test_a_mosaic_of_grey_gives_grey_back_and_its_noise_grows_with_light() -> None:
    grey = np.full((64, 64, 3), 0.4)
    back = zoom.demosaiced(zoom.mosaic(grey))
    assert back == pytest.approx(grey, abs=1e-4)
    red = np.zeros((64, 64, 3))
    red[..., 0] = 0.6
    got = zoom.demosaiced(zoom.mosaic(red))[8:-8, 8:-8].mean(axis=(0, 1))
    assert got == pytest.approx([0.6, 0.0, 0.0], abs=1e-3)  # red is red: the mosaic's order fits
    dark, bright = zoom.noise_of(np.array([0.0, 1.0]), 1000.0, 10.0)
    assert dark == pytest.approx(0.01)
    assert bright == pytest.approx(np.sqrt(1100.0) / 1000.0)


def test_sharpening_leaves_a_halo_and_flat_places_alone() -> None:
    edge = np.full((32, 64, 3), 0.3)
    edge[:, 32:] = 0.6
    sharp = zoom.sharpened(edge, 2.0, 1.5)
    assert sharp.max() > 0.65
    assert sharp.min() < 0.25
    assert sharp[:, :16] == pytest.approx(0.3)


def test_a_zoomed_picture_is_a_jpeg_of_eight_pixel_blocks() -> None:
    clean = drawn("foliage", 256)
    hard = zoom.DigitalZoom(lines=250, photons=1e6, read=0.0, smear=0.0, sharpen=0.0, quality=10)
    soft = zoom.DigitalZoom(lines=250, photons=1e6, read=0.0, smear=0.0, sharpen=0.0, quality=98)
    made = [zoom.digital_zoom(clean, p, chance.generator(0)) for p in (hard, soft)]
    assert blocking(made[0], 8) > 1.15 * blocking(made[1], 8)


def test_film_scratches_run_along_the_film() -> None:
    settings = film.OldFilm(
        soft=0.0, colour=0.0, tone=0.0, contrast=1.0, grain=0.0, grain_size=1.0, flicker=0.0,
        vignette=0.0, scratches=20, dust=0, hairs=0, blotches=0.0,
    )  # fmt: skip
    damaged = film.old_film(plain(120, 512), settings, chance.generator(1)).astype(np.float64)
    across = np.abs(np.diff(damaged, axis=1)).mean()
    along = np.abs(np.diff(damaged, axis=0)).mean()
    assert across > 8.0 * along > 0.0


def test_film_without_damage_is_nearly_the_picture_and_a_vignette_darkens_corners() -> None:
    settings = film.OldFilm(
        soft=0.0, colour=0.0, tone=0.0, contrast=1.0, grain=0.0, grain_size=1.0, flicker=0.0,
        vignette=0.5, scratches=0, dust=0, hairs=0, blotches=0.0,
    )  # fmt: skip
    damaged = film.old_film(plain(200, 256), settings, chance.generator(1))
    assert damaged[128, 128, 0] > 190
    assert damaged[2, 2, 0] < 0.85 * damaged[128, 128, 0]


def test_grain_is_as_large_as_asked_and_fades_in_previews() -> None:
    rng = chance.generator(4)
    fine, coarse = (chance.grain(rng, (1024, 1024), size) for size in (1.0, 6.0))
    beside = [float((g[:, 1:] * g[:, :-1]).mean() / g.var()) for g in (fine, coarse)]
    assert abs(beside[0]) < 0.02
    assert beside[1] > 0.85
    assert coarse.std() == pytest.approx(1.0)
    assert chance.grain(rng, (128, 128), 2.0).std() == pytest.approx(0.25, rel=0.05)


def test_fields_have_about_unit_variance_and_do_not_depend_on_size() -> None:
    fields = [chance.field(chance.generator(seed), (200, 300), 6.0) for seed in range(12)]
    assert np.std(fields) == pytest.approx(1.0, abs=0.25)
    large = chance.field(chance.generator(1), (400, 400), 5.0)
    small = chance.field(chance.generator(1), (100, 100), 5.0)
    shrunk = large.reshape(100, 4, 100, 4).mean(axis=(1, 3))
    assert np.abs(shrunk - small).max() < 0.1


def test_colour_prints_lose_cyan_first_and_turn_red() -> None:
    for level in photo.OLD_PHOTO_COLOUR:
        assert level.cyan < level.yellow < level.magenta < 1.0
    red, green, blue = (
        photo.old_photo_colour(plain(90, 256), photo.OLD_PHOTO_COLOUR[2], chance.generator(2))[
            64:192, 64:192
        ]
        .reshape(-1, 3)
        .mean(axis=0)
    )
    assert red > green + 15
    assert red > blue + 15


def test_black_and_white_prints_fade_and_yellow() -> None:
    for level in photo.OLD_PHOTO_BW:
        dark, bright = (
            photo.old_photo_bw(plain(v, 256), level, chance.generator(2)).reshape(-1, 3)
            for v in (0, 255)
        )
        black, white = np.median(dark, axis=0), np.median(bright, axis=0)
        assert black.mean() > 0.7 * 255 * level.black
        assert white.mean() < 255 * level.white
        assert white[0] >= white[2]  # cream, not blue


def test_creases_have_a_light_and_a_dark_side() -> None:
    folds = paper.folded(chance.generator(3), (512, 512), 1, 0.0)
    assert folds.shade.max() > 0.015
    assert folds.shade.min() < -0.015
    assert 0.0 <= folds.bare.min() <= folds.bare.max() <= 1.0
    none = paper.folded(chance.generator(3), (512, 512), 0, 1.0)
    assert not none.shade.any()
    assert not none.bare.any()


def test_halftone_keeps_the_mean_tone_and_has_its_pitch() -> None:
    tone = np.full((1024, 1024), 0.5)
    dots = paper.halftone(tone, 8.0)
    assert dots.mean() == pytest.approx(0.5, abs=0.01)
    assert dots.std() > 0.2
    power = np.abs(np.fft.rfft2(dots - dots.mean()))
    row, column = np.unravel_index(power.argmax(), power.shape)
    frequency = np.hypot(min(row, 1024 - row), column) / 1024
    assert 1.0 / frequency == pytest.approx(8.0, rel=0.03)
    assert paper.halftone(np.full((96, 96), 0.5), 8.0).std() < 0.01  # too fine to be seen


def test_stains_dry_with_a_darker_edge() -> None:
    inside, tide = paper.stained(chance.generator(5), (256, 256), 3)
    assert 0.005 < (tide > 0.3).mean() < (inside > 0.2).mean() < 0.9
    empty = paper.stained(chance.generator(5), (256, 256), 0)
    assert not empty[0].any()
    assert not empty[1].any()


def test_marks_keep_their_weight_in_small_pictures() -> None:
    weights = []
    for side in (1024, 256, 64):
        sheet = marks.Sheet((side, side, 3))
        sheet.line(np.array([[200.0, 100.0], [800.0, 900.0]]), 3.0)
        weights.append(float(sheet.cover().mean()))
    assert weights[1] == pytest.approx(weights[0], rel=0.35)
    assert weights[2] == pytest.approx(weights[0], rel=0.35)


def test_fields_of_a_recording_are_combed_apart_by_half_each_way() -> None:
    bar = np.zeros((40, 64, 3))
    bar[:, 32:] = 1.0
    combed = cctv._combed(bar, 4.0, chance.generator(1))
    even, odd = combed[0::2, :, 0].sum(), combed[1::2, :, 0].sum()
    assert even != pytest.approx(odd, rel=0.02)
    assert combed.sum() == pytest.approx(bar.sum(), rel=0.02)


def test_recordings_have_few_lines_blocks_little_colour_and_the_time() -> None:
    clean = drawn("still-life", 864)
    level = cctv.SURVEILLANCE[1]
    damaged = cctv.surveillance(clean, level, chance.generator(1))
    # 288 lines on 864 pixels: blocks of 8 lines are 24 pixels.
    assert blocking(damaged, 24) > 1.1

    def colourfulness(pixels: Pixels) -> float:
        return float(np.ptp(pixels.astype(np.float64), axis=2).mean())

    assert colourfulness(damaged) < 0.7 * colourfulness(clean)
    assert damaged[:90, :400].max() > 225  # white letters


def test_the_time_is_a_time_and_every_letter_of_it_can_be_written() -> None:
    for seed in range(50):
        camera, time = lettering.stamp(chance.generator(seed))
        assert lettering.written(camera).any()
        mask = lettering.written(time)
        assert mask.shape == (7, 6 * len("2004-01-01 00:00:00"))
        assert set(np.unique(mask)) == {0.0, 1.0}
    tiny = np.full((24, 24, 3), 0.5)
    assert np.array_equal(lettering.stamped(tiny, chance.generator(0)), tiny)
