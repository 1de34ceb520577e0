"""The catalogue and what users may change of it; every entry that ships is sound."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from convergebench.cards.trial import trial
from convergebench.chain import Settings
from convergebench.editor import Asked
from convergebench.editors.providers.catalogue import Model, OptionRule, providers, shelf
from convergebench.errors import InputError, SettingsError, UnknownName
from convergebench.planner import plan
from convergebench.registry import open_editor
from tests.editors.providers.speakers import NAMES
from tests.support.runs import write_suite

ENTRIES = [(name, model) for name in providers() for model in shelf(name)]
ALIVE = [(name, model) for name, model in ENTRIES if not model.shutdown]


def test_every_provider_has_its_file() -> None:
    assert providers() == sorted(NAMES)
    for name in providers():
        found = shelf(name)
        assert found.provider.name == name
        assert found.provider.keys
        assert found.provider.url.startswith("https://")
        assert found.provider.verified, "what it was tried against is said"
        assert len(found.by_id()) == len(found.model), "no id twice"
        assert any(not model.shutdown for model in found), "something to call"


@pytest.mark.parametrize(("name", "model"), ENTRIES, ids=lambda e: getattr(e, "id", e))
def test_every_entry_says_where_it_comes_from(name: str, model: Model) -> None:
    assert model.title
    assert model.source
    assert model.price.source or model.shutdown
    if model.successor:
        assert model.successor in shelf(name).by_id()
    assert model.tier == "resolution" or model.tier in model.options


@pytest.mark.parametrize(("name", "model"), ALIVE, ids=lambda e: getattr(e, "id", e))
def test_every_living_model_opens_without_a_key_and_has_a_price(name: str, model: Model) -> None:
    spec = open_editor(f"{name}:{model.id}").spec
    assert spec.account
    assert spec.lacks
    assert spec.version
    for resolution in ("native", *model.resolutions):
        settings = Settings.model_validate({"resolution": resolution})
        price = spec.price_of(Asked(settings, 1, 512, 512, "Make the sky pink."))
        assert price is not None, "a price, or nobody could set a budget"
        assert 0 < price.low <= price.expected <= price.high < 5


ROOT = Path(__file__).parents[3]


def test_every_provider_has_its_page() -> None:
    for name in providers():
        assert shelf(name).provider.page == f"docs/editors/{name}.md"
        assert (ROOT / shelf(name).provider.page).is_file()


@pytest.mark.parametrize(
    ("step", "source", "resolution", "inputs", "dollars"),
    [
        (1, 1024, "native", 1, 0.045),
        (1, 2048, "1K", 1, 0.09),  # the source is sent as it is: 4 megapixels
        (2, 2048, "1K", 1, 0.045),  # then what was made of it
        (2, 2048, "1K", 2, 0.15),  # the second picture may be the source
        (1, 1024, "2K", 1, 0.09),
        (2, 1024, "2K", 1, 0.135),
    ],
)
def test_megapixels_are_counted_of_what_is_sent(
    step: int, source: int, resolution: str, inputs: int, dollars: float
) -> None:
    settings = Settings.model_validate({"resolution": resolution})
    spec = open_editor("bfl:flux-2-pro").spec
    price = spec.price_of(Asked(settings, step, source, source, inputs=inputs))
    assert price is not None
    assert price.high == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("again", "direct"),
    [
        ("openrouter:google/gemini-nano-banana-2.1", "gemini:gemini-nano-banana-2.1"),
        ("openrouter:google/gemini-3-pro-image", "gemini:gemini-3-pro-image"),
        ("openrouter:openai/gpt-image-2", "openai:gpt-image-2"),
        ("openrouter:black-forest-labs/flux.2-pro", "bfl:flux-2-pro"),
        ("openrouter:black-forest-labs/flux.2-max", "bfl:flux-2-max"),
    ],
)
def test_as_much_is_reserved_where_the_same_model_is_resold(again: str, direct: str) -> None:
    for resolution in ("native", *open_editor(again).spec.abilities.resolutions):
        asked = Asked(Settings.model_validate({"resolution": resolution}), 2, 1024, 1024)
        theirs, makers = (open_editor(name).spec.price_of(asked) for name in (again, direct))
        assert theirs is not None
        assert makers is not None
        assert theirs.high >= makers.high
        assert theirs.expected == pytest.approx(makers.expected, rel=0.25)


def test_a_conversation_that_is_cut_short_is_not_priced_whole() -> None:
    spec = open_editor("openrouter:google/gemini-nano-banana-2.1").spec
    found = [spec.price_of(Asked(Settings(session="chat"), n, 64, 64)) for n in (7, 8, 100)]
    assert found[0] != found[1] == found[2], "8 pictures at most are sent"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "models.toml"
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(path))
    return path


def test_a_user_adds_a_model_like_another(own: Path) -> None:
    known = next(model for name, model in ALIVE if name == "bfl")
    own.write_text(
        f'[[model]]\nprovider = "bfl"\nid = "flux-9"\nlike = "{known.id}"\ntitle = "FLUX 9"\n'
        'price = { image = { "*" = 0.5 }, source = "my contract" }\n'
    )
    added = shelf("bfl").by_id()["flux-9"]
    assert added.size == known.size
    assert added.price.image == {"*": 0.5}
    spec = open_editor("bfl:flux-9").spec
    price = spec.price_of(Asked(Settings(), 1, 512, 512))
    assert price is not None
    assert price.expected == 0.5
    assert "flux-9" not in shelf("fal").by_id()


def test_a_user_changes_a_price_and_the_version_stays(own: Path) -> None:
    known = next(model for name, model in ALIVE if name == "qwen")
    own.write_text("")
    before = open_editor(f"qwen:{known.id}").spec
    own.write_text(
        f'[[model]]\nprovider = "qwen"\nid = "{known.id}"\nprice = {{ image = {{ "*" = 9.0 }} }}\n'
    )
    os.utime(own, (1, 1))
    after = open_editor(f"qwen:{known.id}").spec
    asked = Asked(Settings(), 1, 512, 512)
    assert after.price_of(asked) != before.price_of(asked)
    assert after.version == before.version, "a price moves no pixel"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[model]\n", "is not valid TOML"),
        ('[[model]]\nprovider = "acme"\nid = "x"\n', "has provider 'acme', expected one of"),
        ("[other]\nx = 1\n", r"expected \[\[model\]\] tables"),
        ('[[model]]\nprovider = "bfl"\nid = "x"\n', "is missing"),
        ('[[model]]\nprovider = "bfl"\nid = "x"\nlike = "nope"\ntitle = "t"\n', "no such model"),
    ],
)
def test_a_wrong_file_is_one_sentence(own: Path, text: str, message: str) -> None:
    own.write_text(text)
    with pytest.raises(SettingsError, match=message):
        open_editor("bfl:x")


def test_a_missing_file_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(tmp_path / "no.toml"))
    with pytest.raises(SettingsError, match=r"no.toml, which is no file"):
        shelf("bfl")


def test_an_unknown_model_offers_near_ones() -> None:
    name, model = ALIVE[0]
    with pytest.raises(UnknownName, match="Did you mean"):
        open_editor(f"{name}:{model.id}x")


def test_a_model_that_was_shut_down_names_its_successor(own: Path) -> None:
    known = next(model for name, model in ALIVE if name == "bfl")
    own.write_text(
        f'[[model]]\nprovider = "bfl"\nid = "old"\nlike = "{known.id}"\n'
        f'shutdown = 2020-01-01\nsuccessor = "{known.id}"\n'
    )
    with pytest.raises(SettingsError, match=f"shut down on 2020-01-01. Use bfl:{known.id}"):
        open_editor("bfl:old")


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        (OptionRule(default="low", choices=("low", "high")), "high", "high"),
        (OptionRule(default=True), "false", False),
        (OptionRule(default=4, low=1, high=50), "28", 28),
        (OptionRule(default=4.5, low=1, high=10), "2", 2.0),
    ],
)
def test_options_are_read_by_their_kind(rule: OptionRule, text: str, value: object) -> None:
    assert rule.parse(text) == value
    with pytest.raises(ValueError, match="must be"):
        rule.parse("nonsense")


def test_a_model_like_another_does_not_claim_what_is_known_of_that(own: Path) -> None:
    known = next(model for name, model in ALIVE if name == "openai")
    own.write_text(
        f'[[model]]\nprovider = "openai"\nid = "gpt-image-9"\nlike = "{known.id}"\n'
        'title = "GPT Image 9"\n'
    )
    assert shelf("openai").by_id()["gpt-image-9"].source == f"models.toml, after {known.id}"


def test_a_wrong_price_is_named_by_its_model(own: Path) -> None:
    known = next(model for name, model in ALIVE if name == "bfl")
    own.write_text(
        f'[[model]]\nprovider = "bfl"\nid = "{known.id}"\nprice = {{ image = {{ "1K" = -1 }} }}\n'
    )
    with pytest.raises(SettingsError, match=rf"models.toml: model '{known.id}': price image 1K: "):
        open_editor(f"bfl:{known.id}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("geminy:foo", "no kind of editor called 'geminy'. Did you mean gemini?"),
        ("gemini", "gemini needs a model, as in gemini:gemini-"),
        ("openai:gpt-image-2,qualty=high", "has no option 'qualty'. Did you mean quality?"),
        ("openai:gpt-image-2,quality=low,quality=high", "gives quality twice"),
    ],
)
def test_a_wrong_name_is_one_sentence_that_helps(name: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        open_editor(name)


def test_an_unknown_option_is_one_sentence() -> None:
    name, model = ALIVE[0]
    with pytest.raises(SettingsError, match="has no option 'colour'"):
        open_editor(f"{name}:{model.id},colour=red")


def test_a_plan_counts_the_disk_by_the_size_that_is_asked_for(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", 1, size=64)
    table = {"suite": str(suite), "cycles": ["copy"], "steps": 3, "controls": False}
    mine = plan({**table, "editors": ["ref:blur"]}).disk
    for resolution, side in (("native", 1024), ("2K", 2048), ("interleaved", None)):
        settings = {"resolution": [resolution]}
        editors = ["gemini:gemini-nano-banana-2.1"]
        theirs = plan({**table, "editors": editors, "settings": settings}).disk
        pixels = 3 * side**2 if side else 1024**2 + 2048**2 + 4096**2
        assert theirs / mine == pytest.approx(pixels / (3 * 64**2), rel=1e-3)


def test_pictures_that_a_model_is_said_not_to_take_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = write_suite(tmp_path / "suite", 1, size=64)
    table = {"suite": str(suite), "cycles": ["copy"], "steps": 1, "controls": False}
    small = plan({**table, "editors": ["qwen:qwen-image-edit-plus"]})
    assert any("384 pixels a side or more; s0 has fewer" in note for note in small.notes)
    assert not plan({**table, "editors": ["bfl:flux-2-pro"]}).notes
    monkeypatch.setenv("DASHSCOPE_API_KEY", "test-key-not-a-secret")
    monkeypatch.setenv("BFL_API_KEY", "test-key-not-a-secret")
    assert trial("qwen:qwen-image-edit-plus").side == 384
    assert trial("bfl:flux-2-pro").side == 64
