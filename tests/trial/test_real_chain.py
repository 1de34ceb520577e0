"""The real chain of an autoencoder, 25 frames, through the trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.importer import import_run
from convergebench.scorer import score
from convergebench.trial import try_metrics


@pytest.mark.shared
@pytest.mark.weights
def test_the_real_chain_goes_through_the_trial(shared: Path, tmp_path: Path) -> None:
    import_run(shared / "data" / "chains" / "vae-25-steps", to=tmp_path / "run")
    score(tmp_path / "run", ["niqe", "brisque", "piqe", "psnr", "ssim"])
    trial = try_metrics(tmp_path / "run")
    assert trial.arms == ("vae-25-steps",)
    assert trial.sources == ("eiffel",)
    assert set(trial.metrics) == {"brisque", "niqe", "piqe"}
    assert trial.steps == (5, 10, 20)
    assert set(trial.success["premise"]) == {"sound"}, "psnr and ssim see the loss"
    for card in trial.cards:
        assert (card.verdict, card.cells) == ("fully succeeds", 1)
        assert card.tau is not None
        assert card.tau.value < -0.8
        assert card.tau.low is None, "one source has no interval"
        assert "This rests on 1 initial image only." in card.caveats
        assert card.delay is not None
        assert (card.delay.chains, card.delay.longest) == (1, 24)


@pytest.mark.shared
def test_the_real_chain_with_metrics_that_need_no_weights(shared: Path, tmp_path: Path) -> None:
    import_run(shared / "data" / "chains" / "vae-25-steps", to=tmp_path / "run")
    score(tmp_path / "run", ["piqe", "noise", "psnr"])
    trial = try_metrics(tmp_path / "run", steps=[5, 20, 50])
    assert trial.steps == (5, 20)
    assert any("No chain has step 50 (steps 1 to 24 exist)" in note for note in trial.notes)
    assert trial.card("piqe").verdict == "fully succeeds"
