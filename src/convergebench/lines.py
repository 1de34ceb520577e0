"""Files of JSON lines: what is whole in them, and a chain from its lines."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from convergebench.chain import Chain, ChainHeader, Step
from convergebench.errors import StoreDamaged, explain


def chain_of(path: Path, data: bytes) -> tuple[Chain, bytes]:
    """A chain from the lines of its file, and what is torn off at their end."""
    lines = data.split(b"\n")
    torn = lines.pop()
    if lines and not is_json(lines[-1]):
        torn = lines.pop() + b"\n" + torn
    header, steps = None, []
    for number, line in enumerate(lines, 1):
        try:
            if header is None:
                header = ChainHeader.model_validate_json(line)
            else:
                steps.append(Step.model_validate_json(line))
        except ValidationError as error:
            raise StoreDamaged(f"{path}, line {number}: {explain(error)}") from error
    if header is None:
        raise StoreDamaged(f"{path} has no header line")
    return Chain(
        header.chain, header.source, header.truth, header.editor_version, tuple(steps)
    ), torn


def torn_off(lines: bytes) -> bytes:
    """What is not a whole line at the end of a file of JSON lines."""
    rest = lines[lines.rfind(b"\n") + 1 :]
    whole = lines[: len(lines) - len(rest)]
    last = whole[:-1].rpartition(b"\n")[2] + b"\n" if whole else b""
    return last + rest if last and not is_json(last) else rest


def is_json(line: bytes) -> bool:
    """Whether a line is whole."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True
