"""Every editor in the box keeps the contract that plug-ins must keep."""

from __future__ import annotations

import pytest

from convergebench.editors.reference import open_editor
from convergebench.registry import open_editor as open_registered
from convergebench.testing import check_editor


@pytest.mark.parametrize("model", open_editor.models)
def test_reference_editors_keep_the_contract(model: str) -> None:
    check_editor(open_editor(model))


@pytest.mark.parametrize("model", open_editor.models)
def test_reference_editors_open_by_name(model: str) -> None:
    assert open_registered(f"ref:{model}").spec == open_editor(model).spec
