"""Reference editors: small, free, deterministic, with a known manner of decay.

`ref:<model>` performs an edit's machine-readable operation exactly (`operations`) and then lets a
medium loose on the whole picture, as a generator that redraws every pixel does (`media`,
`personalities`). An edit without an operation is a replication: only the medium acts. Of an edit
with several inputs the last one is edited. Prompt, temperature, resolution and session are not
looked at.

Chance follows from the request's seed alone (`seeding`): the same request gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from convergebench.editor import Editor, EditorSpec, EditReply, EditRequest
from convergebench.editors.reference.models import MODELS, Answer, Model, Options
from convergebench.editors.reference.narration import summary
from convergebench.editors.reference.options import read_options
from convergebench.editors.reference.yardsticks import ramp_psnr
from convergebench.errors import UnknownName
from convergebench.registry import PluginName

__all__ = ["Catalogue", "ReferenceEditor", "open_editor", "ramp_psnr"]

VERSION: Final = "1"


@dataclass(frozen=True)
class ReferenceEditor:
    """A reference model with its options set."""

    spec: EditorSpec
    answer: Answer
    options: Options

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit."""
        data = self.answer(request, self.options)
        tells = self.options.get("reasoning") == "yes"
        return EditReply(
            data,
            model=self.spec.name,
            parameters=dict(self.options),
            cost=0.0,
            reasoning=summary(request) if tells else None,
        )


class Catalogue:
    """Opens reference editors by name; `models` lists them with a line each."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models: Final = models
        self.models: Final = {name: model.description for name, model in models.items()}

    def reads_prompts(self, name: PluginName) -> bool:
        """Whether a model's wording matters to it: of these it does to the restorer alone."""
        return name.model == "restorer"

    def __call__(self, model: str = "identity", **options: str) -> Editor:
        """The reference editor of that name.

        Raises:
            UnknownName: There is no such model.
            SettingsError: It has no such option, or the value is not legal.
        """
        chosen = self._models.get(model)
        if chosen is None:
            raise UnknownName("reference editor", model, self._models)
        name = str(PluginName("ref", model, tuple(sorted(options.items()))))
        values = read_options(f"ref:{model}", chosen.options, options)
        spec = EditorSpec(
            name=name,
            version=VERSION,
            description=chosen.description,
            seconds=chosen.seconds + float(values.get("wait", 0)),
            price=0.0,
            deterministic=True,
            control=chosen.control,
        )
        return ReferenceEditor(spec, chosen.answer, values)


open_editor: Final = Catalogue(MODELS)
"""The entry point `ref`."""
