from __future__ import annotations

import re
from importlib import resources

import pytest

from convergebench.errors import UnknownName
from convergebench.weights.entries import Address, Catalogue, Hub, Npm, Package, catalogue, readable
from tests.weights.entries_text import file_entry, set_entry


def test_every_set_says_what_it_is_and_what_may_be_done_with_it() -> None:
    for weights in catalogue().values():
        assert weights.title
        assert weights.serves
        assert weights.licence
        assert weights.origin
        assert not re.search(r"\[\w+\]", weights.title), "the terminal would take it for markup"


def test_a_digest_and_the_digits_in_a_files_name_agree() -> None:
    """Torch and pyiqa put the first eight digits of the SHA-256 into the name."""
    carried = 0
    for weights in catalogue().values():
        for file in weights.file:
            digits = re.search(r"-([0-9a-f]{8})\.pth$", file.name)
            if digits:
                carried += 1
                assert (file.sha256 or file.prefix).startswith(digits[1]), file.name
    assert carried > 10


def test_what_packages_carry_is_known_exactly() -> None:
    for weights in catalogue().values():
        for file in weights.file:
            if any(isinstance(source, Package | Npm) for source in file.sources):
                assert file.size
                assert file.sha256


def test_every_set_of_the_metrics_and_editors_is_listed() -> None:
    expected = """lpips-alex lpips-vgg niqe brisque ilniqe nrqm nima-mobilenet efficientnet-lite0
    cnniqa-live clip-vit-l-14 clip-vit-b-32 rali arniqa clipiqa cnniqa dbcnn hyperiqa liqe maniqa
    musiq nima paq2piq qalign qualiclip topiq-nr tres wadiqam taef2 migan"""
    assert set(expected.split()) <= set(catalogue())


def test_the_catalogue_names_no_package_registry() -> None:
    folder = resources.files("convergebench.weights") / "catalogue"
    hosts = {"huggingface.co", "github.com", "download.pytorch.org", "openaipublic.azureedge.net"}
    for file in folder.iterdir():
        named = re.findall(r"https?://([^/\"]+)", file.read_text("utf-8"))
        assert set(named) <= hosts


def test_a_set_without_files_of_its_own_gives_those_it_uses() -> None:
    assert catalogue().member("clipiqa").file.name == "RN50.pt"
    assert catalogue().member("qualiclip", "RN50.pt").home == "clip-rn50-openai"
    names = [m.file.name for m in catalogue().members("dbcnn")]
    assert names[0].startswith("DBCNN_KonIQ10k")
    assert names[-1].startswith("vgg16")


def test_unknown_names_get_near_matches() -> None:
    with pytest.raises(UnknownName, match=r"no set of weights called 'lpip'\. Did you mean"):
        catalogue()["lpip"]
    with pytest.raises(UnknownName, match="no file of the weights niqe called 'x'"):
        catalogue().member("niqe", "x")


def test_addresses() -> None:
    hub = Hub(hub="a/b", file="c d/e+f.pth", revision="0123")
    assert hub.address("https://h.example") == "https://h.example/a/b/resolve/0123/c%20d/e%2Bf.pth"
    assert str(Address(url="https://x.example/y")) == "https://x.example/y"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (set_entry("a"), "no files"),
        (set_entry("a", file_entry("f"), file_entry("f")), "same file name twice"),
        (set_entry("a", file_entry("../f")), "should match pattern"),
        (set_entry("a", file_entry("f", None, {"url": "ftp://x"})), "url"),
        (set_entry("a", file_entry("f", None, {"cache": "/etc/passwd"})), "cache"),
        (set_entry("a", uses=("b",)), "no set of weights called 'b'"),
    ],
)
def test_a_wrong_catalogue_is_refused(text: str, complaint: str) -> None:
    with pytest.raises((ValueError, UnknownName), match=complaint):
        Catalogue.parse(text)


def test_a_set_may_not_come_twice() -> None:
    text = set_entry("a", file_entry("f"))
    with pytest.raises(ValueError, match="the set a twice"):
        Catalogue.parse(text, text)


def test_sizes_for_people() -> None:
    sizes = [readable(n) for n in (0, 999, 11850, 9884491, 999_700_000, 16_410_000_000)]
    assert sizes == ["0 B", "999 B", "12 kB", "9.88 MB", "1 GB", "16 GB"]
