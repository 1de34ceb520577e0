"""The rating app: pages for participants, a page for the organiser.

A participant's link is all there is to log in with. Who has it sees that session and nothing else:
the token is looked up by its hash, and every picture and page has an address that only this token
leads to. A wrong link, a wrong picture and a wrong path all get the same answer.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import sys
from collections.abc import AsyncIterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final, NoReturn

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from convergebench.errors import InputError, StoreDamaged, StoreError
from convergebench.frame import sha256
from convergebench.ratings import admin, export, links
from convergebench.ratings.guard import Guard, Limiter, client_of, json_body, refusal, refuse
from convergebench.ratings.session import Session
from convergebench.ratings.storage import Answers
from convergebench.ratings.study import IMAGES, Study, open_study

COOKIE: Final = "convergebench-admin"
NO_STORE: Final = {"cache-control": "no-store"}
NO_LINK: Final = "there is nothing here. Is the link complete?"
TYPES: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""Static files that are served, by their ending."""


def make_app(
    folder: str | os.PathLike[str], *, base_url: str | None = None, trust_proxy: bool = False
) -> ASGIApp:
    """The app of a study.

    Args:
        folder: The study.
        base_url: Where it is reached; requests under another name are then refused.
        trust_proxy: Whether a proxy of ours tells the clients' addresses.

    Raises:
        StoreError: The folder is no sound study.
    """
    origin = links.checked_base(base_url) if base_url else None
    return _App(Path(folder), origin, trust_proxy).guarded()


class _App:
    def __init__(self, folder: Path, origin: str | None, trust_proxy: bool) -> None:
        self._folder = folder
        self._origin = origin
        self._trust = trust_proxy
        self._study: Study = open_study(folder)
        self._answers = Answers.open(
            folder, self._study.name, self._study.created, self._study.plan
        )
        self._key = links.read_key(folder)
        # Browsers do not tell ports apart: two studies on one host would log each other out.
        self._cookie = f"{COOKIE}-{self._study.admin_sha256[:8]}"
        self._overview = admin.Overview(self._study, self._answers)
        self._links, self._logins = Limiter(), Limiter(tries=10)
        self._session = lru_cache(maxsize=1024)(self._new_session)
        self._static = _static()
        self._pages = _pages()

    def guarded(self) -> ASGIApp:
        routes = [
            Route("/healthz", self._health),
            Route("/static/{name}", self._file),
            Route("/p/{token}", self._page),
            Route("/p/{token}/state", self._state),
            Route("/p/{token}/consent", self._consent, methods=["POST"]),
            Route("/p/{token}/answers", self._answer, methods=["POST"]),
            Route("/p/{token}/i/{picture}", self._picture),
            Route("/admin", self._admin),
            Route("/admin/login", self._login, methods=["POST"]),
            Route("/admin/logout", self._logout, methods=["POST"]),
            Route("/admin/state", self._admin_state),
            Route("/admin/export.csv", self._export),
        ]

        @contextlib.asynccontextmanager
        async def life(_: Starlette) -> AsyncIterator[None]:
            yield
            self._answers.close()

        app = Starlette(
            routes=routes,
            exception_handlers={
                HTTPException: self._refused,
                InputError: self._wrong,
                StoreError: self._busy,
                Exception: self._fault,
            },
            lifespan=life,
        )
        app.router.redirect_slashes = False
        return Guard(app, origin=self._origin)

    # -- participants -------------------------------------------------------------------------

    def _page(self, request: Request) -> Response:
        self._participant(request)
        return HTMLResponse(self._pages["participant.html"], headers=NO_STORE)

    def _state(self, request: Request) -> Response:
        return JSONResponse(self._participant(request).state(self._answers), headers=NO_STORE)

    async def _consent(self, request: Request) -> Response:
        session = self._participant(request)
        body = await json_body(request, self._origin)
        told = await run_in_threadpool(session.agree, self._answers, body)
        return JSONResponse(told, headers=NO_STORE)

    async def _answer(self, request: Request) -> Response:
        session = self._participant(request)
        body = await json_body(request, self._origin)
        told = await run_in_threadpool(session.answer, self._answers, body)
        return JSONResponse(told, headers=NO_STORE)

    def _picture(self, request: Request) -> Response:
        picture = self._participant(request).picture(request.path_params["picture"])
        if picture is None:
            self._stop_guessing(request)
        data = (self._folder / IMAGES / f"{picture}.png").read_bytes()
        if sha256(data) != self._study.pictures.get(picture):
            raise StoreDamaged(f"{self._folder / IMAGES}: {picture}.png is not the picture it was")
        keep = {"cache-control": "private, max-age=3600"}
        return Response(data, media_type="image/png", headers=keep)

    def _participant(self, request: Request) -> Session:
        """The session that a link leads to; any wrong link is refused alike.

        A right link works even where others guess from the same address: that may be a school's.
        """
        token = request.path_params["token"]
        place = self._study.by_token.get(links.token_hash(token)) if len(token) <= 100 else None
        if place is None:
            self._stop_guessing(request)
        return self._session(place, token)

    def _stop_guessing(self, request: Request) -> NoReturn:
        address = client_of(request, self._trust)
        if wait := self._links.wait(address):
            refuse(429, "too many wrong links; try again later.", **{"retry-after": str(wait)})
        self._links.wrong(address)
        refuse(404, NO_LINK)

    def _new_session(self, place: int, token: str) -> Session:
        return Session(self._study, place, token, self._key)

    # -- the organiser ------------------------------------------------------------------------

    def _admin(self, request: Request) -> Response:
        return HTMLResponse(self._pages["admin.html"], headers=NO_STORE)

    async def _login(self, request: Request) -> Response:
        address = client_of(request, self._trust)
        if wait := self._logins.wait(address):
            return refusal(
                429, "too many wrong secrets; try again later.", **{"retry-after": str(wait)}
            )
        body = await json_body(request, self._origin)
        secret = body.get("secret")
        told = links.token_hash(secret if isinstance(secret, str) else "")
        if not hmac.compare_digest(told, self._study.admin_sha256):
            self._logins.wrong(address)
            return refusal(401, "that is not the secret of this study.")
        answer = JSONResponse({"ok": True}, headers=NO_STORE)
        self._set_cookie(answer, admin.new_cookie(self._key), admin.LASTS)
        return answer

    async def _logout(self, request: Request) -> Response:
        await json_body(request, self._origin)
        answer = JSONResponse({"ok": True}, headers=NO_STORE)
        self._set_cookie(answer, "", 0)
        return answer

    def _set_cookie(self, answer: Response, value: str, age: int) -> None:
        answer.set_cookie(
            self._cookie,
            value,
            max_age=age,
            path="/admin",
            httponly=True,
            samesite="strict",
            secure=bool(self._origin and self._origin.startswith("https:")),
        )

    def _admin_state(self, request: Request) -> Response:
        self._check_admin(request)
        return JSONResponse(self._overview.state(), headers=NO_STORE)

    def _export(self, request: Request) -> Response:
        self._check_admin(request)
        text = export.csv_text(export.table(self._study, self._answers.all()))
        name = f'attachment; filename="{self._study.name}.csv"'
        headers = {**NO_STORE, "content-disposition": name}
        return Response(text, media_type="text/csv", headers=headers)

    def _check_admin(self, request: Request) -> None:
        if not admin.valid_cookie(self._key, request.cookies.get(self._cookie)):
            refuse(401, "log in with the study's secret first.")

    # -- the rest -----------------------------------------------------------------------------

    def _health(self, request: Request) -> Response:
        return PlainTextResponse("ok", headers=NO_STORE)

    def _file(self, request: Request) -> Response:
        # A dictionary has no way up: a name that is not in it does not exist.
        found = self._static.get(request.path_params["name"])
        if found is None:
            refuse(404, NO_LINK)
        data, kind = found
        return Response(data, media_type=kind, headers={"cache-control": "no-cache"})

    async def _refused(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        headers = {k.lower(): v for k, v in (error.headers or {}).items()}
        page = request.method in ("GET", "HEAD") and "text/html" in request.headers.get(
            "accept", ""
        )
        if page and error.status_code in (404, 429):
            told = {**NO_STORE, **headers}
            return HTMLResponse(self._pages["lost.html"], error.status_code, told)
        if error.status_code == 404:
            # Starlette's own sentence would tell a wrong path from a wrong link.
            return refusal(404, NO_LINK)
        return refusal(error.status_code, error.detail, **headers)

    async def _wrong(self, request: Request, error: Exception) -> Response:
        return refusal(422, str(error))

    async def _busy(self, request: Request, error: Exception) -> Response:
        """Nothing could be saved or read: the disk is full, or another process is in the way."""
        print(f"error: {error}", file=sys.stderr, flush=True)
        told = "the answer could not be saved just now; it is tried again."
        return refusal(503, told, **{"retry-after": "5"})

    async def _fault(self, request: Request, error: Exception) -> Response:
        """A fault of ours; the guard writes down where it is."""
        return refusal(500, "something went wrong here; try again in a moment.")


def _static() -> dict[str, tuple[bytes, str]]:
    """The files beside the pages, by name; read once, at the start."""
    folder = files("convergebench.ratings") / "static"
    if not folder.is_dir():
        return {}
    found = {}
    for file in folder.iterdir():
        kind = TYPES.get(Path(file.name).suffix)
        if file.is_file() and kind:
            found[file.name] = (file.read_bytes(), kind)
    return found


def _pages() -> dict[str, str]:
    """The pages, plain files without a word about any study."""
    folder = files("convergebench.ratings") / "templates"
    names = ("participant.html", "admin.html", "lost.html")
    return {name: (folder / name).read_text("utf-8") for name in names}
