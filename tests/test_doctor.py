"""Cards and the self-test that runs on the user's machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest

from convergebench import testcard as cards_source
from convergebench.cards.editors import NEAR_DAYS
from convergebench.cards.metrics import card, cards
from convergebench.doctor import doctor
from convergebench.doctor.services import services
from convergebench.errors import UnknownName
from convergebench.metric import KnownAnswer, LiftedMetric, Metric, MetricSpec, Needs, NoScore
from convergebench.registry import lacking
from tests.support.loopback import Reply, serving
from tests.support.plugins import install


def right() -> Metric:
    spec = MetricSpec("right", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, lambda view: 2.05)


def wrong() -> Metric:
    spec = MetricSpec("wrong", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, lambda view: 2.2)


def silent() -> Metric:
    spec = MetricSpec("silent", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, lambda view: NoScore("cannot say"))


def raising() -> Metric:
    def measure(view: object) -> float:
        raise RuntimeError("broken inside")

    spec = MetricSpec("raising", "1", "no-reference", True, known=KnownAnswer(2, 0.1, "hand"))
    return LiftedMetric(spec, measure)


def wanting() -> Metric:
    needs = Needs("iqa", ("no_such_module_here",), ("no-such-set",), ("NO_SUCH_SETTING",))
    spec = MetricSpec("wanting", "1", "no-reference", True, needs=needs)
    return LiftedMetric(spec, lambda view: 1.0)


def unknowing() -> Metric:
    return LiftedMetric(MetricSpec("unknowing", "1", "no-reference", True), lambda view: 1.0)


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("right", "wrong", "silent", "raising", "wanting", "unknowing")
    entries = {name: f"tests.test_doctor:{name}" for name in names}
    entries["broken"] = "tests.no_such_module:broken"
    place = install(tmp_path / "plugin", "clinic", {"metrics": entries})
    monkeypatch.syspath_prepend(str(place))


def test_the_test_card_has_the_same_pixels_everywhere() -> None:
    home, frame = cards_source.testcard()
    digests = [hashlib.sha256(pixels.tobytes()).hexdigest()[:8] for pixels in (home, frame)]
    assert digests == ["50bfc725", "3540c324"]


@pytest.mark.usefixtures("clinic")
def test_every_state_is_told() -> None:
    names = ("right", "wrong", "silent", "raising", "wanting", "unknowing")
    found = {check.metric: check for check in doctor(names).checks}
    assert {name: check.state for name, check in found.items()} == {
        "right": "ok",
        "wrong": "wrong",
        "silent": "failed",
        "raising": "failed",
        "wanting": "failed",  # it was asked for by name
        "unknowing": "unchecked",
    }
    assert found["wrong"].value == 2.2
    assert found["silent"].note == "cannot say"
    assert "broken inside" in found["raising"].note
    assert "no_such_module_here: not installed; `pip install" in found["wanting"].note
    assert "NO_SUCH_SETTING is not set" in found["wanting"].note
    listed = {one.name: one.state for one in cards()}["wanting"]
    assert listed == "lacks no_such_module_here, weights no-such-set, NO_SUCH_SETTING"


def test_every_ready_metric_gives_its_known_answer() -> None:
    found = doctor()
    assert not found.failed, str(found)
    assert sum(check.state == "ok" for check in found.checks) >= 10


@pytest.mark.usefixtures("clinic")
def test_cards_tell_what_is_missing_and_how_to_get_it() -> None:
    found = {one.name: one for one in cards()}
    assert found["psnr"].state == "ready"
    assert "pip install 'convergebench[iqa]'" in found["wanting"].remedy
    assert "cannot be loaded" in found["broken"].remedy
    assert "scikit-image" in str(card("psnr"))
    assert "10·log10(255² / MSE)" in str(card("PSNR"))
    with pytest.raises(UnknownName, match="psnr"):
        card("psnrr")


def test_nothing_lacks_where_nothing_is_needed() -> None:
    assert lacking(Needs()) == []
    assert lacking(Needs(modules=("json",))) == []


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "convergebench", *words], capture_output=True, text=True
    )


def test_commands() -> None:
    listed = json.loads(run("metrics", "list", "--json").stdout)
    assert {"psnr", "niqe", "musiq", "vlm"} <= {one["name"] for one in listed}
    ready = json.loads(run("metrics", "list", "--ready", "--json").stdout)
    assert ready
    assert all(one["ready"] for one in ready)
    sets = json.loads(run("metrics", "sets", "--json").stdout)
    assert len(sets["paper"]) == 23
    assert "typical range" in run("metrics", "show", "ssim").stdout
    done = run("doctor", "psnr", "ssim", "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert told["failed"] == 0
    assert told["services"] is None  # only what was asked for
    unknown = run("metrics", "show", "nicke")
    assert unknown.returncode == 2
    assert unknown.stderr.count("\n") == 1


KEY = "marker-of-a-key-55d0"


def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("BFL_API_KEY", f"{KEY} with spaces")
    found = services()
    by_name = {(one.name, one.kind): one for one in found.services}
    assert by_name["gemini", "editors"].lack == ""
    assert by_name["gemini", "judges"].lack == ""
    assert by_name["gemini", "judges"].keys["GEMINI_API_KEY"] is True
    assert by_name["openai", "editors"].keys == {"OPENAI_API_KEY": False}
    assert "set OPENAI_API_KEY" in by_name["openai", "judges"].lack
    assert "CONVERGEBENCH_JUDGE_URL" in by_name["endpoint", "judges"].lack
    assert "BFL_API_KEY holds a space" in by_name["bfl", "editors"].lack
    assert by_name["anthropic", "judges"].libraries["anthropic"] == version("anthropic")
    text = str(found)
    assert "GEMINI_API_KEY is set" in text
    assert KEY not in text + json.dumps(found.to_dict()) + found._repr_html_()


def models(folder: Path, days: dict[str, int]) -> Path:
    """A catalogue of the user's with models that go in so many days."""
    lines = []
    for name, left in days.items():
        day = datetime.now(UTC).date() + timedelta(days=left)
        lines.append(f'[[model]]\nprovider = "openai"\nid = "{name}"\nlike = "gpt-image-2"')
        lines.append(f'title = "Mine"\nshutdown = {day}\nsuccessor = "gpt-image-2"')
    file = folder / "models.toml"
    file.write_text("\n".join(lines))
    return file


def test_models_near_their_shutdown_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = {"gone": -2, "soon": 5, "later": NEAR_DAYS + 5}
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(models(tmp_path, days)))
    (openai,) = [s for s in services().services if (s.name, s.kind) == ("openai", "editors")]
    text = "\n".join(openai.ending)
    assert "openai:soon shuts down on" in text
    assert "in 5 days, then use gpt-image-2" in text
    assert "openai:gone was shut down on" in text
    assert "openai:later" not in text


def test_a_broken_catalogue_is_told_and_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.toml").write_text("[[judge")
    monkeypatch.setenv("CONVERGEBENCH_JUDGES", str(tmp_path / "bad.toml"))
    found = services()
    (problem,) = found.problems
    assert "not valid TOML" in problem
    assert {one.kind for one in found.services} == {"editors"}
    assert problem in str(found)
    monkeypatch.setenv("CONVERGEBENCH_MODELS", str(tmp_path / "none.toml"))
    assert len(services().problems) == 2  # one for each file, not for each provider


def listing(days: dict[str, int]) -> Reply:
    today = datetime.now(UTC).date()
    data = [
        {"id": name, "object": "model", "created": 1, "owned_by": "openai",
         "shutdown_date": str(today + timedelta(days=left))}
        for name, left in days.items()
    ]  # fmt: skip
    data.append({"id": "gpt-image-2.5-flare", "object": "model", "created": 1, "owned_by": "x"})
    return Reply({"object": "list", "data": data})


def test_online_asks_those_who_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    days = {"gpt-image-2": 20, "gpt-6-luna": 3, "gpt-image-2.6-flare": 300, "whisper": 2}
    with serving(lambda _: listing(days)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = services(online=True)
    assert [(got.method, got.path) for got in server.log] == [("GET", "/models")]
    by_name = {one.name: one for one in found.services if one.kind == "editors"}
    text = "\n".join(by_name["openai"].ending)
    assert "openai:gpt-image-2 goes on" in text
    assert "in 20 days, as OpenAI says" in text
    assert "openai:gpt-6-luna goes on" in text  # a judge of the same provider
    assert "whisper" not in text
    assert "2.6-flare" not in text
    assert by_name["openai"].told == "was asked: 4 models with a day of shutdown"
    assert by_name["gemini"].told == "does not tell when its models go"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply({"error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}}, 401), "401"),
        (Reply(b"", 500), "500"),
        (Reply({}, cut=0), "OpenAI"),
    ],
)
def test_online_failures_are_one_line(
    reply: Reply, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(lambda _: reply) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = services(online=True)
    (told,) = [s.told for s in found.services if (s.name, s.kind) == ("openai", "editors")]
    assert told.startswith("could not be asked: ")
    assert words in told
    assert KEY not in str(found)


def test_online_without_a_key_asks_nobody() -> None:
    found = services(online=True)
    (told,) = [s.told for s in found.services if (s.name, s.kind) == ("openai", "editors")]
    assert told.startswith("was not asked. OpenAI needs a key")


def test_missing_keys_are_no_failure_of_the_machine() -> None:
    done = run("doctor")
    assert done.returncode == 0, done.stderr
    assert "Self-test on the test card" in done.stdout
    assert "Editors and judges: " in done.stdout
