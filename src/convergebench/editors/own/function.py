"""`python:package.module:function`: any function `edit(image, prompt, seed) -> image`."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from convergebench.editor import Abilities, EditorSpec, EditReply, EditRequest
from convergebench.editors.own.terms import Terms, Value, literal, read_resources, read_terms
from convergebench.errors import EditorError, EditorFailed, EditorNoImage, SettingsError, scrub
from convergebench.registry import PluginName

VERSION: Final = "1"
IMAGE_ONLY: Final = Abilities(temperature=False, resolutions=(), sessions=("stateless",))
"""What a function that does not ask for the whole request can follow."""

KEPT: Final = ("RGB", "RGBA", "L", "LA", "P", "1", "I;16")
"""Modes of Pillow that a PNG holds as they are."""

_seen: dict[str, str] = {}


class FunctionEditor:
    """A function of the user's, called once per edit."""

    def __init__(
        self, spec: EditorSpec, function: Callable[..., Any], options: dict[str, Value]
    ) -> None:
        self.spec: Final = spec
        self._function: Final = function
        self._options: Final = options
        parameters = _parameters(function)
        first = next(iter(parameters.values()), None)
        self._wants_array: Final = first is not None and "ndarray" in str(first.annotation).lower()
        self._wants_request: Final = "request" in parameters

    def edit(self, request: EditRequest) -> EditReply:
        """Call the function with the last input as it decodes."""
        from PIL import Image

        pixels = request.inputs[-1].pixels.copy()  # the function may draw on it
        image = pixels if self._wants_array else Image.fromarray(pixels)
        more: dict[str, Any] = dict(self._options)
        if self._wants_request:
            more["request"] = request
        try:
            made = self._function(image, request.prompt, request.seed, **more)
        except EditorError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # foreign code: its bugs are outcomes, sys.exit too
            raise EditorFailed(_said(error)) from error
        return self._reply(made)

    def _reply(self, made: Any) -> EditReply:
        if isinstance(made, EditReply):
            return made
        if made is None:
            raise EditorNoImage("the function returned None")
        try:
            return EditReply(_encoded(made), parameters=dict(self._options))
        except (OSError, ValueError) as error:  # Pillow's, of a picture without a pixel, say
            raise EditorFailed(f"the picture cannot be saved: {error}") from error


def _encoded(made: Any) -> bytes:
    """What a function returned as bytes: those it gave, or a PNG. Raises EditorFailed."""
    import io

    import numpy as np
    from PIL import Image

    from convergebench.frame import encode

    if isinstance(made, bytes | bytearray | memoryview):
        return bytes(made)
    if isinstance(made, Image.Image):
        plain = made if made.mode in KEPT else made.convert("RGB")
        out = io.BytesIO()
        plain.save(out, "PNG", compress_level=4)
        return out.getvalue()
    if isinstance(made, np.ndarray):
        if made.ndim != 3 or made.shape[2] != 3 or made.dtype != np.uint8 or not made.size:
            shape = "×".join(str(side) for side in made.shape) or "no sides"
            raise EditorFailed(
                f"the function returned an array of {shape} {made.dtype}, expected "
                "height×width×3 uint8"
            )
        return encode(made)
    raise EditorFailed(
        f"the function returned {type(made).__name__}, expected a PIL image, an array of "
        "height×width×3 uint8, or the bytes of an image file"
    )


def _said(error: BaseException) -> str:
    """An exception with the place it came from."""
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    places = traceback.extract_tb(error.__traceback__)[1:]
    where = f" ({Path(places[-1].filename).name}, line {places[-1].lineno})" if places else ""
    return scrub(told + where)


def open_editor(model: str = "", **options: str) -> FunctionEditor:
    """A function of your own, `edit(image, prompt, seed) -> image`: python:module:function.

    Raises:
        SettingsError: There is no such module or function, or it cannot be called as an editor.
    """
    name = str(PluginName("python", model, tuple(sorted(options.items()))))
    module_name, colon, path = model.partition(":")
    if not (colon and path and all(part.isidentifier() for part in module_name.split("."))):
        raise SettingsError(
            f"editor {name!r}: write python:package.module:function, as in python:my_editor:edit."
        )
    terms, rest = read_terms(f"python:{model}", options, Terms())
    module = _imported(module_name)
    function = _found(module, path)
    parameters = _parameters(function)
    wants_request = "request" in parameters
    theirs = _theirs(parameters, rest)
    resources, more = read_resources(
        f"python:{model}", {option: text for option, text in rest.items() if option not in theirs}
    )
    values = _checked(function, f"python:{model}", {**theirs, **more})
    if resources and (wants_request or terms.price != 0):
        # A worker that dies is replaced, and its call repeated; what a request can tell and load
        # stays where the records are.
        raise SettingsError(
            f"editor {name}: what takes cpus, gpus or memory works on a cluster, where only a "
            "function that has no parameter 'request' and costs nothing can: say price=0, or leave "
            "those options out."
        )
    doc = (inspect.getdoc(function) or "").strip().splitlines()
    spec = EditorSpec(
        name=name,
        version=f"{VERSION}-{_fingerprint(module, function)}",
        description=doc[0] if doc and inspect.isroutine(function) else f"the function {model}",
        concurrency=terms.concurrency,
        seconds=terms.seconds,
        price=terms.price,
        abilities=Abilities() if wants_request else IMAGE_ONLY,
        resources=resources,
    )
    return FunctionEditor(spec, function, values)


@contextmanager
def _here_first() -> Iterator[str]:
    """The current folder importable, and first while we import, as with `python -m`."""
    here = os.getcwd()
    if not {"", here} & set(sys.path):
        sys.path.append(here)  # for what the function imports later
    sys.path.insert(0, here)
    try:
        yield here
    finally:
        sys.path.remove(here)


def _imported(name: str) -> ModuleType:
    with _here_first() as here:
        importlib.invalidate_caches()  # the file may be younger than the last look
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and f"{name}.".startswith(f"{error.name}."):
                raise SettingsError(
                    f"there is no module {name!r}: neither in the current folder ({here}) nor "
                    "installed. Go to the folder that holds it, or install it."
                ) from None
            raise SettingsError(
                f"the module {name} needs {error.name}, which is not installed."
            ) from error
        except (Exception, SystemExit) as error:  # whatever a foreign module does on import
            raise SettingsError(
                f"the module {name} cannot be imported: {scrub(f'{type(error).__name__}: {error}')}"
            ) from error


def _found(module: ModuleType, path: str) -> Callable[..., Any]:
    found: Any = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            own = sorted(
                name
                for name, value in vars(module).items()
                if inspect.isfunction(value) and value.__module__ == module.__name__
            )
            has = f"It has {', '.join(own)}." if own else "It defines none."
            raise SettingsError(
                f"the module {module.__name__} has no function {path!r}. {has}"
            ) from None
    if not callable(found):
        raise SettingsError(
            f"{module.__name__}:{path} is no function but {type(found).__name__}, expected "
            "edit(image, prompt, seed)."
        )
    if inspect.iscoroutinefunction(found):
        raise SettingsError(
            f"{module.__name__}:{path} is async, expected a plain function. Wrap it in one that "
            "calls asyncio.run."
        )
    function: Callable[..., Any] = found
    return function


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin without a signature: the call will tell
        return {}


def _theirs(
    parameters: Mapping[str, inspect.Parameter], options: Mapping[str, str]
) -> dict[str, str]:
    """The options that a function takes by name; all of them where it takes whatever comes."""
    any_name = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if any_name or not parameters:
        return dict(options)
    return {option: text for option, text in options.items() if option in parameters}


def _checked(
    function: Callable[..., Any], editor: str, options: dict[str, str]
) -> dict[str, Value]:
    """The function's keyword options, read. Raises SettingsError if it cannot be called so."""
    parameters = _parameters(function)
    if not parameters:
        try:
            inspect.signature(function)
        except (TypeError, ValueError):
            return {name: literal(text) for name, text in options.items()}
    takes = ", ".join(parameters)
    values: dict[str, Value] = {}
    for name, text in options.items():
        known = parameters.get(name)
        as_text = known is not None and known.annotation in (str, "str")
        values[name] = text if as_text else literal(text)
    more: dict[str, Any] = {**values, **({"request": None} if "request" in parameters else {})}
    signature = inspect.signature(function)
    try:
        signature.bind(None, "", 0, **{n: v for n, v in more.items() if n == "request"})
        plain = True
    except TypeError:
        plain = False
    try:
        signature.bind(None, "", 0, **more)
    except TypeError as error:
        if plain or options:
            raise SettingsError(
                f"editor {editor}: {error}; the function takes ({takes}), and the name gives "
                f"{', '.join(options) or 'no options'}."
            ) from None
        raise SettingsError(
            f"editor {editor} must be callable as edit(image, prompt, seed), but takes ({takes})."
        ) from None
    return values


def _fingerprint(module: ModuleType, function: Callable[..., Any]) -> str:
    """Changes with the source: of the module, or of the whole package that it is in.

    Raises:
        SettingsError: The files have changed since this process imported them.
    """
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    file = getattr(top, "__file__", None)
    if file and Path(file).name == "__init__.py":
        root = Path(file).parent
        files = sorted(root.rglob("*.py"))
    else:
        own = getattr(module, "__file__", None)
        root, files = Path(own or ".").parent, [Path(own)] if own else []
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    if not files:  # a notebook, or a builtin
        try:
            digest.update(inspect.getsource(function).encode())
        except (OSError, TypeError):
            digest.update(repr(function).partition(" at 0x")[0].encode())
    found = digest.hexdigest()[:12]
    if files and _seen.setdefault(module.__name__, found) != found:
        raise SettingsError(
            f"the source of {module.__name__} has changed since it was imported. Start Python (or "
            "the notebook's kernel) anew: what is recorded must be what ran."
        )
    return found


open_editor.runs_code = True  # type: ignore[attr-defined]  # a name in a record must not run it
