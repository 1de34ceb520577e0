"""Names, versions, options and prompts of the metrics served by a model."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.errors import MetricUnavailable, SettingsError
from convergebench.metrics import served
from convergebench.metrics.served_options import OPTIONS, PROMPTS, Prompt
from tests.metrics.judged import FACTORIES, SCALE, one, picture
from tests.support.chat_server import (
    MODEL,
    ChatServer,
    chat_server,
)

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "served-metrics.md"


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "_MEMORY", {})
    for name in os.environ:
        if name.startswith(("CONVERGEBENCH_VQR1", "CONVERGEBENCH_VLM")):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


# -- names, versions, settings --------------------------------------------------------------------


def test_names_hold_what_moves_the_number_and_open_again_as_the_same_metric() -> None:
    metric = served.vlm(
        model="qwen3-vl:8b",
        url="http://localhost:11434/v1",
        samples="5",
        temperature="0.70",
        scale="0-10",
        concurrency="2",
        timeout="9",
        prompt="visualquality-r1-plain",
    )
    assert metric.spec.name == (
        "vlm:qwen3-vl:8b,prompt=visualquality-r1-plain,samples=5,scale=0-10,temperature=0.7"
    )
    again = served.vlm.card(
        model="qwen3-vl:8b",
        prompt="visualquality-r1-plain",
        samples="5",
        scale="0-10",
        temperature="0.7",
    )
    assert (again.name, again.version) == (metric.spec.name, metric.spec.version)
    assert metric.spec.typical == (0, 10)


moving = st.fixed_dictionaries(
    {},
    optional={
        "prompt": st.sampled_from(["visualquality-r1", "visualquality-r1-plain"]),
        "samples": st.integers(1, 9).map(str),
        "temperature": st.one_of(st.just("none"), st.floats(0, 2).map(str)),
        "max_tokens": st.one_of(st.just("none"), st.integers(1, 5000).map(str)),
        "seed": st.one_of(st.just("none"), st.integers(0, 9).map(str)),
        "max_side": st.one_of(st.just("none"), st.integers(28, 999).map(str)),
        "scale": st.sampled_from(["1-5", "0-100", "-1-1", "0-0.5"]),
        "pin": st.sampled_from(["", "x-2026"]),
    },
)


@given(moving, st.sampled_from(sorted(FACTORIES)))
def test_every_card_opens_again_from_its_name(options: dict[str, str], name: str) -> None:
    first = FACTORIES[name].card(model="m", **options)
    head, *pairs = first.name.split(",")
    again = FACTORIES[name].card(
        model=head.partition(":")[2], **dict(pair.split("=") for pair in pairs)
    )
    assert first == again


@given(moving, moving)
def test_equal_versions_mean_equal_names(one: dict[str, str], other: dict[str, str]) -> None:
    first, second = served.vlm.card(model="m", **one), served.vlm.card(model="m", **other)
    assert (first.version == second.version) == (first.name == second.name)


def test_how_the_server_is_reached_moves_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "abcdefgh")
    far = served.vlm(model="m", url="https://x.example/v1", key_env="X", timeout="7")
    assert far.spec.label == served.vlm.card(model="m").label


@pytest.mark.parametrize(
    "given_name", ["", "/data/models/VisualQuality-R1-7B", "VisualQuality-R1-7B/"]
)
def test_the_published_model_by_any_of_its_names_is_the_metric(
    given_name: str, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVERGEBENCH_VQR1_URL", server.url)
    monkeypatch.setenv("CONVERGEBENCH_VQR1_MODEL", given_name)
    server.served = [given_name or "TianheWu/VisualQuality-R1-7B"]
    metric = served.visualquality_r1()
    assert metric.spec.label == served.visualquality_r1.spec.label
    assert metric.spec.name == "visualquality-r1"
    assert isinstance(one(metric, picture()), float)


def test_another_model_is_another_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVERGEBENCH_VQR1_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("CONVERGEBENCH_VQR1_MODEL", "TianheWu/VisualQuality-R1-7B-preview")
    metric = served.visualquality_r1()
    assert metric.spec.name == "visualquality-r1:TianheWu/VisualQuality-R1-7B-preview"
    assert metric.spec.version != served.visualquality_r1.spec.version


def test_cards_need_no_server() -> None:
    for name, factory in FACTORIES.items():
        assert factory.spec.name == name
        assert factory.spec.needs.settings
        assert factory.__doc__
        assert factory.spec.kind == "no-reference"
    assert served.visualquality_r1.spec.typical == SCALE
    assert served.visualquality_r1.spec.higher_is_better
    assert not served.visualquality_r1_unparsed.spec.higher_is_better


def test_without_a_server_it_says_what_to_set() -> None:
    with pytest.raises(MetricUnavailable, match=r"CONVERGEBENCH_VQR1_URL .*http://localhost:8000"):
        served.visualquality_r1()
    with pytest.raises(MetricUnavailable, match=r"needs a model: vlm:MODEL,url=http"):
        served.vlm()
    with pytest.raises(MetricUnavailable, match=r"set CONVERGEBENCH_VLM_URL"):
        served.vlm(model="m")


def test_the_key_of_openai_goes_to_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MetricUnavailable, match="set OPENAI_API_KEY"):
        served.vlm(model="m", url="https://api.openai.com/v1")
    with pytest.raises(MetricUnavailable, match="the variable that key_env names is not set"):
        served.vlm(model="m", url="http://localhost/v1", key_env="NOWHERE")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with chat_server() as server:
        one(served.vlm(model=MODEL, url=server.url), picture())
        assert "Authorization" not in server.calls[0].headers
        monkeypatch.setenv("CONVERGEBENCH_VLM_KEY", "sk-other-0123")
        one(served.vlm(model=MODEL, url=server.url), picture(3))
        assert server.calls[1].headers["Authorization"] == "Bearer sk-other-0123"
    openai = served.vlm(model="m", url="https://api.openai.com/v1")
    assert openai._connection.limit == "max_completion_tokens"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"samples": "0"}, "samples must be a whole number from 1 to 100, got '0'"),
        ({"temperature": "nan"}, "temperature must be a number from 0 to 2, or none"),
        ({"scale": "5-1"}, "scale must be low-high, as in 1-5"),
        ({"scale": "..-5"}, "scale must be"),
        ({"sampels": "3"}, "no option 'sampels'. Did you mean samples?"),
        ({"zzz": "3"}, "no option 'zzz'. It has prompt, samples"),
        ({"prompt": "nowhere"}, "no prompt called 'nowhere', nor a file"),
        ({"url": "localhost"}, "no base URL"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(words)):
        served.vlm(model="m", **{"url": "http://localhost/v1", **options})


@pytest.mark.parametrize("option", ["key", "api_key", "token", "key_env"])
def test_a_key_as_an_option_is_refused_and_not_repeated(option: str) -> None:
    with pytest.raises(SettingsError, match="key_env") as caught:
        served.vlm(model="m", url="http://localhost/v1", **{option: "sk-abc-0123456789"})
    assert "sk-abc" not in str(caught.value)


# -- prompts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(PROMPTS.glob("*.toml")), ids=lambda path: path.stem)
def test_prompts_in_the_box_say_where_they_are_from(path: Path) -> None:
    told = tomllib.loads(path.read_text())
    assert re.search(r"[0-9a-f]{40}", told["source"])
    assert told["paper"].startswith("https://")
    prompt = Prompt.read(path.stem)
    assert prompt.scale is not None
    assert "{" not in prompt.text


def test_a_prompt_of_ones_own(tmp_path: Path, server: ChatServer) -> None:
    text = tmp_path / "noise.txt"
    text.write_text("How noisy is it, 0 to 9? Answer in <answer></answer>.\n")
    with pytest.raises(SettingsError, match=r"on which scale\? Add for example scale=1-5"):
        served.vlm.card(model=MODEL, prompt=str(text))
    one(served.vlm(model=MODEL, url=server.url, prompt=str(text), scale="0-9"), picture())
    assert server.calls[0].text == "How noisy is it, 0 to 9? Answer in <answer></answer>."
    before = served.vlm.card(model=MODEL, prompt=str(text), scale="0-9")
    text.write_text("How noisy is it really, 0 to 9?")
    assert served.vlm.card(model=MODEL, prompt=str(text), scale="0-9").version != before.version
    full = tmp_path / "noise.toml"
    full.write_text(
        'question = "Noise?"\nscale = [0, 9]\nhigher_is_better = false\ntitle = "Noise"'
    )
    card = served.vlm.card(model=MODEL, prompt=str(full))
    assert (card.typical, card.higher_is_better) == ((0, 9), False)
    assert "(Noise)" in card.title


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("question = 3", "question is missing or empty"),
        ("question = ' '", "question is missing or empty"),
        ("question = 'a'\ntemplate = 'b'", "template must hold {Question}"),
        ("question = 'a'\nscale = [5, 1]", "scale must be [low, high]"),
        ("question = 'a'\nscale = [true, 5]", "scale must be [low, high]"),
        ("question = 'a'\nhigher_is_better = 'no'", "must be true or false"),
        ("question = 'a'\nquestoin = 'b'", "no such key as 'questoin'"),
        ("question = ", "noise.toml: Invalid value"),
    ],
)
def test_a_wrong_prompt_file_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "noise.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=re.escape(words)):
        Prompt.read(str(path))


# -- the guide ------------------------------------------------------------------------------------


def test_the_guide_names_every_option_variable_metric_and_prompt() -> None:
    text = GUIDE.read_text()
    variables = [f"CONVERGEBENCH_{family}_{what}" for family in ("VQR1", "VLM")
                 for what in ("URL", "MODEL", "KEY")]  # fmt: skip
    prompts = [path.stem for path in PROMPTS.glob("*.toml")]
    for word in (*OPTIONS, *variables, *prompts, *FACTORIES):
        assert f"`{word}`" in text, word
