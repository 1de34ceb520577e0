"""The tutorial plug-in, really installed; and what broken, clashing and misspelt plug-ins get."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.plugins import install

PACKAGE = Path(__file__).parent / "plugin_package"
SOURCE = Path(__file__).parents[1] / "src"


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that pip installed the tutorial package into, without any network."""
    place = tmp_path_factory.mktemp("installed")
    package = tmp_path_factory.mktemp("sources") / "package"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(place)]
    done = subprocess.run(
        [*pip, *offline, str(package)], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return place


def run(code: str, *places: Path) -> Any:
    """What a fresh interpreter with these folders on its path prints, as JSON."""
    path = os.pathsep.join(str(p) for p in (*places, SOURCE))
    done = subprocess.run(
        [sys.executable, "-c", f"import json\nfrom convergebench import registry\n{code}"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def error_of(call: str, *places: Path) -> tuple[str, str]:
    """The kind and the text of the error that a call raises."""
    kind, text = run(
        f"try:\n    {call}\n    print(json.dumps(['none', '']))\n"
        "except Exception as error:\n    print(json.dumps([type(error).__name__, str(error)]))",
        *places,
    )
    return kind, text


def test_the_editor_is_found_by_name_and_takes_its_option(tutorial: Path) -> None:
    found = run(
        """
import numpy as np
from convergebench.cycle import Edit
from convergebench.editor import EditRequest
from convergebench.frame import Frame
source = Frame.of_pixels(np.full((4, 4, 3), (40, 80, 160), np.uint8))
request = EditRequest((source,), "Copy it.", Edit(prompt="Copy it."), 1, None)
made = {}
for name in ("tutorial-sepia", "tutorial-sepia,strength=1"):
    editor = registry.open_editor(name)
    made[editor.spec.name] = Frame(editor.edit(request).data).pixels[0, 0].tolist()
print(json.dumps(made))
""",
        tutorial,
    )
    # 0.393·40 + 0.769·80 + 0.189·160 = 107.48, and so on; the default goes a fifth of the way.
    assert found["tutorial-sepia,strength=1"] == [107, 96, 75]
    assert found["tutorial-sepia,strength=0.2"] == [53, 83, 143]


def test_the_metric_is_found_by_name_and_is_hasler_s_and_suesstrunk_s(tutorial: Path) -> None:
    """Half pure red, half pure blue: worked out by hand."""
    value = run(
        """
import numpy as np
from convergebench.metric import Picture, StepView
picture = np.zeros((6, 8, 3), np.uint8)
picture[:, :4, 0] = 255
picture[:, 4:, 2] = 255
metric = registry.open_metric("tutorial-colourfulness")
grey = StepView(Picture(np.full((6, 8, 3), 99, np.uint8)))
print(json.dumps(list(metric.score([StepView(Picture(picture)), grey]))))
""",
        tutorial,
    )
    # R − G is 255 or 0: mean and deviation 127.5. (R + G)/2 − B is 127.5 or −255: mean −63.75,
    # deviation 191.25.
    expected = math.hypot(127.5, 191.25) + 0.3 * math.hypot(127.5, -63.75)
    assert value == [pytest.approx(expected), 0.0]


def test_both_are_listed_and_keep_the_contract(tutorial: Path) -> None:
    rows = run(
        """
from convergebench.testing import check_editor, check_metric
check_editor(registry.open_editor("tutorial-sepia,strength=0.5"))
check_metric(registry.open_metric("tutorial-colourfulness"))
rows = [p for p in registry.plugins() if p.package == "convergebench-tutorial"]
print(json.dumps([[p.group, p.name, p.version, p.problem] for p in rows]))
""",
        tutorial,
    )
    assert rows == [
        ["editors", "tutorial-sepia", "1.0", ""],
        ["metrics", "tutorial-colourfulness", "1.0", ""],
    ]
    lines = run("print(json.dumps(registry.editor_names()))", tutorial)
    assert lines["tutorial-sepia"] == "Turns pictures brown, a little more at every call."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tutorial-sepia,strength=strong", "strength must be a number, got 'strong'"),
        ("tutorial-sepia,strenght=1", "unexpected keyword argument 'strenght'"),
    ],
)
def test_wrong_options_are_the_users_error(tutorial: Path, name: str, message: str) -> None:
    kind, text = error_of(f"registry.open_editor({name!r})", tutorial)
    assert kind == "SettingsError"
    assert message in text


def test_misspelt_names_get_near_matches(tutorial: Path) -> None:
    kind, text = error_of("registry.open_editor('tutorial-sepai')", tutorial)
    assert (kind, text) == (
        "UnknownName",
        "no editor called 'tutorial-sepai'. Did you mean tutorial-sepia?",
    )
    kind, text = error_of("registry.open_metric('colourfulness')", tutorial)
    assert kind == "UnknownName"
    assert "Did you mean tutorial-colourfulness" in text


def test_a_broken_plugin_is_a_listed_defect_and_an_error_when_asked_for(
    tutorial: Path, tmp_path: Path
) -> None:
    broken = install(
        tmp_path / "broken", "broken-plugin", {"editors": {"shattered": "shattered:open_editor"}}
    )
    (broken / "shattered.py").write_text("raise ImportError('it needs libfoo 3')\n")
    rows = run(
        "print(json.dumps({p.name: p.problem for p in registry.plugins()}))", tutorial, broken
    )
    assert rows["tutorial-sepia"] == ""
    assert "ImportError: it needs libfoo 3" in rows["shattered"]
    assert "package broken-plugin" in rows["shattered"]
    kind, text = error_of("registry.open_editor('shattered')", tutorial, broken)
    assert kind == "PluginBroken"
    assert "it needs libfoo 3" in text
    # The others do not mind, and listing names does not even import it.
    assert error_of("registry.open_editor('tutorial-sepia')", tutorial, broken) == ("none", "")
    names = run(
        "import sys\nprint(json.dumps([registry.names('editors'), 'shattered' in sys.modules]))",
        tutorial,
        broken,
    )
    assert "shattered" in names[0]
    assert names[1] is False


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("json:nonsense", "AttributeError"),
        ("math:pi", "math:pi is not a factory function"),
    ],
)
def test_a_target_that_is_no_factory_is_a_defect_too(
    tmp_path: Path, target: str, message: str
) -> None:
    place = install(tmp_path / "odd", "odd-plugin", {"metrics": {"odd": target}})
    kind, text = error_of("registry.open_metric('odd')", place)
    assert kind == "PluginBroken"
    assert message in text


def test_a_factory_that_makes_something_else_is_a_defect(tmp_path: Path) -> None:
    place = install(tmp_path / "odd", "odd-plugin", {"editors": {"odd": "builtins:dict"}})
    kind, text = error_of("registry.open_editor('odd')", place)
    assert (kind, text) == ("PluginBroken", "editor 'odd': its factory returned dict")


def test_two_packages_with_one_name_clash(tutorial: Path, tmp_path: Path) -> None:
    rival = install(
        tmp_path / "rival", "rival-plugin", {"editors": {"tutorial-sepia": "json:dumps"}}
    )
    kind, text = error_of("registry.open_editor('tutorial-sepia')", tutorial, rival)
    assert kind == "PluginBroken"
    assert text == (
        "editor 'tutorial-sepia' is claimed by convergebench-tutorial and rival-plugin. "
        "Uninstall one of them."
    )


def test_the_tutorial_stays_short() -> None:
    files = [PACKAGE / "pyproject.toml", *PACKAGE.glob("src/*/*.py")]
    assert len(files) == 2
    assert sum(len(file.read_text().splitlines()) for file in files) < 80
    readme = (PACKAGE / "README.md").read_text()
    for name in ("tutorial-sepia", "tutorial-colourfulness", "check_editor", "check_metric"):
        assert name in readme
