"""`convergebench editors list|show|check`, with real commands and a provider on this machine."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from convergebench.cards.editors import NEAR_DAYS, EditorList, editor_card, editor_cards
from convergebench.cards.facts import priced
from convergebench.cards.trial import picture, trial
from convergebench.editor import EditorSpec, EditReply, EditRequest, Price
from convergebench.editors.providers.catalogue import VARIABLE
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorRefused,
    EditorUnavailable,
    SettingsError,
    UnknownName,
)
from tests.editors.providers.speakers import speaker_of
from tests.support.plugins import install
from tests.support.speaker import Speaker

KEY = "marker-of-a-key-71c2"
MODEL = "openai:gpt-image-2"


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "convergebench", *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **more},
    )


def catalogue(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = folder / "models.toml"
    file.write_text(text)
    monkeypatch.setenv(VARIABLE, str(file))


def going(days: int, more: str = "") -> str:
    day = datetime.now(UTC).date() + timedelta(days=days)
    head = f'[[model]]\nprovider = "openai"\nid = "mine-{days}"\nlike = "gpt-image-2"\n'
    return head + f'title = "Mine"\nshutdown = {day}\nsuccessor = "gpt-image-2"\n{more}'


class Odd:
    """An editor of somebody else's, which does as its name says."""

    def __init__(self, what: str) -> None:
        self._what = what

    @property
    def spec(self) -> EditorSpec:
        price = None if self._what == "unpriced" else 0.02
        lacks = "Odd needs a licence: buy one." if self._what == "poor" else ""
        return EditorSpec(f"odd:{self._what}", "1", "an odd editor", price=price, lacks=lacks)

    def edit(self, request: EditRequest) -> EditReply:
        told = EditReply(b"", model="odd-1", request_id="r-9", cost=0.01, basis="reported")
        raised: dict[str, Exception] = {
            "refuses": EditorRefused("not this", told=told),
            "empty": EditorNoImage("words only"),
            "fails": EditorFailed("no such model"),
            "loses": EditorLost("the line was cut"),
            "blocks": AccountBlocked("no credit"),
            "waits": EditorUnavailable("busy", retry_after=3.0),
            "breaks": RuntimeError(f"a bug, key {os.environ.get('ODD_API_KEY')}"),
            "odd": EditorError("something else"),
        }
        if self._what in raised:
            if self._what == "loses":
                request.on_task({"id": "task-5"})
            raise raised[self._what]
        if self._what == "none":
            return None  # type: ignore[return-value]
        if self._what == "nothing":
            return EditReply(b"")
        whole = request.inputs[-1].data
        data = whole[:50] if self._what == "half" else whole
        return EditReply(data, model="odd-1", size="64x64", format="png", caveats=("it is odd",))


class OddFamily:
    models: Mapping[str, str] = {"works": "works well", "poor": "lacks a licence"}

    def __call__(self, model: str) -> Odd:
        return Odd(model)


odd = OddFamily()


def bare(path: str) -> Odd:
    """Takes a path, and cannot be opened without."""
    return Odd(path)


@pytest.fixture
def oddities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {name: f"tests.test_cli_editors:{name}" for name in ("odd", "bare")}
    entries["torn"] = "tests.no_such_module:torn"
    place = install(tmp_path / "plugin", "oddities", {"editors": entries})
    monkeypatch.syspath_prepend(str(place))
    root = str(Path(__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), root]))


@pytest.fixture
def openai() -> type[Speaker]:
    return speaker_of("openai")


@pytest.mark.usefixtures("oddities")
def test_every_editor_is_listed_with_its_price_and_what_it_lacks() -> None:
    found = {card.name: card for card in editor_cards().cards}
    assert found["ref:jpeg"].state == "ready"
    assert priced(found["ref:jpeg"].price) == "free"
    card = found[MODEL]
    assert card.state == "lacks a key (OPENAI_API_KEY)"
    assert "set OPENAI_API_KEY" in card.lack
    price = card.price
    assert price is not None
    assert 0 < price.low <= price.expected <= price.high
    assert found["odd:works"].price == Price.flat(0.02)
    drawn = str(EditorList(tuple(found.values())))
    assert f"{len(found)} editors, " in drawn
    assert all(name in drawn for name in found)
    assert found["odd:poor"].state == "Odd needs a licence"
    assert found["torn"].state == "lacks a working plug-in"
    assert "cannot be loaded" in found["torn"].lack
    assert not found["bare"].ready
    chosen = editor_cards("JPEG", ready=True).cards
    assert "ref:jpeg" in {card.name for card in chosen}
    assert all(card.ready for card in chosen)


@pytest.mark.usefixtures("oddities")
@pytest.mark.parametrize("word", ["", "ref", "openai"])
def test_the_list_is_100_letters_wide_and_says_below_what_is_lacking(word: str) -> None:
    listed = editor_cards(word)
    drawn = str(listed).splitlines()
    assert max(map(len, drawn)) <= 100
    told = " ".join(" ".join(drawn).split())
    for card in listed.cards:
        assert card.name in told
        if not card.ready and "shut down" not in card.lack:
            assert " ".join(card.lack.split()) in told


def test_an_address_or_a_key_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://far.example/v1")
    monkeypatch.setenv("BFL_API_KEY", "not a key")
    found = {card.name: card for card in editor_cards("flux-2-pro").cards}
    assert "BFL_API_KEY holds a space" in found["bfl:flux-2-pro"].lack
    assert "not a key" not in str(found["bfl:flux-2-pro"])
    (card,) = [card for card in editor_cards("gpt-image-2").cards if card.name == MODEL]
    assert "https" in card.lack
    with pytest.raises(SettingsError, match="https"):
        editor_card(MODEL)


def test_a_key_makes_a_model_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    card = editor_card(MODEL)
    assert card.state == "ready"
    assert KEY not in str(card) + json.dumps(card.to_dict())


def test_models_near_their_shutdown_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = going(-3) + going(0) + going(1) + going(NEAR_DAYS) + going(NEAR_DAYS + 1)
    catalogue(tmp_path, monkeypatch, text)
    found = {card.name: card for card in editor_cards("mine-").cards}
    near = {int(name.rpartition("mine-")[2]): card.near for name, card in found.items()}
    assert near == {-3: True, 0: True, 1: True, NEAR_DAYS: True, NEAR_DAYS + 1: False}
    assert found["openai:mine-1"].state.endswith("in 1 day, then use gpt-image-2")
    assert found["openai:mine-0"].state.startswith("shut down on")
    assert "shuts down" not in found[f"openai:mine-{NEAR_DAYS + 1}"].state
    gone = editor_card("openai:mine--3")
    assert "Use openai:gpt-image-2." in gone.lack
    assert gone.price is None


def test_a_card_tells_all_that_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue(tmp_path, monkeypatch, going(9, 'pins = { colour = "none" }\n'))
    lines = editor_card("openai:mine-9,quality=high").facts
    facts = dict(lines)
    assert facts["key"] == "OPENAI_API_KEY is not set"
    assert "per million" in facts["price rule"]
    assert "in 9 days" in facts["ends"]
    assert facts["successor"] == "openai:gpt-image-2"
    assert facts["seed"] == "not taken"
    assert ("always sent", 'colour = "none"') in lines
    assert any(what == "option" and text.startswith('quality = "high"') for what, text in lines)
    for what in ("sizes", "formats taken", "library", "facts from", "verified against", "caveat"):
        assert facts[what]
    dear, plain = (editor_card(f"openai:mine-9{more}").price for more in (",quality=high", ""))
    assert dear is not None
    assert plain is not None
    assert dear.expected > plain.expected


@pytest.mark.usefixtures("oddities")
def test_names_that_are_none_are_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean jpeg"):
        editor_card("ref:jpg")
    with pytest.raises(UnknownName, match="no editor called"):
        editor_card("nobody:x")
    with pytest.raises(SettingsError, match="no option 'colour'"):
        editor_card(f"{MODEL},colour=red")
    assert str(editor_card("bare,path=x")).count("an odd editor") == 1


@pytest.mark.parametrize(
    ("what", "outcome", "cost", "words"),
    [
        ("works", "edited", 0.02, "works"),
        ("refuses", "refused", 0.01, "refused the edit: not this"),
        ("empty", "no-image", 0.0, "answered without an image"),
        ("fails", "failed", 0.0, "failed: no such model"),
        ("loses", "lost", 0.02, "may have billed"),
        ("blocks", "blocked", 0.0, "no credit"),
        ("waits", "unavailable", 0.0, r"busy \(try again in 3 s\)"),
        ("breaks", "failed", 0.02, "RuntimeError: a bug"),
        ("odd", "failed", 0.0, "something else"),
        ("none", "failed", 0.02, "no EditReply"),
        ("half", "malformed", 0.02, "no whole image"),
        ("nothing", "no-image", 0.0, "holds no bytes"),
        ("unpriced", "edited", None, "works"),
    ],
)
@pytest.mark.usefixtures("oddities")
def test_whatever_an_edit_comes_to_is_told(
    what: str, outcome: str, cost: float | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import re

    monkeypatch.setenv("ODD_API_KEY", KEY)
    tried = trial(f"odd:{what}").make()
    assert (tried.outcome, tried.cost) == (outcome, cost)
    assert tried.worked is (outcome == "edited")
    assert re.search(words, tried.sentence)
    assert KEY not in str(tried) + tried.sentence + json.dumps(tried.to_dict())
    assert dict(tried.lines)["outcome"] == outcome
    if what == "loses":
        assert tried.task == {"id": "task-5"}
        assert dict(tried.lines)["task"] == "id task-5"
    if what == "works":
        assert dict(tried.lines)["caveat"] == "it is odd"


def test_the_picture_is_a_64_pixel_one_with_a_ball_that_can_be_removed() -> None:
    from convergebench.frame import Frame

    before = picture()
    assert (before.facts.width, before.facts.height) == (64, 64)
    reply = trial("ref:png").make().reply
    assert Frame(reply.data).pixel_digest != before.pixel_digest


@pytest.mark.usefixtures("oddities")
def test_an_editor_that_lacks_something_is_not_called() -> None:
    with pytest.raises(SettingsError, match="buy one"):
        trial("odd:poor")
    with pytest.raises(SettingsError, match="set OPENAI_API_KEY"):
        trial(MODEL)


def test_check_pays_only_after_a_yes(openai: type[Speaker]) -> None:
    with openai() as speaker:
        told = dict(speaker.environment(KEY))
        refused = run("editors", "check", speaker.editor, **told)
        assert refused.returncode == 2
        assert "add --yes" in refused.stderr
        assert "one edit of a 64-pixel picture" in refused.stderr
        assert "$0.0" in refused.stderr
        assert not speaker.server.log
        done = run("editors", "check", speaker.editor, "--yes", "--json", **told)
        assert done.returncode == 0, done.stderr
        assert speaker.billed == 1
    result = json.loads(done.stdout)
    assert result["outcome"] == "edited"
    assert result["cost"] > 0
    assert result["size_asked"]
    assert result["size_returned"]
    assert KEY not in refused.stderr + done.stdout + done.stderr


def test_check_in_a_terminal_asks(openai: type[Speaker]) -> None:
    with openai() as speaker:
        for answer, billed in (("n\n", 0), ("y\n", 1)):
            master, slave = pty.openpty()
            os.write(master, answer.encode())
            done = subprocess.run(
                [sys.executable, "-m", "convergebench", "editors", "check", speaker.editor],
                stdin=slave,
                capture_output=True,
                text=True,
                env={**os.environ, **speaker.environment(KEY)},
                timeout=60,
            )
            os.close(slave)
            os.close(master)
            assert speaker.billed == billed
            assert done.returncode == (0 if billed else 2), done.stderr
            assert ("nothing was called" in done.stderr) is not bool(billed)


FATES = {
    "limited": "unavailable",
    "broken": "unavailable",
    "cut": "lost",
    "no-image": "no-image",
    "truncated": "malformed",
}


@pytest.mark.parametrize("fate", FATES)
def test_one_edit_is_made_whatever_the_provider_does(
    fate: str, openai: type[Speaker], monkeypatch: pytest.MonkeyPatch
) -> None:
    with openai(lambda _number: fate) as speaker:
        for name, value in speaker.environment(KEY).items():
            monkeypatch.setenv(name, value)
        tried = trial(speaker.editor).make()
    assert tried.outcome == FATES[fate]
    assert len(speaker.begun) == 1
    assert tried.cost is not None
    assert (tried.cost > 0) is (speaker.billed > 0)
    assert KEY not in str(tried) + tried.sentence


def test_check_says_in_one_sentence_what_went_wrong(openai: type[Speaker]) -> None:
    with openai(lambda _number: "cut") as speaker:
        done = run("editors", "check", speaker.editor, "-y", **speaker.environment(KEY))
    assert done.returncode == 2
    assert len(speaker.begun) == 1  # one edit, whatever happens
    assert "Traceback" not in done.stderr
    assert KEY not in done.stdout + done.stderr
    assert sum(line.startswith("convergebench: ") for line in done.stderr.splitlines()) == 1


@pytest.mark.usefixtures("oddities")
def test_commands() -> None:
    told = json.loads(run("editors", "list", "nano banana", "--json").stdout)
    assert told["editors"]
    assert all("nano banana" in (one["name"] + one["title"]).lower() for one in told["editors"])
    shown = run("editors", "show", MODEL)
    assert "price rule" in shown.stdout
    free = run("editors", "check", "ref:jpeg")
    assert free.returncode == 0  # what is free needs no yes
    assert "jpeg" in free.stdout
    unknown = run("editors", "show", "ref:jpgg")
    assert unknown.returncode == 2
    assert unknown.stderr.count("\n") == 1
