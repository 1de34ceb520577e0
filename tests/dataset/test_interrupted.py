"""An export that is stopped leaves nothing that looks whole: killed, no room, two at once."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from convergebench.dataset import export
from convergebench.errors import InputError, StoreBusy
from convergebench.importer import import_run
from convergebench.importer.making import MARK, making
from tests.dataset.made import Made, Walk, make_run, odd_run, png
from tests.test_cli import cb, complaint


def long_run(path: Path, steps: int = 1500, pictures: int = 7) -> Path:
    made = [Made(n, "edited", png(n % pictures, 64)) for n in range(1, steps)]
    return make_run(path, [Walk(first=png(0), steps=made)])


def started(*words: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "convergebench", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_export_is_not_there_and_the_next_one_is_whole(
    tmp_path: Path, how: signal.Signals
) -> None:
    run, out = long_run(tmp_path / "run"), tmp_path / "out"
    part = tmp_path / "out.part"
    process = started("export", run, out, "--patches", "16", "--format", "webdataset")
    while not list(part.glob("webdataset/frames/*.tar")):
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.01)
    process.send_signal(how)
    process.communicate()
    assert process.returncode in (-signal.SIGKILL, 130)
    assert not out.exists()
    assert part.exists() == (how == signal.SIGKILL)
    export(run, out)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "run"]
    assert not list(out.rglob(MARK))
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=out, check=True)


def test_what_is_not_ours_is_not_swept(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="is none of ours"):
        export(run, tmp_path / "out")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="exists and is no empty folder"):
        export(run, tmp_path / "link")
    assert (tmp_path / "out.part" / "thesis.txt").read_text() == "mine"


def test_two_processes_cannot_make_one_folder(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    (tmp_path / "out.part").mkdir()
    fd = os.open(tmp_path / "out.part" / MARK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(StoreBusy, match="being made by another process"):
        export(run, tmp_path / "out")
    os.close(fd)
    export(run, tmp_path / "out")


def test_a_folder_appears_only_when_its_block_ends_well(tmp_path: Path) -> None:
    def fails() -> None:
        with making(tmp_path / "a") as part:
            (part / "x").write_text("x")
            raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        fails()
    assert list(tmp_path.iterdir()) == []
    with making(tmp_path / "a") as part:
        (part / "deep").mkdir()
        (part / "deep" / "x").write_text("x")
        assert not (tmp_path / "a").exists()
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["deep"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("form", ["parquet", "webdataset"])
def test_a_full_disk_is_one_sentence(tmp_path: Path, small_disk: Path, form: str) -> None:
    run = long_run(tmp_path / "run", 300, 300)
    done = cb("export", run, small_disk / "out", "--format", form)
    assert "no space left" in complaint(done)
    assert list(small_disk.iterdir()) == []


def test_an_import_onto_a_full_disk_is_one_sentence(tmp_path: Path, small_disk: Path) -> None:
    run = long_run(tmp_path / "run", 300, 300)
    export(run, tmp_path / "out")
    done = cb("import", tmp_path / "out", "--to", small_disk / "back")
    assert "no space left" in complaint(done)
    assert list(small_disk.iterdir()) == []
    shutil.rmtree(run)
    import_run(tmp_path / "out", run)


def test_a_read_only_place_is_one_sentence(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    done = cb("export", run, Path("/proc/convergebench-out"))
    assert "cannot write" in complaint(done)
