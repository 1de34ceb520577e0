"""A ComfyUI workflow in API format, with placeholders for what differs from edit to edit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from convergebench.errors import SettingsError
from convergebench.frame import sha256

MARK: Final = re.compile(r"%([A-Za-z][A-Za-z0-9_]*)%")
MULTIPLE: Final = 16
"""What %width% and %height% are divisible by: diffusion models want no other sizes."""


class Workflow:
    """The nodes of a workflow file.

    Args:
        nodes: The file's content.
    """

    def __init__(self, nodes: Mapping[str, Any]) -> None:
        self.nodes: Final = dict(nodes)
        self.marks: Final = frozenset(name for text in _texts(nodes) for name in MARK.findall(text))
        self.digest: Final = sha256(json.dumps(nodes, sort_keys=True).encode())[:12]

    @classmethod
    def load(cls, path: Path) -> Workflow:
        """Read a workflow. Raises SettingsError."""
        try:
            nodes = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            raise SettingsError(
                f"there is no workflow {path.absolute()}. The path is taken from the folder that "
                "the command is given in."
            ) from None
        except (OSError, ValueError) as error:
            raise SettingsError(f"{path} is no JSON file: {error}") from None
        if isinstance(nodes, dict) and "nodes" in nodes and "links" in nodes:
            raise SettingsError(
                f"{path} is a workflow as ComfyUI saves it, expected the API format. In ComfyUI "
                "choose Workflow, Export (API)."
            )
        whole = isinstance(nodes, dict) and all(
            isinstance(node, dict) and "class_type" in node for node in nodes.values()
        )
        if not whole or not nodes:
            raise SettingsError(
                f"{path} is no workflow in API format: expected an object of nodes, each with a "
                "class_type and inputs."
            )
        workflow = cls(nodes)
        if not {"image", "image1"} & workflow.marks:
            raise SettingsError(
                f'{path} has no "%image%": write it as the image of a LoadImage node, so that the '
                "workflow edits the chain's picture."
            )
        return workflow

    def filled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The nodes with every placeholder that is known replaced, in one pass.

        A text that is nothing but a placeholder becomes the value itself (a number, say); marks
        that are not known are ComfyUI's own (`%date:yyyy%`) and stay.
        """

        def fill(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: fill(each) for name, each in value.items()}
            if isinstance(value, list):
                return [fill(each) for each in value]
            if not isinstance(value, str):
                return value
            whole = MARK.fullmatch(value)
            if whole and whole[1] in values:
                return values[whole[1]]
            return MARK.sub(lambda m: str(values[m[1]]) if m[1] in values else m[0], value)

        filled: dict[str, Any] = fill(self.nodes)
        return filled

    def named(self, node: Any) -> str:
        """A node for a message: its number and its kind."""
        kind = self.nodes.get(str(node), {}).get("class_type", "")
        return f"node {node} ({kind})" if kind else f"node {node}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
