"""The docs are executed: their commands, their Python, their links."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import convergebench

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    found = re.findall(
        rf"^( *)```{language}\n(.*?)^\1```", page.read_text(), re.DOTALL | re.MULTILINE
    )
    return [
        "\n".join(line.removeprefix(indent) for line in text.splitlines()) for indent, text in found
    ]


def execute(page: Path, folder: Path, before: str = "") -> str:
    code = "\n".join([before, *blocks(page, "python")])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(600)
def test_quickstart_commands_work_in_order(tmp_path: Path) -> None:
    commands = [
        line for block in blocks(DOCS / "quickstart.md", "console") for line in block.splitlines()
    ]
    assert len(commands) >= 6
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "convergebench"
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert (tmp_path / "my-run" / "report" / "index.html").is_file()


def test_quickstart_run_toml_is_legal(tmp_path: Path) -> None:
    (text,) = blocks(DOCS / "quickstart.md", "toml")
    (tmp_path / "run.toml").write_text(text)
    planned = convergebench.plan(config=tmp_path / "run.toml")
    # 6 editors × 2 repeats × 2 seed policies × (2 replicate + 1 glasses chain)
    assert sum(row.chains for row in planned.rows) == 6 * 2 * 2 * 3


@pytest.mark.timeout(600)
def test_notebook_page_runs_and_files_page_reads_its_run(tmp_path: Path) -> None:
    told = execute(DOCS / "notebook.md", tmp_path)
    assert "Leaderboard" in told
    assert "ref:noise,sigma=4" in told
    read = execute(DOCS / "files.md", tmp_path)
    assert "ref:banana" in read
    code = blocks(DOCS / "files.md", "python")[0]
    assert "convergebench" not in code, "the page promises to read a run without our code"


def test_every_file_of_a_run_is_documented(tmp_path: Path) -> None:
    path = tmp_path / "run"
    convergebench.run(path, {"editors": ["ref:jpeg"], "sources": ["dunes", "fabric"],
                             "cycles": ["replicate"], "rounds": 1, "size": 32})  # fmt: skip
    convergebench.score(path, ["psnr"])
    convergebench.report(path)
    text = (DOCS / "files.md").read_text()
    for entry in path.iterdir():
        assert entry.name.removesuffix(".jsonl") in text, entry.name


def test_import_guide_reads_the_folder_it_shows(tmp_path: Path) -> None:
    from convergebench.frame import encode
    from tests.support.runs import picture

    folder = tmp_path / "results"
    frames = [f"originals/{name}.jpg" for name in ("harbour", "street")]
    frames += [f"model-a/harbour/v{v}/{k:04}.png" for v in (1, 2) for k in range(1, 11)]
    frames += [f"model-b/street/v1/{k:04}.png" for k in range(1, 11)]
    for seed, name in enumerate(frames):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(encode(picture(seed), "jpeg" if name[-3:] == "jpg" else "png"))
    text = blocks(DOCS / "guides" / "import.md", "sh")[1].replace("\\\n", " ")
    words = shlex.split(text.replace("--dry-run", "--to run --json"))
    assert words[0] == "convergebench"
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["new_chains"], told["new_frames"]) == (3, 32)
    assert (told["missing"], told["unread"], told["conflicts"]) == ([], [], [])


def test_plugin_guide_runs(tmp_path: Path) -> None:
    execute(DOCS / "guides" / "plugin.md", tmp_path)


def test_suite_guide_is_a_legal_suite(tmp_path: Path) -> None:
    import hashlib

    from convergebench.frame import encode
    from convergebench.suite import load_suite
    from tests.support.runs import picture

    (text,) = blocks(DOCS / "guides" / "suite.md", "toml")
    data = encode(picture(1))
    (tmp_path / "lamp.png").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / "suite.toml").write_text(text.replace("…64 hex digits…", digest))
    suite = load_suite(tmp_path)
    assert len(suite.cycle) == 4
    assert suite.frame(suite.source[0]).facts.width == 32


def test_suite_guide_has_a_legal_suite_to_restore_with_every_key(tmp_path: Path) -> None:
    import hashlib

    from convergebench.frame import encode
    from convergebench.prompts import PromptGroup, PromptSet
    from convergebench.source import Degradation
    from convergebench.suite import load_suite
    from tests.support.runs import picture

    page = DOCS / "guides" / "suite.md"
    told = [text for text in blocks(page, "text") if "version = 1" in text]
    suite_text, prompts_text = told
    data = encode(picture(1))
    for name in ("input", "gt"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lamp.png").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / "suite.toml").write_text(suite_text.replace("…64 hex digits…", digest))
    (tmp_path / "prompts.toml").write_text(prompts_text)
    suite = load_suite(tmp_path)
    assert [cycle.title for cycle in suite.cycle] == ["restore", "T1", "T2"]
    assert [source.has_truth for source in suite.source] == [True, False]
    keys = {"degrade", "withheld", "degradation", "truth", "readers", "group", "factors"}
    for model in (PromptGroup, PromptSet, Degradation):
        keys |= set(model.model_fields) - {"engine"}
    assert {key for key in keys if key not in page.read_text()} == set()


def test_every_key_of_a_run_is_in_the_guides() -> None:
    from convergebench.runspec import RunSpec

    pages = [DOCS / "quickstart.md", DOCS / "guides" / "suite.md", DOCS / "guides" / "money.md"]
    text = "".join(page.read_text() for page in pages).replace("--repeat-lost", "repeat_lost")
    assert {key for key in RunSpec.model_fields if key not in text} == set()


def test_reference_is_up_to_date(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(DOCS / "generate.py"), str(tmp_path)], check=True)
    kept = {p.relative_to(DOCS / "reference"): p for p in (DOCS / "reference").rglob("*.md")}
    fresh = {p.relative_to(tmp_path): p for p in tmp_path.rglob("*.md")}
    assert kept.keys() == fresh.keys(), "run: python docs/generate.py"
    for name, page in kept.items():
        assert page.read_text() == fresh[name].read_text(), (
            f"run: python docs/generate.py ({name} is old)"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert os.path.exists(page.parent / target), f"{page.name} links to {target}"


def test_every_exception_is_in_the_tree() -> None:
    from convergebench import errors

    drawn = (DOCS / "reference" / "errors.md").read_text()
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, errors.ConvergeBenchError):
            assert name in drawn
