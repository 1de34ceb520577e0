"""The guide to the trial is executed, word by word."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from convergebench.trial import Trial, try_metrics

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "trial.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # `python` in the guide is the interpreter that has the libraries.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    metric, table, library = blocks("python")
    (tmp_path / "my_metric.py").write_text(metric)
    from_nothing, by_command, by_file = blocks("console")
    assert "my_metric.py" in by_command
    assert "bright.csv" in by_file
    for text in (from_nothing, by_command, table, by_file, library):
        lines = [text] if "import" in text else text.splitlines()
        for line in lines:
            words = ["-c", line] if "import" in line else ["-m", *shlex.split(line)]
            done = subprocess.run(
                [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{line}: {done.stderr}"
    assert "bright f" in done.stdout
    assert (tmp_path / "trial-run" / "trial" / "trial.html").is_file()
    assert (tmp_path / "trial-run" / "trial" / "colourful.parquet").is_file()
    trial: Trial = try_metrics(tmp_path / "trial-run")
    assert trial.card("sharpness").failed, "at least one metric is caught"


def test_the_guide_names_every_option() -> None:
    from convergebench.trial.tables import CSVS

    text = GUIDE.read_text()
    for option in ("steps", "metric", "scores", "command", "lower-is-better", "ratings", "cycle",
                   "timeout"):  # fmt: skip
        assert f"--{option}" in text
    for name in (*CSVS, "cards"):
        assert f"`{name}.csv`" in text
