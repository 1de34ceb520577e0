"""Turns at editors that are made elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from convergebench.cycle import Edit
from convergebench.editor import EditRequest
from convergebench.engines import Trade, WorkerDied, editing
from convergebench.engines.editing import AwayEditor, EditingWorker
from convergebench.errors import EditorFailed, EngineError
from convergebench.frame import Frame
from convergebench.registry import open_editor
from convergebench.resources import Resources
from tests.support.runs import picture


class Machine:
    """Makes edits for as many hands as it has, until it is gone with all of them."""

    def __init__(self) -> None:
        self.gone = False
        self.asked = 0


class Away:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.worker = EditingWorker("ref:noise", open_editor("ref:noise").spec.version)
        self.ended = False

    def ask(self, task: bytes) -> Iterator[bytes]:
        self.machine.asked += 1
        if self.machine.gone:
            raise WorkerDied("its machine is gone")
        yield from self.worker.work(task)

    def end(self) -> None:
        self.ended = True


class Machines:
    """Hires on the first machine that is up."""

    name, together, gpus = "machines", True, False

    def __init__(self) -> None:
        self.each = [Machine(), Machine()]
        self.hired: list[Away] = []

    def hands(self, trade: Trade, tasks: int) -> int:
        return min(4, tasks)

    def hire(self, trade: Trade, number: int, of: int, unless: Callable[[], bool]) -> Away | None:
        self.hired.append(Away(next(machine for machine in self.each if not machine.gone)))
        return self.hired[-1]

    def close(self) -> None:
        """Nothing is held."""


def test_a_machine_that_goes_is_one_death_however_many_idled_there() -> None:
    engine = Machines()
    spec = open_editor("ref:noise").spec
    editor = AwayEditor(spec, engine, Trade("x", {}, Resources()), 4, [])
    frame = Frame.of_pixels(picture(1))
    request = EditRequest(
        inputs=(frame,), prompt="Copy.", edit=Edit(prompt="Copy."), step=1, seed=1
    )
    seats = [editor.turn(threading.Event()) for _ in range(4)]
    for seat in seats:
        held = seat.__enter__()
        assert held is not None
        held.edit(request)
    for seat in seats:
        seat.__exit__(None, None, None)
    first, second = engine.each
    first.gone = True
    with pytest.raises(EditorFailed, match="its worker died once"):
        editor.edit(request)
    editor.edit(request)
    assert (first.asked, second.asked) == (5, 1)
    editor.close()
    assert all(hand.ended for hand in engine.hired)


def test_a_machine_with_other_code_makes_no_frame() -> None:
    with pytest.raises(EngineError, match=r"has version \S+ of ref:noise, and older is to be rec"):
        EditingWorker("ref:noise", "older")
    with pytest.raises(EngineError, match=r"cannot open python:no\.such:edit: .* the same code"):
        EditingWorker("python:no.such:edit", "1")


@pytest.mark.parametrize(("price", "goes"), [(0.0, True), (0.05, False), (None, False)])
def test_what_is_paid_for_or_may_be_stays_here(
    monkeypatch: pytest.MonkeyPatch, price: float | None, goes: bool
) -> None:
    """A call whose worker died is made again."""
    monkeypatch.setattr(editing, "open_engine", lambda *_: Machines())
    editor = open_editor("ref:noise")
    spec = replace(editor.spec, price=price, resources=Resources())
    here = SimpleNamespace(spec=spec, edit=editor.edit)
    with editing.placed({"mine": here}, "machines", None, {"mine": 2}) as found:
        assert isinstance(found["mine"], AwayEditor) == goes
        assert (found["mine"] is here) != goes
