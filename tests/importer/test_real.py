"""The real chains, photographs and curves beside the repository: one command each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import convergebench
from convergebench.store import RunStore
from convergebench.verifier import verify

pytestmark = pytest.mark.shared


def command(*words: str | Path) -> dict[str, Any]:
    """What a command answers with --json."""
    told = [sys.executable, "-m", "convergebench", *map(str, words), "--json"]
    done = subprocess.run(told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_flux_chains_come_in_whole_and_equal_what_was_published(
    tmp_path: Path, shared: Path
) -> None:
    tree, run = shared / "data" / "chains" / "flux-kontext-dev", tmp_path / "flux"
    told = command("import", tree, "--to", run)
    assert (told["layout"], told["new_chains"], told["new_frames"]) == ("round-trip", 8, 48 + 5)
    assert (told["missing"], told["conflicts"], told["failed"]) == ([], [], [])
    chains = RunStore.open(run).chains()
    assert {c.key.editor for c in chains} == {"flux-kontext-dev"}
    assert all(c.length == 6 for c in chains)
    assert len({c.key.source for c in chains}) == 5
    glasses = next(c for c in chains if c.key.source == "portrait_03")
    assert glasses.steps[0].prompt == "Add glasses to the person"
    kept = RunStore.open(run).frame(glasses.held[6]).data
    assert kept == (tree / "portrait_03_glasses_add_remove" / "I3_backward.png").read_bytes()
    assert verify(run).sound

    convergebench.score(run, ["psnr", "ssim-uniform"])
    compared = command("compare-scores", run, "--as", "ssim=ssim-uniform", "--strict")
    by_metric = {row["metric"]: row for row in compared["groups"]}
    for metric in ("psnr", "ssim"):
        assert by_metric[metric]["common"] == by_metric[metric]["equal"] == 24
    # Read from the score files as well, without our own comparison.
    rows = RunStore.open(run).scores().filter(pl.col("where") == "all")
    published = rows.filter(pl.col("version") == "published:flux-kontext-dev")
    for metric, our_metric in (("psnr", "psnr"), ("ssim", "ssim-uniform")):
        theirs = published.filter(pl.col("metric") == metric)
        ours = rows.filter(
            (pl.col("metric") == our_metric)
            & ~pl.col("version").str.starts_with("published:")
            & (pl.col("against") == "home")
        )
        both = theirs.join(ours, on=["chain", "step"])
        assert len(both) == 24
        assert (both["value"] - both["value_right"]).abs().max() < 1e-6  # type: ignore[operator]
    assert published.filter(pl.col("metric") == "lpips")["value"].null_count() == 24


def test_the_failed_chain_appears_as_failed(tmp_path: Path, shared: Path) -> None:
    run = tmp_path / "gemini"
    told = command("import", shared / "data" / "chains" / "gemini-failed", "--to", run)
    assert (told["new_chains"], len(told["failed"])) == (1, 1)
    (chain,) = RunStore.open(run).chains()
    assert [s.outcome for s in chain.steps] == ["edited", "failed"]
    assert chain.ended
    assert told["other_sizes"] == ["portrait_02_sunglasses_add_remove/I1_forward.png: 1024×1024"]
    convergebench.score(run, ["psnr"])
    findings = convergebench.report(run).findings
    (line,) = findings.standings
    assert (line.failed, line.outcomes) == (1, {"edited": 1, "failed": 1})
    page = (run / "report" / "index.html").read_text()
    assert "the import has no frame from here on" in page


def test_the_chain_of_25_steps(tmp_path: Path, shared: Path) -> None:
    run = tmp_path / "vae"
    told = command("import", shared / "data" / "chains" / "vae-25-steps", "--to", run)
    assert (told["layout"], told["new_frames"]) == ("sequence", 25)
    convergebench.score(run, ["psnr"])
    rows = (
        RunStore.open(run).scores().filter((pl.col("step") == 24) & (pl.col("against") == "home"))
    )
    assert rows["value"].item() == pytest.approx(16.64, abs=0.005)


def test_the_curves_of_six_models(tmp_path: Path, shared: Path) -> None:
    table, run = shared / "data" / "curves" / "roundtrip-6-models.csv", tmp_path / "curves"
    looked = command("import", table, "--dry-run")
    assert (looked["keys"], looked["collapsed"], len(looked["conflicts"])) == (2131, 300, 600)
    editors = Counter(c["key"].partition(" ")[0] for c in looked["conflicts"])
    assert editors == {"grok": 340, "nano_banana": 260}
    refused = subprocess.run(
        [sys.executable, "-m", "convergebench", "import", str(table), "--to", str(run)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "600 keys with values that differ" in refused.stderr
    assert not run.exists()
    told = command("import", table, "--to", run, "--conflicts", "repeat")
    assert told["new_chains"] == 12 + 10 + 101 + 92 + 57 + 3
    again = command("import", table, "--to", run, "--conflicts", "repeat")
    assert (again["new_chains"], again["new_scores"], again["known_chains"]) == (0, 0, 275)
    rows = RunStore.open(run).scores()
    assert rows.filter(pl.col("metric") == "psnr")["value"].null_count() == 0
    # Every distinct value of the file is there: nothing was averaged away.
    own = pl.read_csv(table).filter(pl.col("model") == "grok")["psnr"]
    kept = rows.filter((pl.col("metric") == "psnr") & pl.col("chain").str.contains("--grok--"))
    assert set(kept["value"]) == set(own)
    findings = convergebench.report(run).findings
    assert {s.editor for s in findings.standings} == {
        "flux", "gemini", "grok", "nano_banana", "qwen", "seedream",
    }  # fmt: skip
