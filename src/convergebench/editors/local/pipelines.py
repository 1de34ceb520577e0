"""`local:MODEL`: image-editing pipelines of diffusers, on this machine.

What the pipelines would decide by themselves is decided here, because their defaults move numbers:
the size is always asked for (FLUX.1 Kontext would make every picture square), guidance acts only
together with a negative prompt where the pipeline wants one, random numbers come from the CPU with
the request's seed, so that they are the same on every machine. The picture is returned as the
pipeline made it, as PNG, never resized. See docs/editors/diffusers.md.

The pipeline is loaded by the first edit and kept. One edit is made at a time.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from convergebench.editor import Abilities, Editor, EditorSpec, EditReply, EditRequest
from convergebench.editors.local.checkpoints import absent_modules, find_checkpoint, weights_size
from convergebench.editors.local.models import PROVIDER, LocalModel, models
from convergebench.editors.providers.catalogue import Value
from convergebench.editors.providers.sizes import Size
from convergebench.errors import (
    AccountBlocked,
    EditorError,
    EditorFailed,
    EditorLost,
    EditorRefused,
    SettingsError,
    UnknownName,
    scrub,
)
from convergebench.registry import PluginName
from convergebench.resources import Resources

VERSION: Final = "1"
SEEDS: Final = 2**31
"""Seeds are smaller than this."""


class LocalPipelines:
    """The factory behind the entry point `local`."""

    @property
    def models(self) -> dict[str, str]:
        """Every pipeline of the catalogue, with a line each."""
        return {name: model.title for name, model in models().items()}

    def __call__(self, model: str = "", **options: str) -> Editor:
        """The editor of that name. Nothing is loaded yet.

        Raises:
            UnknownName: The catalogue has no such model.
            SettingsError: It has no such option or value.
        """
        known = models()
        if model not in known:
            hint = "Pipelines of your own go into a catalogue file: docs/editors/diffusers.md."
            raise UnknownName("local model", model, known, hint)
        name = PluginName(PROVIDER, model, tuple(sorted(options.items())))
        return LocalEditor(str(name), known[model], _values(known[model], options))


open_editor: Final = LocalPipelines()


def _values(model: LocalModel, given: Mapping[str, str]) -> dict[str, Value]:
    rules = model.options()
    values = {name: rule.default for name, rule in rules.items()}
    for name, text in given.items():
        if name not in rules:
            raise SettingsError(
                f"editor local:{model.id} has no option {name!r}. It has {', '.join(rules)}."
            )
        try:
            values[name] = rules[name].parse(str(text).strip())
        except ValueError as error:
            raise SettingsError(f"editor local:{model.id}: option {name} {error}.") from None
    return values


class LocalEditor:
    """A pipeline with its options set."""

    def __init__(self, name: str, model: LocalModel, options: Mapping[str, Value]) -> None:
        self._name: Final = name
        self._model: Final = model
        self._options: Final = options
        self._lock = threading.Lock()

    @property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        model = self._model
        return EditorSpec(
            name=self._name,
            version=f"{VERSION}-{self._fingerprint}",
            description=f"{model.title}, by diffusers on this machine",
            concurrency=1,
            price=0.0,
            caveats=model.caveats,
            abilities=Abilities(
                seeds=True, temperature=False, resolutions=("1K",), sessions=("stateless",)
            ),
            account=f"{PROVIDER}/{self._model.id}",
            lacks=self._lacks,
            resources=self._resources,
        )

    @cached_property
    def _resources(self) -> Resources:
        """A GPU, unless the CPU was chosen; and main memory for the whole checkpoint."""
        found = self._checkpoint()
        memory = 0 if isinstance(found, str) else weights_size(found.folder)
        return Resources(gpus=0 if self._options["device"] == "cpu" else 1, memory=memory)

    @property
    def _lacks(self) -> str:
        if absent := absent_modules():
            return absent
        found = self._checkpoint()
        return found if isinstance(found, str) else ""

    def _checkpoint(self) -> Any:
        options = self._options
        return find_checkpoint(
            self._model.repository, str(options["revision"]), str(options["path"])
        )

    @cached_property
    def _fingerprint(self) -> str:
        """Changes with anything that can change a picture; not with where it is computed."""
        told = self._model.model_dump(mode="json", exclude={"title", "licence", "source", "gated"})
        told |= {k: v for k, v in self._options.items() if k not in ("device", "offload", "path")}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]

    def edit(self, request: EditRequest) -> EditReply:
        """Make one edit."""
        if len(request.inputs) > 1 and not self._model.several:
            raise EditorRefused(
                f"{self._model.title} takes one picture, and this edit has {len(request.inputs)}"
            )
        end = time.monotonic() + request.deadline - min(1.0, request.deadline / 10)
        with self._lock:
            pipeline = self._loaded
            size = self._size(request)
            seed = secrets.randbelow(SEEDS) if request.seed is None else request.seed
            sent = self._arguments(size)
            picture = self._made(pipeline, request, sent, seed, end)
        return self._reply(picture, size, {**sent, "seed": seed})

    def _size(self, request: EditRequest) -> Size:
        facts = request.inputs[-1].facts
        width, height = request.home_size or (facts.width, facts.height)
        resolution = request.settings.resolution_at(request.step)
        wanted = self._model.native if resolution == "native" else resolution
        size = self._model.size.choose(width, height, wanted)
        if size is None:
            raise EditorFailed(f"local:{self._model.id} has no sizes: its entry must name some")
        return size

    def _arguments(self, size: Size) -> dict[str, Any]:
        """Everything the pipeline is given besides prompt, pictures and random numbers."""
        model, options = self._model, self._options
        sent: dict[str, Any] = {
            **model.pins,
            "width": size.width,
            "height": size.height,
            "num_inference_steps": options["steps"],
            "num_images_per_prompt": 1,
        }
        if model.area:
            sent[model.area] = size.width * size.height
        if "guidance" in options:
            sent["guidance_scale"] = options["guidance"]
        if "true-cfg" in options:
            sent["true_cfg_scale"] = options["true-cfg"]
        if model.negative is not None:
            sent["negative_prompt"] = model.negative
        return sent

    def _made(
        self, pipeline: Any, request: EditRequest, sent: Mapping[str, Any], seed: int, end: float
    ) -> Any:
        import torch
        from PIL import Image

        def in_time(_pipeline: Any, _step: int, _time: Any, kept: dict[str, Any]) -> dict[str, Any]:
            if time.monotonic() > end:
                raise EditorLost(
                    f"not ready after {request.deadline:g} s: allow more time, or fewer steps",
                    timed_out=True,
                )
            return kept

        pictures = [Image.fromarray(frame.pixels) for frame in request.inputs]
        try:
            return pipeline(
                image=pictures if len(pictures) > 1 else pictures[0],
                prompt=request.prompt,
                generator=torch.Generator("cpu").manual_seed(seed),
                callback_on_step_end=in_time,
                **sent,
            ).images[0]
        except EditorError:
            raise
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise EditorFailed(_too_small(error)) from None
        except Exception as error:  # a pipeline may fail in any way
            told = scrub(str(error).strip() or type(error).__name__)
            raise EditorFailed(f"the pipeline failed: {type(error).__name__}: {told}") from None

    def _reply(self, picture: Any, size: Size, sent: dict[str, Any]) -> EditReply:
        out = io.BytesIO()
        picture.convert("RGB").save(out, "PNG", compress_level=4)
        made = f"{picture.width}x{picture.height}"
        caveats = list(self._model.caveats)
        if made != size.text():
            caveats.append(f"asked for {size.text()}, made {made}")
        return EditReply(
            out.getvalue(),
            model=self._model.repository or self._model.id,
            parameters={**sent, **self._conditions, "made": made},
            cost=0.0,
            caveats=tuple(caveats),
            size=size.text(),
            format="png",
        )

    @cached_property
    def _conditions(self) -> dict[str, Any]:
        """What else a picture depends on."""
        import diffusers
        import torch

        return {
            "pipeline": self._model.pipeline,
            "revision": self._checkpoint().revision,
            "dtype": self._options["dtype"],
            "device": self._device,
            "offload": self._options["offload"],
            "diffusers": diffusers.__version__,
            "torch": torch.__version__,
        }

    @cached_property
    def _device(self) -> str:
        import torch

        if (named := str(self._options["device"])) != "auto":
            return named
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    @cached_property
    def _loaded(self) -> Any:
        """The pipeline, in its place and silent.

        Raises:
            AccountBlocked: It cannot be loaded, which says nothing about the edit.
        """
        if self._lacks:
            raise AccountBlocked(self._lacks)
        import diffusers
        import torch
        import transformers

        folder = self._checkpoint().folder
        kind = getattr(diffusers, self._model.pipeline, None)
        if kind is None:
            raise AccountBlocked(f"diffusers {diffusers.__version__} has no {self._model.pipeline}")
        # Their messages go past the runner's display; whatever goes wrong is raised.
        for library in (diffusers, transformers):
            library.logging.set_verbosity_error()
            library.logging.disable_progress_bar()
        try:
            pipeline = kind.from_pretrained(
                folder,
                dtype=getattr(torch, str(self._options["dtype"])),
                use_safetensors=True,  # other files of weights could run code
                local_files_only=True,
            )
            self._place(pipeline)
        except (torch.OutOfMemoryError, MemoryError) as error:
            raise AccountBlocked(_too_small(error)) from None
        except Exception as error:  # a damaged checkpoint fails in any way
            told = scrub(str(error).strip() or type(error).__name__)
            raise AccountBlocked(f"{folder} cannot be loaded: {told}") from None
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    def _place(self, pipeline: Any) -> None:
        match self._options["offload"]:
            case "model":
                pipeline.enable_model_cpu_offload(device=self._device)
            case "layers":
                pipeline.enable_sequential_cpu_offload(device=self._device)
            case _:
                pipeline.to(self._device)


def _too_small(error: BaseException) -> str:
    told = scrub(str(error).strip().partition("\n")[0]) or "no more was said"
    return f"out of memory ({told}): try offload=model, then offload=layers"
