"""`cmd:`: real programs, run as processes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convergebench.errors import EditorFailed, EditorNoImage, SettingsError
from convergebench.frame import Frame, encode
from convergebench.registry import PluginName, open_editor, reads_prompts, says_control
from convergebench.store import RunStore
from convergebench.testing import check_editor
from tests.editors.own.asking import (
    MARKER,
    PROMPT,
    command,
    fault,
    frame,
    program,
    reply,
    run_words,
)
from tests.support.runs import picture, write_suite

COPY = "import shutil, sys\nshutil.copy(sys.argv[1], sys.argv[2])\n"


def script(folder: Path, text: str = COPY, name: str = "net.py") -> str:
    """A command that runs a Python script with these words behind it."""
    path = folder / name
    path.write_text(text)
    return f"cmd: {shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def test_the_picture_goes_in_and_out_as_it_is(tmp_path: Path) -> None:
    source = Frame(encode(picture(3), "jpeg"))
    made = reply(f"{script(tmp_path)} {{input}} {{output}}", inputs=(source,))
    assert made.data == source.data
    assert made.cost == 0.0


def test_the_input_has_the_ending_of_what_it_is(tmp_path: Path) -> None:
    told = "import sys\nprint(sys.argv[1][-4:], sys.argv[2][-4:], file=sys.stderr)\nsys.exit(3)\n"
    name = f"{script(tmp_path, told)} {{input}} {{output:jpg}}"
    jpeg = Frame(encode(picture(3), "jpeg"))
    assert str(fault(name, inputs=(jpeg,))).endswith("ended with code 3: .jpg .jpg")
    assert str(fault(name)).endswith("ended with code 3: .png .jpg")


def test_prompt_and_seed_are_words_of_their_own_and_no_shell_sees_them(tmp_path: Path) -> None:
    told = "import sys\nopen(sys.argv[2], 'w').write(repr(sys.argv[3:]))\n"
    name = (
        f"{script(tmp_path, told)} {{input}} {{output}} --prompt={{prompt}} -s {{seed}} '{{{{x}}}}'"
    )
    evil = 'a; rm -rf $HOME `id` {output} "quoted"'
    assert reply(name, prompt=evil).data.decode() == repr([f"--prompt={evil}", "-s", "7", "{x}"])
    made = reply(name, seed=None)
    assert made.data.decode() == repr([f"--prompt={PROMPT}", "-s", "-1", "{x}"])
    assert open_editor(name).spec.abilities.seeds


def test_folders_are_for_programs_that_want_folders(tmp_path: Path) -> None:
    told = (
        "import os, sys\n"
        "(one,) = os.listdir(sys.argv[1])\n"
        "os.mkdir(sys.argv[2] + '/deep')\n"
        "data = open(sys.argv[1] + '/' + one, 'rb').read()\n"
        "open(sys.argv[2] + '/deep/any.png', 'wb').write(data)\n"
    )
    assert (
        reply(f"{script(tmp_path, told)} {{input_folder}} {{output_folder}}").data == frame().data
    )


def test_several_outputs_are_a_question(tmp_path: Path) -> None:
    told = "import sys\nfor n in 'ab': open(sys.argv[2] + '/' + n, 'w').write(n)\n"
    error = fault(f"{script(tmp_path, told)} {{input}} {{output_folder}}")
    assert isinstance(error, EditorFailed)
    assert "wrote 2 files, expected one: a, b" in str(error)


def test_a_command_that_fails_says_its_last_words(tmp_path: Path) -> None:
    told = (
        "import sys\nprint('x' * 9000)\nprint('no such\\nweights', file=sys.stderr)\nsys.exit(4)\n"
    )
    error = fault(f"{script(tmp_path, told)} {{input}} {{output}}")
    assert isinstance(error, EditorFailed)
    assert str(error) == f"{Path(sys.executable).name} ended with code 4: no such weights"
    told = "import sys\nprint('a' * 900 + 'end')\nsys.exit(4)\n"
    assert str(fault(f"{script(tmp_path, told)} {{input}} {{output}}")).endswith("aaaend")
    assert len(str(fault(f"{script(tmp_path, told)} {{input}} {{output}}"))) < 600


def test_a_command_that_is_ended_by_a_signal_is_told(tmp_path: Path) -> None:
    told = "import os\nos.kill(os.getpid(), 11)\n"
    assert "was ended by SIGSEGV" in str(fault(f"{script(tmp_path, told)} {{input}} {{output}}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('nothing to do')", "ended well and wrote no picture: nothing to do"),
        ("import sys\nopen(sys.argv[2], 'w')", "wrote an empty file"),
    ],
)
def test_no_picture_is_no_image(tmp_path: Path, text: str, said: str) -> None:
    error = fault(f"{script(tmp_path, text)} {{input}} {{output}}")
    assert isinstance(error, EditorNoImage)
    assert str(error).endswith(said)


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    told = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "print('still here', flush=True)\n"
        "time.sleep(60)\n"
    )
    began = time.monotonic()
    error = fault(f"{script(tmp_path, told)} {{input}} {{output}}", deadline=4.0)
    assert time.monotonic() - began < 20
    assert isinstance(error, EditorFailed)
    assert "timed out after 4 s: still here" in str(error)
    _gone(int((tmp_path / "child").read_text()))


def test_what_a_command_leaves_running_is_ended(tmp_path: Path) -> None:
    told = (
        "import shutil, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "shutil.copy(sys.argv[1], sys.argv[2])\n"
    )
    assert reply(f"{script(tmp_path, told)} {{input}} {{output}}").data == frame().data
    _gone(int((tmp_path / "child").read_text()))


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv (util-linux)")
@pytest.mark.parametrize("kill", [False, True])
def test_a_run_that_is_stopped_at_once_leaves_no_command_behind(tmp_path: Path, kill: bool) -> None:
    told = (
        "import os, time\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    suite = write_suite(tmp_path / "suite", 1)
    words = run_words(suite, f"{script(tmp_path, told)} {{input}} {{output}}", 1)
    process = subprocess.Popen(
        [*program(), *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            if (tmp_path / "child").exists() and (tmp_path / "child").read_text():
                break
            time.sleep(0.1)
        for _ in range(0 if kill else 2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        if not kill:
            process.wait(30)
    finally:
        process.kill()
        process.wait()
    _gone(int((tmp_path / "child").read_text()))


def test_a_killed_run_leaves_nothing_behind_that_its_command_had_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    told = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    suite = write_suite(tmp_path / "suite", 1)
    words = run_words(suite, f"{script(tmp_path, told)} {{input}} {{output}}", 1)
    process = subprocess.Popen(
        [*program(), *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            if (tmp_path / "child").exists() and (tmp_path / "child").read_text():
                break
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    _gone(int((tmp_path / "child").read_text()))
    for _ in range(100):
        if not list((tmp_path / "scratch").glob("convergebench-cmd-*")):
            return
        time.sleep(0.05)
    pytest.fail("the command's pictures were left behind")


def test_a_command_has_no_children_but_its_own(tmp_path: Path) -> None:
    told = (
        "import os, shutil, sys\n"
        "if os.fork() == 0: os._exit(0)\n"
        "os.wait()\n"
        "try:\n    os.wait()\n"
        "except ChildProcessError:\n    shutil.copy(sys.argv[1], sys.argv[2])\n"
    )
    assert reply(f"{script(tmp_path, told)} {{input}} {{output}}", deadline=20.0).data == (
        frame().data
    )


def _gone(process: int) -> None:
    """A process has ended; what nobody waits for stays as a zombie."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        time.sleep(0.05)
    pytest.fail(f"process {process} is in state {state}")


def test_no_secret_gets_into_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NET_TOKEN", MARKER)
    told = (
        "import os, sys\nprint('bad key', os.environ['NET_TOKEN'], file=sys.stderr)\nsys.exit(1)\n"
    )
    error = fault(f"{script(tmp_path, told)} {{input}} {{output}}")
    assert str(error).endswith("ended with code 1: bad key <NET_TOKEN>")
    with pytest.raises(SettingsError, match="holds the value of a secret") as raised:
        open_editor(f"{script(tmp_path)} {{input}} {{output}} --key {MARKER}")
    assert MARKER not in str(raised.value)


def test_scratch_paths_are_not_in_messages(tmp_path: Path) -> None:
    told = "import sys\nsys.exit('cannot read ' + sys.argv[1])\n"
    error = fault(f"{script(tmp_path, told)} {{input}} {{output}}")
    assert str(error).endswith("cannot read input/picture.png")


def test_mistakes_in_the_name_are_one_sentence(tmp_path: Path) -> None:
    said = {
        "cmd:": "has no command. Write for example 'cmd: my-net",
        "cmd: no-such-net --in {input} --out {output}": "there is no program 'no-such-net'",
        "cmd: ./gone.sh {input} {output}": r"there is no program './gone.sh'",
        f"{script(tmp_path)} {{input}}": r"has no \{output\}. Write it where .* writes",
        f"{script(tmp_path)} {{output}}": r"has no \{input\}. Write it where .* reads",
        f"{script(tmp_path)} {{input}} {{out}}": r"no placeholder \{out\}. There are \{input\}",
        f"{script(tmp_path)} {{input:png}} {{output}}": r"no placeholder \{input:png\}",
        f"{script(tmp_path)} {{input}} {{output}} {{}}": r"no placeholder \{\}",
        f"{script(tmp_path)} {{input}} {{output}} {{output_folder}}": "give one of them",
        "cmd: net {input} {output} 'open": "cannot be read: No closing quotation",
    }
    for name, match in said.items():
        with pytest.raises(SettingsError, match=match):
            open_editor(name)


def test_another_script_is_another_version(tmp_path: Path) -> None:
    name = f"{script(tmp_path)} {{input}} {{output}} --weights={tmp_path}/net.bin"
    first = open_editor(name).spec.version
    assert open_editor(name).spec.version == first
    (tmp_path / "net.bin").write_bytes(b"weights")
    second = open_editor(name).spec.version
    (tmp_path / "net.py").write_text(COPY + "# better\n")
    third = open_editor(name).spec.version
    assert len({first, second, third}) == 3


def test_a_program_of_ones_own_is_part_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    program = tmp_path / "my-net"
    program.write_text('#!/bin/sh\ncp "$1" "$2"\n')
    program.chmod(0o755)
    name = "cmd: my-net {input} {output}"
    version = open_editor(name).spec.version
    assert reply(name).data == frame().data
    program.write_text('#!/bin/sh\ncat "$1" > "$2"\n')
    assert open_editor(name).spec.version != version


def test_what_the_name_tells_without_opening_it() -> None:
    with_prompt = "cmd: no-such-net {input} {output} {prompt}, {seed}"
    assert reads_prompts(with_prompt)
    assert not reads_prompts("cmd: no-such-net {input} {output}")
    assert not says_control(with_prompt)
    assert str(PluginName.parse(f"  {with_prompt} ")) == with_prompt.replace("cmd: ", "cmd:")


def test_contract(tmp_path: Path) -> None:
    editor = open_editor(f"{script(tmp_path)} {{input}} {{output}}")
    assert (editor.spec.price, editor.spec.concurrency) == (0.0, 1)
    check_editor(editor, size=16)


def test_a_run_goes_through_a_command_with_commas_and_spaces(tmp_path: Path) -> None:
    name = f"{script(tmp_path, name='my net.py')} {{input}} {{output}} --mode a,b=c"
    suite = write_suite(tmp_path / "suite", 1)
    done = command(tmp_path, *run_words(suite, name, 2))
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert [step.outcome for step in chain.steps] == ["edited", "edited"]
    assert chain.key.editor == name.replace("cmd: ", "cmd:")
    for words in (["score", "run", "--metrics", "psnr"], ["report", "run"], ["verify", "run"]):
        after = command(tmp_path, *words)
        assert after.returncode == 0, after.stderr
    again = command(tmp_path, "run", "run", "--json")
    assert again.returncode == 0, again.stderr
    (tmp_path / "my net.py").write_text(COPY + "# better\n")
    refused = command(tmp_path, "run", "run", "--steps", "3")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert "the two cannot be mixed" in " ".join(refused.stderr.split())
