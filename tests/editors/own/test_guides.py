"""The guides on editors and models of one's own, executed block by block as they stand."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from convergebench.chain import Settings
from convergebench.editor import EditReply, Turn
from convergebench.editors.own.folder import DEFAULT, PLACES
from convergebench.store import RunStore
from tests.editors.own.asking import frame, reply
from tests.editors.own.comfy import Comfy
from tests.support.loopback import Reply, serving
from tests.test_docs import DOCS, ROOT, blocks

GUIDE = DOCS / "guides" / "your-editor.md"
DETAILS = DOCS / "guides" / "your-editor-details.md"
MODELS = DOCS / "guides" / "models.md"


def shell(text: str, folder: Path, env: dict[str, str]) -> str:
    """What a block prints, run by bash with our commands first on its path."""
    here = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def lengths(run: Path) -> dict[str, set[int]]:
    """How far the chains of each editor came."""
    found: dict[str, set[int]] = {}
    for chain in RunStore.open(run).chains():
        found.setdefault(chain.key.editor, set()).add(chain.length)
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_add_your_own_editor_in_ten_minutes(tmp_path: Path) -> None:
    (code,) = blocks(GUIDE, "python")
    name = re.match(r"# (\w+\.py)\n", code)
    assert name
    (tmp_path / name[1]).write_text(code)
    (workflow,) = blocks(GUIDE, "json")
    (tmp_path / "workflow.json").write_text(workflow)
    shutil.copy(ROOT / "examples" / "http_editor.py", tmp_path)
    commands = blocks(GUIDE, "bash")
    assert len(commands) == 4
    with Comfy() as comfy:
        for block in commands:
            shell(block, tmp_path, {"COMFYUI_URL": comfy.server.url})
        assert len(comfy.prompts) == 5
    assert (tmp_path / "my-run" / "report" / "index.html").is_file()
    assert "python:my_editor:edit,price=0" in (tmp_path / "my-run" / "findings.json").read_text()
    for run, editor in (
        ("my-run", "python:my_editor:edit,price=0"),
        ("http-run", "http://127.0.0.1:8765/edit,price=0"),
        ("comfy-run", "comfyui:workflow.json"),
        ("frames-run", "folder:frames"),
    ):
        assert lengths(tmp_path / run)[editor] == {5}, run


def test_the_guide_is_short() -> None:
    assert len(GUIDE.read_text().splitlines()) <= 80


def test_the_json_tables_name_exactly_what_is_sent_and_understood() -> None:
    text = DETAILS.read_text()
    sent, answered = (
        set(re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.splitlines())))
        for table in re.findall(r"\| (?:sent|answered) \| \|\n\|---\|---\|\n((?:\|.*\n)+)", text)
    )
    picture = frame()
    answer = {"image": base64.b64encode(picture.data).decode()}
    with serving(lambda _request: Reply(answer)) as server:
        history = (Turn(0, "", frame), Turn(1, "Copy.", frame, {"id": "c1"}))
        reply(
            f"{server.url}/edit",
            inputs=(picture, frame(2)),
            history=history,
            settings=Settings(session="chat"),
        )
        got = server.log[0].json
    assert sent == set(got)
    for name in got["settings"]:
        assert f"`{name}`" in text
    ours = {"data", "parameters", "basis", "caveats", "size", "format", "task"}
    assert answered == set(EditReply.__dataclass_fields__) - ours | {"image", "refused", "error"}


def test_the_placeholders_of_folders_are_all_told() -> None:
    text = DETAILS.read_text()
    assert f"`{DEFAULT}`" in text
    for name in PLACES:
        assert f"`{{{name}}}`" in text


def test_models_and_prices_of_your_own(tmp_path: Path) -> None:
    (table,) = blocks(MODELS, "toml")
    assert table.startswith("# models.toml\n")
    (tmp_path / "models.toml").write_text(table)
    (commands,) = blocks(MODELS, "bash")
    told = shell(commands, tmp_path, {"OPENAI_API_KEY": "", "BFL_API_KEY": ""})
    assert "GPT Image 9" in told
    assert "our contract" in told
    assert "$0.03" in told
    env = {**os.environ, "CONVERGEBENCH_MODELS": str(tmp_path / "models.toml")}
    words = "plan --json --no-controls --steps 1 -e bfl:flux-kontext-pro -e openai:gpt-image-9"
    plan = subprocess.run(
        [sys.executable, "-m", "convergebench", *words.split()],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = {row["editor"]: row for row in json.loads(plan.stdout)["editors"]}
    calls = {name: row["calls"] for name, row in rows.items()}
    assert rows["bfl:flux-kontext-pro"]["dollars"] == pytest.approx(
        0.03 * calls["bfl:flux-kontext-pro"]
    )
    assert rows["openai:gpt-image-9"]["dollars"] == pytest.approx(
        0.07 * calls["openai:gpt-image-9"]
    )


def test_every_key_of_a_model_is_in_the_guide() -> None:
    from convergebench.editors.providers.catalogue import Model
    from convergebench.pricing import PriceRule

    text = MODELS.read_text()
    for name in (*Model.model_fields, *PriceRule.model_fields):
        assert f"`{name}`" in text, name
