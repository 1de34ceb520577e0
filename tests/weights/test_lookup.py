from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from convergebench import weights
from convergebench.errors import MetricUnavailable
from convergebench.weights import digests
from convergebench.weights.digests import Stamps
from convergebench.weights.entries import Catalogue
from convergebench.weights.lookup import own_cache
from tests.weights.entries_text import file_entry, set_entry, sha

DATA = b"parameters" * 100
Use = Callable[[str], Catalogue]


def put(path: Path, data: bytes = DATA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def one(machine: Path, use: Use) -> Path:
    hub = {"hub": "owner/repo", "file": "sub/w.bin"}
    cache = {"cache": "torch/hub/checkpoints/w.bin"}
    use(set_entry("one", file_entry("w.bin", DATA, hub, cache)))
    return machine


@pytest.mark.parametrize("place", ["one/w.bin", "w.bin"])
def test_a_users_folder_by_set_or_flat(
    one: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    path = put(one / "b" / place)
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", os.pathsep.join([str(one / "a"), str(one / "b")]))
    assert weights.find("one") == path
    assert weights.find("one", "w.bin") == path


def test_the_caches_in_order(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(one / "t"))
    torch = put(one / "t/hub/checkpoints/w.bin")
    assert weights.find("one") == torch
    hub = one / "home/.cache/huggingface/hub/models--owner--repo"
    stray = put(hub / "snapshots/0000/sub/w.bin")
    assert weights.find("one") == stray
    main = put(hub / "snapshots/abcd/sub/w.bin")
    put(hub / "refs/main", b"abcd")
    assert weights.find("one") == main
    ours = put(own_cache() / "one/w.bin")
    assert weights.find("one") == ours
    monkeypatch.setenv("XDG_CACHE_HOME", str(one / "xdg"))
    monkeypatch.setenv("HF_HOME", str(one / "hf"))
    assert weights.find("one") == torch


def test_what_is_missing_names_the_command(one: Path) -> None:
    with pytest.raises(
        MetricUnavailable,
        match=r"The weights one \(w\.bin\) are not here\. Run `convergebench weights pull one`, "
        r"or put one/w\.bin into a folder that CONVERGEBENCH_WEIGHTS names\.",
    ):
        weights.find("one")


def test_a_wrong_file_is_refused_and_a_right_one_elsewhere_found(
    one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(one / "a"))
    put(one / "a/w.bin", DATA[:-1] + b"x")
    told = rf"w\.bin was refused: its SHA-256 is \w{{64}} instead of {sha(DATA)}\. Run"
    with pytest.raises(MetricUnavailable, match=told):
        weights.find("one")
    put(one / "a/w.bin", b"short")
    with pytest.raises(MetricUnavailable, match="it has 5 bytes instead of 1000"):
        weights.find("one")
    good = put(own_cache() / "one/w.bin")
    assert weights.find("one") == good


def test_a_prefix_is_compared_where_the_digest_is_unknown(machine: Path, use: Use) -> None:
    entry = f'name = "w.bin"\nsha256 = ""\nprefix = "{sha(DATA)[:8]}"'
    made = use(set_entry("one", entry, 'name = "loose.bin"'))
    assert made.member("one").file.assurance.startswith("not verified: digest unknown, begins ")
    put(own_cache() / "one/w.bin")
    assert weights.find("one").name == "w.bin"
    put(own_cache() / "one/w.bin", b"other")
    with pytest.raises(MetricUnavailable, match=r"its SHA-256 is \w{8} instead of \w{8}\. No sour"):
        weights.find("one")
    put(own_cache() / "one/loose.bin", b"anything")
    assert weights.find("one", "loose.bin").read_bytes() == b"anything"
    put(own_cache() / "one/loose.bin", b"")
    with pytest.raises(MetricUnavailable, match="it is empty"):
        weights.find("one", "loose.bin")


def test_another_form_serves_as_well(machine: Path, use: Use) -> None:
    entry = file_entry("w.npz", DATA) + f'\nalso = [{{ name = "w.mat", sha256 = "{sha(b"m")}" }}]'
    use(set_entry("one", entry))
    path = put(own_cache() / "one/w.mat", b"m")
    assert weights.find("one") == path
    assert weights.find("one", "w.mat") == path


def test_a_name_that_several_sets_have_is_not_looked_for_flat(machine: Path, use: Use) -> None:
    use(set_entry("one", file_entry("model.bin")) + set_entry("two", file_entry("model.bin")))
    put(own_cache() / "model.bin")
    with pytest.raises(MetricUnavailable, match="not here"):
        weights.find("one")
    put(own_cache() / "two/model.bin")
    assert weights.find("two").parent.name == "two"


def test_a_file_is_hashed_once_until_it_changes(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []
    real = digests.digest

    def counting(path: Path) -> str:
        hashed.append(path)
        return real(path)

    monkeypatch.setattr(digests, "digest", counting)
    path = put(own_cache() / "one/w.bin")
    for _ in range(3):
        weights.find("one")
    assert len(hashed) == 1
    info = path.stat()
    path.write_bytes(DATA[::-1])
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))  # the same size and time of change
    with pytest.raises(MetricUnavailable, match="was refused"):
        weights.find("one")


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"x": 3}', b"\xff"])
def test_a_damaged_memory_of_digests_does_no_harm(tmp_path: Path, content: bytes) -> None:
    stamps = put(tmp_path / "digests.json", content)
    path = put(tmp_path / "file")
    for _ in range(2):
        assert Stamps(stamps).digest(path) == hashlib.sha256(DATA).hexdigest()


def test_a_memory_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    path = put(tmp_path / "file")
    assert Stamps(path / "below/a/file.json").digest(path) == sha(DATA)


def test_the_real_folder_works_as_it_is(
    shared: Path, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_WEIGHTS", str(shared / "weights"))
    for name in ("niqe", "brisque", "ilniqe", "cnniqa-live"):
        assert weights.find(name).parent == shared / "weights"
    found = weights.arrays(weights.find("niqe"))
    assert found["mu_prisparam"].shape == (1, 36)
    assert found["cov_prisparam"].shape == (36, 36)


@pytest.mark.weights
def test_everything_pulled_verifies_and_reads() -> None:
    """Beside weights pulled from the package index (.ci/run does that first)."""
    for name in ("lpips-alex", "lpips-vgg", "niqe", "efficientnet-lite0"):
        found = weights.arrays(weights.find(name))
        assert all(value.size for value in found.values())
    assert weights.find("brisque").read_text("ascii").startswith("svm_type epsilon_svr")
    assert weights.find("nima-mobilenet").stat().st_size == 13174216
    alex = weights.arrays(weights.find("lpips-alex"))
    assert alex["AlexNet_0/Conv_0/kernel"].shape == (11, 11, 3, 64)
