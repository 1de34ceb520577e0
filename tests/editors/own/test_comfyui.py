"""`comfyui:workflow.json`, against a server that speaks ComfyUI's protocol."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convergebench.chain import Settings
from convergebench.editors.own.workflow import Workflow
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorNoImage,
    EditorUnavailable,
    SettingsError,
)
from convergebench.registry import open_editor
from convergebench.runner import run
from convergebench.store import RunStore
from convergebench.testing import check_editor
from convergebench.walk import calls
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
from tests.editors.own.comfy import WORKFLOW, Comfy
from tests.support.loopback import Received, Reply, serving
from tests.support.runs import write_suite


@pytest.fixture
def fates() -> list[str]:
    """What happens to the workflows, in order; then all is well."""
    return []


@pytest.fixture
def comfy(fates: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Comfy]:
    monkeypatch.chdir(tmp_path)
    write(WORKFLOW)
    with Comfy(lambda number: fates[number] if number < len(fates) else "ok") as server:
        monkeypatch.setenv("COMFYUI_URL", server.server.url)
        yield server


def write(nodes: Any, name: str = "w.json") -> None:
    Path(name).write_text(json.dumps(nodes))


def test_the_picture_is_uploaded_and_the_workflow_queued_with_everything_filled_in(
    comfy: Comfy,
) -> None:
    source = frame()
    tasks: list[Any] = []
    made = reply("comfyui:w.json", inputs=(source,), on_task=tasks.append)
    ((place, data),) = comfy.uploads.items()
    assert data == source.data
    assert place == f"convergebench/{source.digest[:32]}.png"
    (body,) = comfy.prompts
    assert set(body) == {"prompt", "client_id", "prompt_id"}
    nodes = body["prompt"]
    assert nodes["1"]["inputs"] == {"image": place}
    assert nodes["2"]["inputs"] == {"text": f"photo. {PROMPT}", "clip": ["9", 1]}
    assert nodes["3"]["inputs"] == {"seed": 7, "width": 32, "height": 32, "image": ["1", 0]}
    assert nodes["5"]["inputs"]["filename_prefix"] == "%date%", "ComfyUI's own marks stay"
    assert made.data == comfy.frame().data
    assert tasks == [{"prompt_id": body["prompt_id"]}]
    assert made.task == tasks[0]
    assert made.request_id == body["prompt_id"]
    assert made.size == "32x32"
    assert made.parameters == {
        "workflow": Workflow(WORKFLOW).digest,
        "seed": 7,
        "width": 32,
        "height": 32,
    }


def test_a_prompt_that_looks_like_a_placeholder_is_left_alone(comfy: Comfy) -> None:
    reply("comfyui:w.json", prompt='Write "%seed%" on the %image%.')
    text = comfy.prompts[0]["prompt"]["2"]["inputs"]["text"]
    assert text == 'photo. Write "%seed%" on the %image%.'


def test_options_fill_placeholders_of_their_name(comfy: Comfy) -> None:
    nodes = {**WORKFLOW, "6": {"class_type": "X", "inputs": {"d": "%denoise%", "m": "a-%mode%"}}}
    write(nodes)
    made = reply("comfyui:w.json,denoise=0.6,mode=soft")
    assert comfy.prompts[0]["prompt"]["6"]["inputs"] == {"d": 0.6, "m": "a-soft"}
    assert made.parameters["denoise"] == 0.6


def test_without_a_seed_one_is_drawn_and_recorded(comfy: Comfy) -> None:
    made = reply("comfyui:w.json", seed=None)
    sent = comfy.prompts[0]["prompt"]["3"]["inputs"]["seed"]
    assert isinstance(sent, int)
    assert made.parameters["seed"] == sent


def test_several_inputs_have_a_placeholder_each(comfy: Comfy) -> None:
    nodes = {
        **WORKFLOW,
        "1": {"class_type": "LoadImage", "inputs": {"image": "%image1%"}},
        "6": {"class_type": "LoadImage", "inputs": {"image": "%image2%"}},
        "7": {"class_type": "LoadImage", "inputs": {"image": "%image%"}},
    }
    write(nodes)
    reply("comfyui:w.json", inputs=(frame(1), frame(2)))
    sent = comfy.prompts[0]["prompt"]
    assert sent["1"]["inputs"]["image"] == f"convergebench/{frame(1).digest[:32]}.png"
    assert sent["6"]["inputs"] == sent["7"]["inputs"]
    assert sent["6"]["inputs"]["image"] == f"convergebench/{frame(2).digest[:32]}.png"


def test_resolutions_are_followed_where_the_workflow_takes_a_size(comfy: Comfy) -> None:
    made = reply("comfyui:w.json", settings=Settings(resolution="1K"))
    inputs = comfy.prompts[0]["prompt"]["3"]["inputs"]
    assert (inputs["width"], inputs["height"]) == (1184, 880)  # a megapixel of 4:3, by sixteens
    assert made.size == "1184x880"
    able = open_editor("comfyui:w.json").spec.abilities
    assert (able.seeds, able.resolutions) == (True, ("1K", "2K", "4K"))
    write({"1": WORKFLOW["1"], "5": WORKFLOW["5"]})
    spec = open_editor("comfyui:w.json").spec
    assert (spec.abilities.seeds, spec.abilities.resolutions) == (False, ())
    assert spec.caveats == ("the workflow is not told the prompt",)


@pytest.mark.parametrize("fate", ["slow", "poll-broken", "view-cut", "cut"])
def test_what_can_be_overcome_without_a_second_workflow_is(
    comfy: Comfy, fates: list[str], fate: str
) -> None:
    fates.append(fate)
    assert reply("comfyui:w.json").data == comfy.frame().data
    assert len(comfy.prompts) == 1


def test_a_saved_picture_goes_before_a_preview_and_a_preview_before_nothing(
    comfy: Comfy, fates: list[str]
) -> None:
    fates += ["ok", "preview", "batch"]
    assert reply("comfyui:w.json").data == comfy.frame().data  # the server checks the type
    assert reply("comfyui:w.json").data == comfy.frame().data
    batch = reply("comfyui:w.json")
    assert batch.caveats == ("node 5 (SaveImage) made 2 pictures; the first counts",)
    with pytest.raises(EditorNoImage, match="from node 1"):
        raise fault("comfyui:w.json,node=1")


@pytest.mark.parametrize(
    ("fate", "kind", "words"),
    [
        ("invalid", EditorFailed, r"node 1 \(LoadImage\): Custom validation failed.*x\.png"),
        ("error", EditorFailed, r"node 3 \(Sampler\): torch\.OutOfMemoryError: 8 GiB$"),
        ("interrupted", EditorFailed, r"node 3 \(Sampler\): interrupted by somebody"),
        ("no-image", EditorNoImage, "ended without a picture"),
        ("lost", EditorLost, "no longer knows the workflow .*: it was restarted"),
        ("cut-unknown", EditorLost, "no longer knows the workflow"),
        ("view-gone", EditorLost, "the picture is not there: ComfyUI: HTTP 404"),
        ("broken", EditorUnavailable, "HTTP 500"),
        ("limited", EditorUnavailable, "HTTP 429"),
    ],
)
def test_every_fault_is_told_apart(
    comfy: Comfy, fates: list[str], fate: str, kind: type[EditorError], words: str
) -> None:
    fates.append(fate)
    with pytest.raises(kind, match=words) as caught:
        raise fault("comfyui:w.json")
    if fate in ("error", "lost", "no-image", "view-gone"):
        told = caught.value.told
        assert told is not None
        assert told.task == {"prompt_id": comfy.prompts[0]["prompt_id"]}


def test_a_workflow_that_takes_too_long_is_given_up_but_not_forgotten(
    comfy: Comfy, fates: list[str]
) -> None:
    fates.append("stuck")
    editor_error = fault("comfyui:w.json", deadline=0.6)
    assert isinstance(editor_error, EditorLost)
    assert editor_error.timed_out
    assert editor_error.told is not None
    assert editor_error.told.task == {"prompt_id": comfy.prompts[0]["prompt_id"]}


def test_a_task_from_before_is_polled_for_and_nothing_is_begun(comfy: Comfy) -> None:
    tasks: list[Any] = []
    first = reply("comfyui:w.json", seed=None, on_task=tasks.append)
    again = reply("comfyui:w.json", seed=None, task=tasks[0], on_task=tasks.append)
    assert (again.data, again.parameters) == (first.data, first.parameters)
    assert len(comfy.prompts) == 1
    assert len(tasks) == 1
    assert len(comfy.uploads) == 1
    comfy.restart()
    with pytest.raises(EditorLost, match="no longer knows"):
        raise fault("comfyui:w.json", task=tasks[0])


def test_an_upload_that_fails_has_begun_nothing(comfy: Comfy) -> None:
    comfy.broken_uploads = 1
    assert isinstance(fault("comfyui:w.json"), EditorUnavailable)
    assert not comfy.prompts


def test_a_server_that_is_no_comfyui_is_told(comfy: Comfy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMFYUI_URL", f"{comfy.server.url}/elsewhere")
    with pytest.raises(EditorFailed, match="HTTP 404"):
        raise fault("comfyui:w.json")


def test_a_key_is_sent_where_one_is_named(comfy: Comfy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_COMFY_SECRET", MARKER)
    made = reply("comfyui:w.json,key_env=MY_COMFY_SECRET")
    assert MARKER not in repr(made)
    for got in comfy.server.log:
        sent = {name.lower(): value for name, value in got.headers.items()}
        assert sent["authorization"] == f"Bearer {MARKER}"
    assert isinstance(fault("comfyui:w.json,key_env=NOBODY_SET_THIS"), AccountBlocked)


def test_mistakes_are_one_sentence(comfy: Comfy) -> None:
    write({"nodes": [], "links": [], "version": 0.4}, "ui.json")
    write({"1": {"class_type": "LoadImage", "inputs": {"image": "a.png"}}}, "fixed.json")
    write([1, 2], "list.json")
    Path("text.json").write_text("hello")
    said = {
        "comfyui": "has no workflow. Write comfyui:workflow.json",
        "comfyui:none.json": "there is no workflow .*none.json",
        "comfyui:text.json": "is no JSON file",
        "comfyui:list.json": "no workflow in API format: expected an object of nodes",
        "comfyui:ui.json": r"choose Workflow, Export \(API\)",
        "comfyui:fixed.json": 'has no "%image%": write it as the image of a LoadImage node',
        "comfyui:w.json,denoise=1": 'has no "%denoise%" that the option denoise could fill',
        "comfyui:w.json,seed=1": 'has no "%seed%" that|option seed',
        "comfyui:w.json,node=77": "has no node '77'. It has 1, 2, 3, 4, 5",
        "comfyui:w.json,url=nowhere": "'nowhere' is no address",
    }
    for name, words in said.items():
        with pytest.raises(SettingsError, match=words):
            open_editor(name)


def test_the_version_follows_the_workflow(comfy: Comfy) -> None:
    first = open_editor("comfyui:w.json").spec
    write({**WORKFLOW, "6": {"class_type": "X", "inputs": {}}})
    assert open_editor("comfyui:w.json").spec.version != first.version
    assert (first.price, first.concurrency) == (0.0, 1)


def test_it_keeps_the_contract(comfy: Comfy) -> None:
    check_editor(open_editor("comfyui:w.json,concurrency=4"))


def test_a_killed_run_goes_on_with_the_same_workflow(comfy: Comfy, fates: list[str]) -> None:
    """The third workflow hangs; the run is killed while it polls, then the workflow ends."""
    fates += ["ok", "ok", "stuck"]
    suite = write_suite(Path("suite").absolute())
    words = run_words(suite, "comfyui:w.json", 5)
    process = subprocess.Popen([*program(), *words], env=dict(os.environ), stderr=subprocess.PIPE)
    try:
        for _ in range(600):
            polls = [r for r in comfy.server.log if r.path.startswith("/history/")]
            if len(comfy.prompts) == 3 and len(polls) > 4:
                break
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.05)
    finally:
        process.kill()
        process.communicate()
    assert len(comfy.prompts) == 3
    hung = comfy.prompts[2]["prompt_id"]
    comfy._fates[hung] = "ok"
    done = command(Path.cwd(), "run", "run")
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(Path("run")).chains()
    assert chain.length == 5
    assert len(comfy.prompts) == 5, "the hung workflow was not queued again"
    assert chain.steps[2].call.request_id == hung
    assert [f.sha256 for f in chain.frames[1:]] == [comfy.frame(n).digest for n in range(5)]


def test_a_server_restarted_while_a_run_waits_costs_one_more_workflow(
    comfy: Comfy, fates: list[str]
) -> None:
    fates += ["ok", "lost"]
    suite = write_suite(Path("suite").absolute())
    done = command(Path.cwd(), *run_words(suite, "comfyui:w.json", 3))
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(Path("run")).chains()
    assert chain.length == 3
    assert len(comfy.prompts) == 4


def test_a_chain_over_faults_queues_every_workflow_once(
    comfy: Comfy, fates: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids are ours: even an answer that was cut off costs no second workflow."""
    monkeypatch.setattr(calls, "FIRST_WAIT", 0.01)
    faults = ("slow", "cut", "broken", "poll-broken", "limited", "view-cut")
    fates += [faults[n // 3 % len(faults)] if n % 3 == 1 else "ok" for n in range(30)]
    suite = write_suite(Path("suite").absolute())
    table = {"suite": str(suite), "editors": ["comfyui:w.json"], "sources": ["s0"],
             "cycles": ["copy"], "steps": 20, "controls": False}  # fmt: skip
    result = run("run", table)
    assert result.complete, result
    (chain,) = RunStore.open(Path("run")).chains()
    assert chain.length == 20
    assert len(comfy.prompts) == 20
    assert set(faults) <= set(fates[:20])
    assert [f.sha256 for f in chain.frames[1:]] == [comfy.frame(n).digest for n in range(20)]


@given(prompt=st.text(max_size=60), seed=st.integers(0, 2**31 - 1))
def test_whatever_the_prompt_is_it_arrives_whole_and_nothing_else_changes(
    prompt: str, seed: int
) -> None:
    values = {"image": "a.png", "prompt": prompt, "seed": seed, "width": 64, "height": 32}
    filled = Workflow(WORKFLOW).filled(values)
    assert filled["2"]["inputs"] == {"text": f"photo. {prompt}", "clip": ["9", 1]}
    assert filled["3"]["inputs"] == {"seed": seed, "width": 64, "height": 32, "image": ["1", 0]}
    assert filled["5"] == WORKFLOW["5"]
    assert WORKFLOW["1"]["inputs"]["image"] == "%image%", "the file's own nodes stay"


@pytest.mark.parametrize(
    "entry",
    [
        {"outputs": [1]},
        {"outputs": {"5": {"images": ["a.png"]}}},
        {"status": {"status_str": "error", "messages": ["x"]}},
        {"status": {"status_str": "error", "messages": [["execution_error", "x"]]}},
    ],
)
def test_an_answer_in_a_form_that_nobody_described_is_one_sentence(
    entry: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Received) -> Reply:
        if request.path.startswith("/history"):
            return Reply({"p1": entry})
        return Reply({"name": "x.png", "prompt_id": "p1"})

    monkeypatch.chdir(tmp_path)
    write(WORKFLOW)
    with serving(answer) as server:
        error = fault(f"comfyui:w.json,url={server.url}")
    assert isinstance(error, EditorFailed)
    assert "in a form that nobody described" in str(error)
