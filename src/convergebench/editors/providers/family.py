"""Opening an editor of a provider by name: catalogue entry, options, key, price, abilities."""

from __future__ import annotations

import base64
import difflib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final, Protocol

from convergebench.editor import Abilities, Asked, Editor, EditorSpec, EditRequest, Price
from convergebench.editors.providers.catalogue import Model, Provider, Value, shelf
from convergebench.editors.providers.sizes import Size
from convergebench.errors import SettingsError, UnknownName
from convergebench.frame import encode, sniff
from convergebench.registry import PluginName
from convergebench.wire import Secret, Wire, check_base

MIME: Final = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}


@dataclass(frozen=True)
class Opened:
    """A model of a provider, ready to be called: what every adapter is made from."""

    name: str
    provider: Provider
    model: Model
    options: Mapping[str, Value]
    version: str
    base: str
    key: Secret | None
    lacks: str = ""

    @cached_property
    def spec(self) -> EditorSpec:
        """What the runner needs to know."""
        model, provider = self.model, self.provider
        print_ = self.key.fingerprint if self.key else "no-key"
        caveats = [*provider.caveats, *model.caveats]
        if not model.seeds:
            caveats.append("takes no seed")
        return EditorSpec(
            name=self.name,
            version=self.version,
            description=model.title,
            concurrency=min(model.concurrency or provider.concurrency, provider.concurrency),
            seconds=model.seconds,
            pricing=self.price if self._priced else None,
            sizing=self.made,
            caveats=tuple(caveats),
            abilities=Abilities(model.seeds, model.temperature, model.resolutions, model.sessions),
            least_side=model.least_side,
            account=f"{provider.name}/{print_}",
            lacks=self.lacks,
        )

    @property
    def _priced(self) -> bool:
        return self._estimate(self._default_tier, (1024, 1024), (1024, 1024), 1, "") is not None

    @property
    def _default_tier(self) -> str:
        return "1K" if self.model.tier == "resolution" else str(self.options[self.model.tier])

    def price(self, asked: Asked) -> Price:
        """What a call may cost. Raises SettingsError for a tier that has no price."""
        resolution = asked.settings.resolution_at(asked.step)
        tier = self._default_tier
        if self.model.tier == "resolution" and resolution != "native":
            tier = resolution
        pictures, prompt = asked.inputs, asked.prompt
        if asked.settings.session == "chat":  # all of it is sent, or read, again
            pictures = min(asked.inputs + asked.step - 1, max(asked.inputs, self._most_shown))
            prompt *= asked.step
        found = self._estimate(tier, self.made(asked), self.largest_sent(asked), pictures, prompt)
        if found is None:
            raise SettingsError(f"{self.name} has no price for {tier}")
        return found

    def made(self, asked: Asked) -> tuple[int, int]:
        """The size of the picture that a call asks for; 1K where none can be asked for."""
        resolution = asked.settings.resolution_at(asked.step)
        size = self.model.size.choose(asked.width, asked.height, resolution)
        return (size.width, size.height) if size else (1024, 1024)

    def largest_sent(self, asked: Asked) -> tuple[int, int]:
        """The size of the largest picture that a call sends.

        The source at first, then what the model made: with resolutions that change, more than is
        made of it now. A conversation sends them all, and so may a step with several inputs.
        """
        all_of_them = asked.settings.session == "chat" or asked.inputs > 1
        steps = range(max(1, asked.step - (3 if all_of_them else 1)), asked.step)
        chosen = [
            self.model.size.choose(asked.width, asked.height, resolution)
            for resolution in {asked.settings.resolution_at(step) for step in steps}
        ]
        sent = [(size.width, size.height) for size in chosen if size]
        if all_of_them or not sent:
            sent.append((asked.width, asked.height))
        return max(sent, key=lambda sides: sides[0] * sides[1])

    @property
    def _most_shown(self) -> int:
        """How many pictures a conversation shows the model at most; the adapter keeps to it."""
        facts = self.model.adapter.get("chat", self.model.adapter)
        return int(facts.get("pictures", 10**6))

    def _estimate(
        self, tier: str, made: tuple[int, int], sent: tuple[int, int], pictures: int, prompt: str
    ) -> Price | None:
        return self.model.price.estimate(
            tier, made=made, sent=sent, pictures=pictures, prompt=prompt
        )

    def wire(self, headers: Mapping[str, str] | None = None) -> Wire:
        """Plain HTTP with the provider; the key goes as a bearer token where no header is given."""
        if headers is None:
            headers = {"authorization": f"Bearer {self.key.reveal()}"} if self.key else {}
        return Wire(self.base, what=self.provider.title, headers=headers, key=self.key)

    def size(self, request: EditRequest) -> Size | None:
        """The size to ask for at a step."""
        facts = request.inputs[-1].facts
        width, height = request.home_size or (facts.width, facts.height)
        resolution = request.settings.resolution_at(request.step)
        return self.model.size.choose(width, height, resolution)

    def pictures(self, request: EditRequest) -> list[tuple[bytes, str, tuple[str, ...]]]:
        """The inputs as sent: bytes, MIME type, caveats.

        The bytes are sent as they are. Only a format that the model does not take is sent as PNG
        instead, which loses nothing, and that is a caveat.
        """
        found: list[tuple[bytes, str, tuple[str, ...]]] = []
        for frame in request.inputs:
            kind = sniff(frame.data) or ""
            if kind in self.model.accepts and kind in MIME:
                found.append((frame.data, MIME[kind], ()))
            else:
                told = f"{kind or 'this format'} is not taken; the pixels were sent as PNG"
                found.append((encode(frame.pixels), MIME["png"], (told,)))
        return found


def data_uri(data: bytes, mime: str) -> str:
    """A picture as a `data:` address."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def mislabelled(data: bytes, declared: object, asked: str | None = None) -> tuple[str, ...]:
    """Caveats: where the bytes are not of the type that was declared, or asked for."""
    found = sniff(data)
    label = str(declared or "").lower().removeprefix("image/").replace("jpg", "jpeg")
    told = {"declared as": label, "asked for": asked}
    return tuple(
        f"{how} {kind}, but the bytes are {found}"
        for how, kind in told.items()
        if found and kind and kind != found
    )


class Adapter(Protocol):
    """The class of a provider's editors."""

    VERSION: str

    def __call__(self, opened: Opened, /) -> Editor:
        """An editor from an opened model."""
        ...


class Family:
    """The factory behind an entry point: `provider:model,option=value`."""

    def __init__(self, provider: str, adapter: Adapter) -> None:
        self._provider: Final = provider
        self._adapter: Final = adapter

    @property
    def models(self) -> dict[str, str]:
        """Every model of the catalogue, with a line each."""
        return {model.id: described(model) for model in shelf(self._provider)}

    def __call__(self, model: str = "", **options: str) -> Editor:
        """The editor of that name. A key is not needed to open it, only to call it.

        Raises:
            UnknownName: The catalogue has no such model.
            SettingsError: It was shut down, or has no such option or value.
        """
        found = shelf(self._provider)
        entry = found.by_id().get(model)
        if entry is None:
            alive = [known.id for known in found if not known.shutdown]
            if not model:
                raise SettingsError(
                    f"{self._provider} needs a model, as in {self._provider}:{alive[0]}. "
                    f"`convergebench editors list {self._provider}` lists them."
                )
            raise UnknownName(
                f"{self._provider} model",
                model,
                alive,
                "Models of your own go into a catalogue file: docs/guides/models.md.",
            )
        if entry.shutdown and entry.shutdown <= datetime.now(UTC).date():
            instead = f" Use {self._provider}:{entry.successor}." if entry.successor else ""
            raise SettingsError(
                f"{self._provider}:{model} was shut down on {entry.shutdown}.{instead}"
            )
        provider = found.provider
        values = _values(f"{self._provider}:{model}", entry, options)
        base = os.environ.get(provider.url_variable) or provider.url
        return self._adapter(
            Opened(
                name=str(PluginName(self._provider, model, tuple(sorted(options.items())))),
                provider=provider,
                model=entry,
                options=values,
                version=f"{self._adapter.VERSION}-{_fingerprint(entry, values)}",
                base=check_base(base, provider.url_variable),
                key=_key(provider),
                lacks=lacks(provider),
            )
        )


def described(model: Model) -> str:
    """A model in one line."""
    end = f", shut down on {model.shutdown}" if model.shutdown else ""
    return f"{model.title}{end}"


def lacks(provider: Provider) -> str:
    """Why a provider cannot be called here, and what to do; empty when it can."""
    absent = [module for module in provider.modules if not _installed(module)]
    if absent:
        return (
            f"{provider.title} needs {', '.join(absent)}: "
            f"pip install 'convergebench[{provider.extra}]'."
        )
    if _key(provider) is None:
        return f"{provider.title} needs a key: set {' or '.join(provider.keys)}."
    return ""


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a parent package
        return False


def _key(provider: Provider) -> Secret | None:
    for name in provider.keys:
        if text := os.environ.get(name, "").strip():
            return Secret(text, name)
    return None


def _values(editor: str, model: Model, given: Mapping[str, str]) -> dict[str, Value]:
    values = {name: rule.default for name, rule in model.options.items()}
    for name, text in given.items():
        if name not in model.options:
            near = difflib.get_close_matches(name, model.options, n=1)
            known = f"Did you mean {near[0]}?" if near else f"It has {', '.join(model.options)}."
            known = known if model.options else "It has none."
            raise SettingsError(f"editor {editor} has no option {name!r}. {known}")
        try:
            values[name] = model.options[name].parse(str(text).strip())
        except ValueError as error:
            raise SettingsError(f"editor {editor}: option {name} {error}.") from None
    return values


def _fingerprint(model: Model, values: Mapping[str, Value]) -> str:
    """Changes with anything of the catalogue entry that can change a picture."""
    told: dict[str, Any] = {
        "id": model.id,
        "pins": model.pins,
        "options": dict(values),
        "size": model.size.model_dump(mode="json"),
        "format": model.format,
        "adapter": model.adapter,
    }
    text = json.dumps(told, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
