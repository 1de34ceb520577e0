"""`python:module:function`."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from convergebench.analysis.leaderboard import controls_among
from convergebench.chain import Settings
from convergebench.editor import Abilities
from convergebench.errors import EditorFailed, EditorNoImage, EditorRefused, SettingsError
from convergebench.frame import Frame
from convergebench.registry import open_editor
from convergebench.resources import Resources
from convergebench.store import RunStore
from convergebench.testing import check_editor
from tests.editors.own.asking import MARKER, command, fault, frame, reply, request, run_words
from tests.support.runs import write_suite

Written = Callable[..., str]


@pytest.fixture
def written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Written:
    """Writes a module of the test's own into the current folder; its name."""
    monkeypatch.chdir(tmp_path)
    name = "mine_" + re.sub(r"\W", "_", request.node.name)[:60]

    def write(text: str, suffix: str = "") -> str:
        (tmp_path / f"{name}{suffix}.py").write_text(textwrap.dedent(text))
        return name + suffix

    return write


def test_a_function_gets_an_image_the_prompt_and_the_seed(written: Written) -> None:
    module = written(
        """
        from PIL import Image

        def edit(image, prompt, seed):
            assert isinstance(image, Image.Image) and image.mode == "RGB"
            return Image.new("RGB", image.size, (len(prompt), seed, 3))
        """
    )
    made = Frame(reply(f"python:{module}:edit").data)
    assert made.facts.format == "png"
    assert made.pixels.shape == (24, 32, 3)
    assert made.pixels[0, 0].tolist() == [18, 7, 3]


@pytest.mark.parametrize("annotation", ["np.ndarray", "'np.ndarray'", "NDArray[np.uint8]"])
def test_a_function_that_asks_for_an_array_gets_one(written: Written, annotation: str) -> None:
    module = written(
        f"""
        import numpy as np
        from numpy.typing import NDArray

        def edit(image: {annotation}, prompt: str, seed: int):
            image[:] = 255 - image
            return image
        """
    )
    source = frame()
    before = source.pixels.copy()
    made = Frame(reply(f"python:{module}:edit", inputs=(source,)).data)
    assert np.array_equal(made.pixels, 255 - before)
    assert np.array_equal(source.pixels, before), "the input is a copy"


def test_bytes_are_kept_as_they_are_and_a_whole_reply_too(written: Written) -> None:
    module = written(
        """
        import io
        from convergebench.editor import EditReply

        def jpeg(image, prompt, seed):
            out = io.BytesIO()
            image.save(out, "JPEG", quality=60)
            return out.getvalue()

        def told(image, prompt, seed):
            return EditReply(jpeg(image, prompt, seed), model="mine-2", cost=0.5, basis="reported")
        """
    )
    out = io.BytesIO()
    Image.fromarray(frame().pixels).save(out, "JPEG", quality=60)
    assert reply(f"python:{module}:jpeg").data == out.getvalue()
    told = reply(f"python:{module}:told")
    assert (told.data, told.model, told.cost) == (out.getvalue(), "mine-2", 0.5)


def test_options_are_keywords_read_as_numbers_booleans_and_texts(written: Written) -> None:
    module = written(
        """
        from PIL import Image
        seen = {}

        def edit(image, prompt, seed, *, strength=1, steps=1, keep=True, label: str = "", kind=""):
            seen.update(strength=strength, steps=steps, keep=keep, label=label, kind=kind)
            return image
        """
    )
    name = f"python:{module}:edit,strength=0.4,steps=20,keep=false,label=12,kind=x=y,price=0.25"
    made = reply(f"{name},seconds=3,concurrency=2")
    expected = {"strength": 0.4, "steps": 20, "keep": False, "label": "12", "kind": "x=y"}
    assert __import__(module).seen == expected
    assert made.parameters == expected
    spec = open_editor(f"{name},seconds=3,concurrency=2").spec
    assert (spec.price, spec.seconds, spec.concurrency) == (0.25, 3.0, 2)
    assert spec.name.startswith(f"python:{module}:edit,concurrency=2,keep=false")


def test_a_function_may_ask_for_the_whole_request_and_then_follows_every_setting(
    written: Written,
) -> None:
    module = written(
        """
        from PIL import Image

        def edit(image, prompt, seed, request):
            warmth = int(request.settings.temperature * 10)
            return Image.new("RGB", image.size, (warmth, request.step, 0))

        def plain(image, prompt, seed):
            return image
        """
    )
    asked = {"settings": Settings(temperature=0.5), "step": 4}
    made = Frame(reply(f"python:{module}:edit", **asked).data)
    assert made.pixels[0, 0].tolist() == [5, 4, 0]
    assert open_editor(f"python:{module}:edit").spec.abilities == Abilities()
    able = open_editor(f"python:{module}:plain").spec.abilities
    assert (able.temperature, able.resolutions, able.sessions) == (False, (), ("stateless",))
    assert able.seeds


def test_what_it_raises_is_an_outcome(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", MARKER)
    module = written(
        """
        import os
        from convergebench.errors import EditorRefused

        def breaks(image, prompt, seed):
            raise KeyError(f"no weights with {os.environ['MY_API_KEY']}")

        def refuses(image, prompt, seed):
            raise EditorRefused("not that one")

        def nothing(image, prompt, seed):
            return None

        def floats(image, prompt, seed):
            import numpy as np
            return np.zeros((4, 5, 3), np.float32)

        def path(image, prompt, seed):
            return "out.png"

        def leaves(image, prompt, seed):
            raise SystemExit(3)

        def ends(image, prompt, seed):
            raise BaseException("the end")

        def empty(image, prompt, seed):
            return image.resize((4, 4)).crop((0, 0, 0, 4))
        """
    )
    with pytest.raises(EditorFailed, match=rf"KeyError: .*<MY_API_KEY>.* \({module}.py, line 6\)"):
        open_editor(f"python:{module}:breaks").edit(request())
    assert isinstance(fault(f"python:{module}:refuses"), EditorRefused)
    assert isinstance(fault(f"python:{module}:nothing"), EditorNoImage)
    floats = fault(f"python:{module}:floats")
    assert str(floats) == (
        "the function returned an array of 4×5×3 float32, expected height×width×3 uint8"
    )
    assert "returned str, expected a PIL image" in str(fault(f"python:{module}:path"))
    assert str(fault(f"python:{module}:leaves")).startswith("SystemExit: 3 (")
    assert str(fault(f"python:{module}:ends")).startswith("BaseException: the end (")
    assert "the picture cannot be saved" in str(fault(f"python:{module}:empty"))


def test_every_mistake_in_the_name_is_one_sentence(written: Written, tmp_path: Path) -> None:
    module = written(
        """
        VALUE = 3

        def short(image, prompt): ...
        def long(image, prompt, seed, strength): ...
        def good(image, prompt, seed): ...
        async def later(image, prompt, seed): ...
        """
    )
    broken = written("import no_such_library_anywhere\n", "_a")
    exits = written("raise SystemExit('use --help')\n", "_b")
    wrong = written("def edit(:\n", "_c")
    said = {
        "python": "write python:package.module:function, as in python:my_editor:edit",
        f"python:{module}": "write python:package.module:function",
        f"python:{module}.py:good": f"there is no module '{module}.py'",
        "python:no_such:edit": rf"'no_such': neither in the current folder \({tmp_path}\)",
        f"python:{module}:edit": "has no function 'edit'. It has good, later, long, short",
        f"python:{module}:VALUE": "is no function but int",
        f"python:{module}:later": "is async, expected a plain function",
        f"python:{module}:short": r"as edit\(image, prompt, seed\), but takes \(image, prompt\)",
        f"python:{module}:long": "must be callable as edit",
        f"python:{module}:good,strength=1": "unexpected keyword argument 'strength'; the function",
        f"python:{module}:good,seed=1": "multiple values for argument 'seed'",
        f"python:{module}:good,price=free": "price must be dollars per call, 0 or more, got 'free'",
        f"python:{module}:good,concurrency=0": "concurrency must be a whole number from 1 to 256",
        f"python:{broken}:edit": "needs no_such_library_anywhere, which is not installed",
        f"python:{exits}:edit": "cannot be imported: SystemExit: use --help",
        f"python:{wrong}:edit": "cannot be imported: SyntaxError",
        f"python:{module}:good,a,b": "'a' is no option.*Every comma begins an option",
    }
    for name, words in said.items():
        with pytest.raises(SettingsError, match=words) as caught:
            open_editor(name)
        assert "\n" not in str(caught.value), name


def test_it_keeps_the_contract(written: Written) -> None:
    module = written(
        """
        import numpy as np

        def edit(image: np.ndarray, prompt: str, seed: int | None) -> np.ndarray:
            "Adds a little noise."
            noise = np.random.default_rng(seed).normal(0, 2, image.shape)
            return np.clip(image + noise, 0, 255).astype(np.uint8)
        """
    )
    editor = open_editor(f"python:{module}:edit,concurrency=4")
    check_editor(editor)
    assert editor.spec.description == "Adds a little noise."
    assert editor.spec.price is None, "nobody said what it costs"


def test_a_module_that_changes_while_a_process_lives_is_not_passed_off_as_new(
    written: Written,
) -> None:
    module = written("def edit(image, prompt, seed): return image\n")
    first = open_editor(f"python:{module}:edit").spec.version
    assert open_editor(f"python:{module}:edit").spec.version == first
    written("def edit(image, prompt, seed): return None\n")
    with pytest.raises(SettingsError, match=r"has changed since it was imported\. Start Python"):
        open_editor(f"python:{module}:edit")


def test_the_version_covers_every_module_of_the_package(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("LEVEL = 1\n")
    (package / "editor.py").write_text(
        "from pack.inner import LEVEL\ndef edit(image, prompt, seed):\n    return image\n"
    )
    suite = write_suite(tmp_path / "suite")
    words = run_words(suite, "python:pack.editor:edit", 2)
    done = command(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    (package / "inner.py").write_text("LEVEL = 2\n")
    refused = command(tmp_path, "run", "run", "--steps", "4")
    assert refused.returncode == 2
    assert "the two cannot be mixed" in " ".join(refused.stderr.split())
    (package / "inner.py").write_text("LEVEL = 1\n")
    resumed = command(tmp_path, "run", "run", "--steps", "4")
    assert resumed.returncode == 0, resumed.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 4


def test_a_file_in_the_current_folder_goes_before_an_installed_module(tmp_path: Path) -> None:
    """As with `python -m`; and what the function imports later is found there, too."""
    (tmp_path / "colorsys.py").write_text(
        "def edit(image, prompt, seed):\n    import beside\n    return beside.turned(image)\n"
    )
    (tmp_path / "beside.py").write_text("def turned(image):\n    return image.rotate(180)\n")
    suite = write_suite(tmp_path / "suite")
    done = command(tmp_path, *run_words(suite, "python:colorsys:edit", 2))
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 2


def test_no_budget_can_be_held_while_the_price_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "free.py").write_text("def edit(image, prompt, seed):\n    return image\n")
    suite = write_suite(tmp_path / "suite")
    refused = command(tmp_path, *run_words(suite, "python:free:edit", 1, "--budget", "1"))
    assert refused.returncode == 2
    assert "price of python:free:edit is unknown" in " ".join(refused.stderr.split())
    done = command(tmp_path, *run_words(suite, "python:free:edit,price=0", 1, "--budget", "1"))
    assert done.returncode == 0, done.stderr


def test_every_outcome_of_a_function_is_recorded_in_a_run(tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text(
        "calls = []\n"
        "def edit(image, prompt, seed):\n"
        "    calls.append(seed)\n"
        "    if len(calls) == 3:\n"
        "        raise RuntimeError('out of paint')\n"
        "    return image.rotate(90)\n"
    )
    suite = write_suite(tmp_path / "suite")
    done = command(tmp_path, *run_words(suite, "python:moody:edit", 5))
    assert done.returncode == 0, done.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert [step.outcome for step in chain.steps] == ["edited", "edited", "failed"]
    assert chain.steps[-1].detail == "RuntimeError: out of paint (moody.py, line 5)"
    again = command(tmp_path, "run", "run", "--retry-failed")
    assert again.returncode == 0, again.stderr
    (chain,) = RunStore.open(tmp_path / "run").chains()
    assert chain.length == 4, "a new process counts its calls from one"


def test_a_name_in_a_record_never_runs_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil.py").write_text(
        "from pathlib import Path\n"
        f"Path({str(tmp_path / 'ran')!r}).touch()\n"
        "def edit(image, prompt, seed): return image\n"
    )
    monkeypatch.chdir(tmp_path)
    assert not controls_among(["python:evil:edit", "python:evil:edit,price=0"])
    assert not (tmp_path / "ran").exists()


def test_what_a_function_takes_of_a_cluster(written: Written) -> None:
    module = written("def edit(image, prompt, seed, memory=1):\n    return image")
    name = f"python:{module}:edit,price=0"
    assert open_editor(name).spec.resources is None
    assert open_editor(f"{name},gpus=1").spec.resources == Resources(cpus=1, gpus=1)
    taken = open_editor(f"{name},cpus=2,gpus=0.5,memory=3").spec
    assert taken.resources == Resources(cpus=2, gpus=0.5), "memory is the function's own option"
    plain = written("def edit(image, prompt, seed):\n    return image", "_plain")
    taken = open_editor(f"python:{plain}:edit,price=0,memory=1.5").spec
    assert taken.resources == Resources(cpus=1, memory=3 << 29)
    wrong = (
        "cpus=0",
        "cpus=1e-9",
        "cpus=1e9",
        "gpus=-1",
        "gpus=nan",
        "gpus=1.5",
        "memory=lots",
        "memory=0",
    )
    for told in wrong:
        with pytest.raises(SettingsError, match=r"must be .* that a machine can have, got"):
            open_editor(f"python:{plain}:edit,price=0,{told}")


def test_a_function_that_takes_any_option_gets_them_all(written: Written) -> None:
    module = written(
        """
        from PIL import Image

        def edit(image, prompt, seed, **options):
            return Image.new("RGB", image.size, (options["cpus"], options["memory"], 0))
        """
    )
    name = f"python:{module}:edit,cpus=3,memory=8"
    assert open_editor(name).spec.resources is None
    assert Frame(reply(name).data).pixels[0, 0].tolist() == [3, 8, 0]


def test_what_a_cluster_could_call_twice_or_not_tell_is_refused(written: Written) -> None:
    plain = written("def edit(image, prompt, seed):\n    return image")
    asks = written("def edit(image, prompt, seed, request):\n    return image", "_asks")
    for name in (f"{plain}:edit,cpus=1", f"{plain}:edit,price=0.1,cpus=1",
                 f"{asks}:edit,price=0,gpus=1"):  # fmt: skip
        with pytest.raises(SettingsError, match="works on a cluster, where only a function that"):
            open_editor(f"python:{name}")
