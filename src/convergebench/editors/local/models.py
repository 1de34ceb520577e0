"""The catalogue of pipelines that run on this machine: `models.toml`, and the user's own entries.

Users add pipelines, or change single ones, with `[[model]]` tables whose `provider` is "local" in
the same files as those of the providers (`convergebench.editors.providers.catalogue`): those that
CONVERGEBENCH_MODELS names, or `models.toml` in the configuration folder. `like` starts from another
entry.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from convergebench.cycle import Record
from convergebench.editors.providers.catalogue import OptionRule, user_files
from convergebench.editors.providers.sizes import SizeRule
from convergebench.errors import SettingsError, explain

PROVIDER: Final = "local"


class LocalModel(Record):
    """A `[[model]]`: a pipeline class of diffusers with a checkpoint.

    Attributes:
        id: The editor's name is `local:id`.
        title: Its name in words.
        repository: The checkpoint's name on the model hub.
        revision: The commit to use; empty takes whatever is in the hub's cache.
        pipeline: The class in diffusers.
        licence: The checkpoint's licence.
        gated: Whether the hub asks for an account that has accepted the licence.
        steps: Denoising steps.
        guidance: `guidance_scale`, or None where it is not sent.
        true_cfg: `true_cfg_scale`, or None where it is not sent; it acts only with `negative`.
        negative: The negative prompt, or None where it is not sent.
        dtype: In which numbers the network is computed.
        size: Which sizes can be asked for.
        native: What `native` stands for: the source's own size, or `1K` where the pipeline brings
            every input to one megapixel.
        area: The argument that must be told the area besides, or empty.
        several: Whether it takes several pictures.
        pins: Further arguments that are always given.
        caveats: What cannot be switched off.
        source: Where facts come from that diffusers' code does not say.
    """

    id: str
    title: str
    repository: str = ""
    revision: str = ""
    pipeline: str
    licence: str = ""
    gated: bool = False
    steps: int = Field(ge=1)
    guidance: float | None = None
    true_cfg: float | None = None
    negative: str | None = None
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    size: SizeRule
    native: Literal["native", "1K"] = "native"
    area: str = ""
    several: bool = False
    pins: dict[str, Any] = Field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    source: str = ""

    def options(self) -> dict[str, OptionRule]:
        """What the user may set in the editor's name, with the defaults."""
        found = {
            "path": OptionRule(default="", meaning="a folder with the checkpoint"),
            "revision": OptionRule(default=self.revision, meaning="a commit of the repository"),
            "steps": OptionRule(default=self.steps, meaning="denoising steps", low=1, high=1000),
            "dtype": OptionRule(
                default=self.dtype,
                meaning="numbers to compute in",
                choices=("bfloat16", "float16", "float32"),
            ),
            "device": OptionRule(default="auto", meaning="as torch names it: cpu, cuda, cuda:1"),
            "offload": OptionRule(
                default="none",
                meaning="keep the networks in the computer's memory: each, or each layer",
                choices=("none", "model", "layers"),
            ),
        }
        for name, value in (("guidance", self.guidance), ("true-cfg", self.true_cfg)):
            if value is not None:
                found[name] = OptionRule(default=value, meaning="guidance", low=0, high=100)
        return found


def models() -> dict[str, LocalModel]:
    """Every pipeline of the catalogue by id, the user's included. Raises SettingsError."""
    return dict(_models(user_files()))


@lru_cache(maxsize=16)
def _models(extra: tuple[tuple[Path, float], ...]) -> dict[str, LocalModel]:
    own = (files("convergebench.editors.local") / "models.toml").read_text("utf-8")
    tables: dict[str, dict[str, Any]] = {t["id"]: t for t in tomllib.loads(own)["model"]}
    for path, _ in extra:
        for table in _theirs(path):
            like = table.get("like")
            if like is not None and like not in tables:
                raise SettingsError(
                    f"{path}: the local model {table.get('id')!r} is like {like!r}, expected one "
                    f"of {', '.join(tables)}"
                )
            base = tables.get(str(like), {})
            known = tables.get(str(table.get("id")), base)
            rest = {k: v for k, v in table.items() if k not in ("provider", "like")}
            tables[str(table.get("id"))] = {**known, **rest}
    try:
        return {name: LocalModel.model_validate(table) for name, table in tables.items()}
    except ValidationError as error:
        where = ", ".join(str(path) for path, _ in extra) or "models.toml"
        raise SettingsError(f"{where}: {explain(error)}") from error


def _theirs(path: Path) -> list[dict[str, Any]]:
    """The entries for this machine in a user's file."""
    try:
        tables = tomllib.loads(path.read_text("utf-8")).get("model", [])
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SettingsError(f"{path}: expected [[model]] tables, got something else")
    return [table for table in tables if table.get("provider") == PROVIDER]
