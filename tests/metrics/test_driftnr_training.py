"""The training of drift-nr: the same seed gives the same file, and the file is the recipe's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import driftnr_damage, driftnr_data, driftnr_pictures, train_driftnr

from convergebench.drawing import SCENES
from convergebench.metrics import driftnr


def test_a_small_training_is_repeatable_to_the_last_digit() -> None:
    fits = []
    for _ in range(2):
        data = train_driftnr.gathered(0.004, seed=3, workers=1)
        fits.append(train_driftnr.fitted(data, seed=3, rounds=15))
    assert json.dumps(fits[0]) == json.dumps(fits[1])
    assert len(data.manners) == sum(round(0.004 * n) for n in driftnr_data.BLOCKS.values())
    trained = driftnr.Network.of(fits[0])
    scores = np.array([trained.score(row) for row in data.rows])
    better, worse = data.worse.T
    assert np.mean(scores[worse] > scores[better]) > 0.9


def test_another_seed_gives_another_chain() -> None:
    one, same, other = (driftnr_data.chain(seed, "plain", 4) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one.frames, same.frames, strict=True))
    assert not np.array_equal(one.frames[0], other.frames[0])


@pytest.mark.parametrize("block", driftnr_data.BLOCKS)
def test_chains_of_every_block_decay_and_keep_their_size(block: str) -> None:
    for number in range(2):
        made = driftnr_data.chain(5, block, number)
        assert len(made.frames) == len(driftnr_data.STEPS)
        assert len({frame.shape for frame in made.frames}) == 1
        assert not np.array_equal(made.frames[0], made.frames[-1])
        assert all(min(variant.shape[:2]) >= 64 for _, variant in made.harmless)


MANNERS = {**driftnr_damage.MEDIA, **driftnr_damage.OWN, **driftnr_damage.GROWING}


@pytest.mark.parametrize("name", MANNERS)
def test_every_manner_damages(name: str) -> None:
    pixels = driftnr_pictures.picture(np.random.default_rng(8))
    draw = np.random.default_rng(1)
    assert not np.array_equal(MANNERS[name](draw)(pixels, draw, 1), pixels)


def test_what_is_held_out_is_not_trained_on() -> None:
    text = Path(driftnr_damage.__file__).read_text()
    assert not {"static", "dotted"} & set(text.replace("(", " ").replace(".", " ").split())
    assert set(driftnr_pictures.TRAINING_SCENES) < set(SCENES)
    assert not {"fog", "foliage", "text", "expressions", "portrait"} & set(
        driftnr_pictures.TRAINING_SCENES
    )


def test_the_shipped_parameters_are_those_of_this_recipe() -> None:
    """If not: `python -m benchmarks.train_driftnr --write`."""
    told = json.loads(driftnr.PARAMETERS.read_text(encoding="utf-8"))
    assert told["recipe"] == train_driftnr.recipe()
    assert told["seed"] == train_driftnr.SEED
    assert told["chains"] == sum(driftnr_data.BLOCKS.values())
