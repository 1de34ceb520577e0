"""The pages of the editors: every provider has one, and its figures are those of `plan`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from convergebench.editors.providers.catalogue import providers, shelf

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "editors"


@pytest.fixture(scope="module")
def costs() -> ModuleType:
    found = importlib.util.spec_from_file_location("costs", ROOT / "docs" / "costs.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", providers())
def test_the_page_of_a_provider_says_what_it_costs(name: str, costs: ModuleType) -> None:
    text = (PAGES / f"{name}.md").read_text()
    assert f"<!-- cost: {name}:" in text
    assert costs.filled(text) == text, "run: python docs/costs.py"


@pytest.mark.parametrize("name", providers())
def test_the_page_of_a_provider_says_how_it_is_called(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text()
    provider = shelf(name).provider
    assert provider.page == f"docs/editors/{name}.md"
    assert f"convergebench run my-run -e {name}:" in text
    assert "--budget" in text
    assert all(key in text for key in provider.keys)
    assert provider.url_variable in text
    assert "What is pinned" in text
    assert "annot be switched off" in text
    assert "live API" in text, "what it was verified against"
