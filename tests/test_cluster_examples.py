"""The files of examples/cluster: what can be checked without a cluster and without Ray."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from convergebench.cli import app

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "cluster"
GUIDE = ROOT / "docs" / "guides" / "cluster.md"
FILES = sorted(FOLDER.iterdir())


def commands(text: str) -> list[list[str]]:
    """The convergebench commands in a text, as words, without what follows in the shell."""
    joined = text.replace("\\\n", " ")
    found = re.findall(r"convergebench (?:score|plan|run|status|copy|weights) [^\n\"#`|&]*", joined)
    return [shlex.split(line) for line in found]


def test_the_guide_tells_of_every_file() -> None:
    text = GUIDE.read_text()
    assert {path.name for path in FILES} == {"Dockerfile", "aws.yaml", "kuberay.yaml", "slurm.sh"}
    for path in FILES:
        assert f"examples/cluster/{path.name}" in text


@pytest.mark.parametrize("path", [GUIDE, *FILES], ids=lambda path: path.name)
def test_every_option_of_every_command_exists(path: Path) -> None:
    known = get_command(app).commands  # type: ignore[attr-defined]
    found = commands(path.read_text())
    assert found or path.name == "Dockerfile"
    for words in found:
        command = known[words[1]]
        if hasattr(command, "commands"):
            command = command.commands[words[2]]
        options = {name for each in command.params for name in each.opts}
        asked = {word for word in words if word.startswith("-")}
        assert asked <= options, f"{path.name}: {' '.join(words)}"


def test_the_plan_that_the_guide_begins_with_works() -> None:
    (line,) = re.findall(
        r"convergebench (plan --preset \S+) -e \S+ --engine ray", GUIDE.read_text()
    )
    words = [*shlex.split(line), "-e", "ref:banana", "--json"]
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_secret_is_written_down(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"AKIA|SECRET_ACCESS_KEY|password|kind: Secret|api[_-]?key", text, re.I)
    assert not re.search(r"auth_token\s*[:=]\s*[\"']?[0-9a-f]{16}", text, re.I)


def test_the_slurm_script_is_sound_and_says_how_it_is_used() -> None:
    script = FOLDER / "slurm.sh"
    assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: sbatch")


def test_the_slurm_script_starts_and_ends_a_cluster(tmp_path: Path) -> None:
    """With stand-ins for Slurm and Ray that note how they are called."""
    tools = tmp_path / "bin"
    tools.mkdir()
    log = tmp_path / "log"
    tool = '#!/usr/bin/env bash\nprintf "%s\\n" "$(basename "$0") $*" >> "$TOOL_LOG"\n'
    made = {
        "scontrol": "printf 'n1\\nn2\\nn3\\n'",
        "srun": 'while [[ "$1" == --* ]]; do shift; done; exec "$@"',
        "hostname": "echo 127.0.0.1 10.0.0.1",
        # The head answers on its port; each stays until it is told to go.
        "ray": 'for w in "$@"; do case $w in --port=*) p=${w#--port=};; esac; done\n'
        'if [ -n "${p:-}" ]; then exec "$PYTHON" -c "import socket, sys, time\n'
        's = socket.create_server((\'127.0.0.1\', int(sys.argv[1])))\ntime.sleep(60)" "$p"; fi\n'
        "exec sleep 60",
        # Waits for the nodes, as the script in its input would; or makes a token.
        "python3": 'if [ "$1" != - ]; then echo 0123456789abcdef; exit; fi; cat >/dev/null\n'
        'until [ "$(grep -c "^ray start" "$TOOL_LOG")" -ge "$3" ]; do sleep 0.1; done',
        "convergebench": 'echo "token ${#RAY_AUTH_TOKEN} $RAY_AUTH_MODE" >> "$TOOL_LOG"; exit 3',
    }
    for name, text in made.items():
        (tools / name).write_text(f"{tool}{text}\n")
        (tools / name).chmod(0o755)
    done = subprocess.run(
        ["bash", str(FOLDER / "slurm.sh"), "/shared/my-run", "--metrics", "fast"],
        env={
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "TOOL_LOG": str(log),
            "SLURM_JOB_ID": str(10_000 + os.getpid() % 5000),
            "SLURM_JOB_NODELIST": "n[1-3]",
            "SLURM_CPUS_PER_TASK": "8",
            "SLURM_GPUS_ON_NODE": "2",
            "CONVERGEBENCH_SCRATCH": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr  # that of the command
    told = log.read_text().splitlines()
    heads = [line for line in told if line.startswith("ray start --head")]
    joined = [line for line in told if line.startswith("ray start --block --address=127.0.0.1:")]
    assert (len(heads), len(joined)) == (1, 2)
    assert all("--num-cpus=8 --num-gpus=2" in line for line in [*heads, *joined])
    (asked,) = (line for line in told if line.startswith("convergebench "))
    assert asked.startswith(
        "convergebench score /shared/my-run --metrics fast --engine ray --address 127.0.0.1:"
    )
    assert "token 16 token" in told
    assert told[-1].startswith("srun --overlap --ntasks-per-node=1 rm -rf")
