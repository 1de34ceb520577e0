"""What a stranger may try: guessing, path tricks, cross-site posts, large and broken bodies."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from convergebench.ratings import export, open_study
from convergebench.ratings.admin import new_cookie, valid_cookie
from convergebench.ratings.guard import HEADERS, Limiter
from tests.ratings.made import SCENES, SECRETIVE, admin_secret, any_answer, small_study, tokens
from tests.ratings.serving import Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    study = small_study(
        tmp_path_factory.mktemp("secure") / "s", participants=4, attention=1, repeats=1, images=3
    )
    with Served(study, "--trust-proxy") as running:
        yield running


def raw(served: Served, request: bytes, wait: float = 10.0) -> bytes:
    """What comes back for bytes that no client library would send."""
    host, port = served.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as link:
        link.sendall(request)
        found = b""
        try:
            while piece := link.recv(65536):
                found += piece
        except TimeoutError:
            pass
    return found


def hidden_words(study: Path) -> list[str]:
    """Everything that would tell a participant what made a picture."""
    files = [path.stem for path in (study / "images").iterdir()]
    return [*SECRETIVE, *SCENES, "fog-damage", "hidden-source", "s-run", "p02", "p03", *files]


def test_nothing_that_a_participant_can_fetch_names_a_method(served: Served) -> None:
    """Crawl a whole session: pages, scripts, states, pictures and all headers."""
    token = tokens(served.study)["p01"]
    words = [word.encode().lower() for word in hidden_words(served.study)]
    seen, count = set(), 0

    def look(answer: httpx.Response) -> None:
        nonlocal count
        count += 1
        told = b"\n".join(k + b":" + v for k, v in answer.headers.raw) + answer.content
        for word in words:
            assert word not in told.lower(), (word, answer.url)
        if answer.headers["content-type"].startswith(("text/html", "text/css", "text/java")):
            links = re.findall(r"[\"'(](/static/[\w.-]+|\./[\w.-]+\.js)[\"')]", answer.text)
            for link in links:
                address = link.replace("./", "/static/")
                if address not in seen:
                    seen.add(address)
                    look(client.get(address))

    with served.client(headers={"accept": "text/html,*/*"}) as client:
        look(client.get(f"/p/{token}"))
        look(client.get("/admin"))
        look(client.get("/p/wrong"))
        look(client.get("/healthz"))
        look(answer := client.post(f"/p/{token}/consent", json={"agree": True}))
        state = answer.json()
        while state["item"]:
            item = state["item"]
            pictures = [item["input"], item["reference"], *(s["image"] for s in item["slots"])]
            for address in filter(None, pictures):
                assert address not in seen, "the same address twice tells a repeat"
                seen.add(address)
                look(client.get(address))
            look(client.post(f"/p/{token}/answers", json={"item": item["id"]}))
            look(answer := client.post(f"/p/{token}/answers", json=any_answer(state)))
            state = answer.json()
        look(client.get(f"/p/{token}/state"))
    assert count > 40
    assert any(name.endswith(".js") for name in seen)


def test_every_response_has_the_headers(served: Served) -> None:
    token = tokens(served.study)["p02"]
    with served.client() as client:
        for path in (
            *("/healthz", "/admin", f"/p/{token}", f"/p/{token}/state", "/p/no", "/nothing"),
            *("/admin/state", "/admin/export.csv", "/static/rating.css", "/static/none.css"),
        ):
            answer = client.get(path)
            for name, value in HEADERS.items():
                assert answer.headers[name] == value, (path, name)
            assert "server" not in answer.headers
            if not path.startswith("/static/r"):
                assert answer.headers["cache-control"] == "no-store", path


def test_a_link_shows_nobody_elses_pictures(served: Served) -> None:
    one, other = (tokens(served.study)[p] for p in ("p03", "p04"))
    with served.client() as client:
        state = client.post(f"/p/{one}/consent", json={"agree": True}).json()
        mine = state["item"]["slots"][0]["image"]
        assert client.get(mine).status_code == 200
        assert client.get(mine.replace(one, other)).status_code == 404
        body = {**any_answer(state), "comment": "only mine"}
        client.post(f"/p/{one}/answers", json=body)
        client.post(f"/p/{other}/consent", json={"agree": True})
        told = client.get(f"/p/{other}/state").text
        assert "only mine" not in told
        assert client.get(f"/p/{other}/state").json()["done"] == 0


def test_wrong_links_all_look_alike_and_guessing_is_slowed_down(served: Served) -> None:
    right = tokens(served.study)["p01"]
    with served.client(headers={"x-forwarded-for": "10.1.1.1, 203.0.113.5"}) as client:
        answers = [
            client.get(path)
            for path in ("/p/x", f"/p/{right[:-1]}", f"/p/{right}x", "/p/x/state", "/p/x/i/y")
        ]
        assert {(a.status_code, a.text) for a in answers} == {(404, answers[0].text)}
        codes = [client.get(f"/p/guess{n}").status_code for n in range(40)]
        assert codes[0] == 404
        assert codes[-1] == 429
        limited = client.get("/p/guess")
        assert int(limited.headers["retry-after"]) >= 1
        assert client.get(f"/p/{right}").status_code == 200, "a neighbour's guesses lock nobody out"
    with served.client(headers={"x-forwarded-for": "203.0.113.5, 203.0.113.6"}) as client:
        assert client.get("/p/guess").status_code == 404, "what a client claims does not count"


def test_the_admin_page_needs_its_secret_and_wrong_ones_are_limited(served: Served) -> None:
    secret = admin_secret(served.study)
    with served.client(headers={"x-forwarded-for": "203.0.113.9"}) as client:
        for path in ("/admin/state", "/admin/export.csv"):
            assert client.get(path).status_code == 401
            name = f"convergebench-admin-{open_study(served.study).admin_sha256[:8]}"
            for cookie in ("", "x", "99999999999.aa", "9" * 5000, "1.1.1"):
                sent = client.get(path, headers={"cookie": f"{name}={cookie}"})
                assert sent.status_code == 401
        for wrong in ("", secret[:-1], secret + "x", None, ["x"], {"a": 1}):
            assert client.post("/admin/login", json={"secret": wrong}).status_code == 401
        codes = [client.post("/admin/login", json={"secret": f"{n}"}).status_code for n in range(9)]
        assert codes[-1] == 429
        assert client.post("/admin/login", json={"secret": secret}).status_code == 429
    with served.client(headers={"x-forwarded-for": "203.0.113.10"}) as client:
        answer = client.post("/admin/login", json={"secret": secret})
        assert answer.status_code == 200
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert secret.lower() not in cookie
        assert list(client.cookies.keys()) == [name]
        assert client.get("/admin/state").status_code == 200


def test_a_login_ends_and_cannot_be_made_without_the_key() -> None:
    ours = new_cookie(b"k" * 32)
    assert valid_cookie(b"k" * 32, ours)
    assert not valid_cookie(b"x" * 32, ours)
    end, _, sign = ours.partition(".")
    assert not valid_cookie(b"k" * 32, f"{int(end) + 1}.{sign}")
    assert not valid_cookie(b"k" * 32, f"{end}.{sign}é")
    from convergebench.ratings.admin import _signed

    assert not valid_cookie(b"k" * 32, _signed(b"k" * 32, int(time.time()) - 1))


@pytest.mark.parametrize(
    "path",
    [
        "/p/{token}/i/..%2f..%2fstudy.json",
        "/p/{token}/i/%2e%2e%2f%2e%2e%2flinks.csv",
        "/p/{token}/i/..%5c..%5clinks.csv",
        "/p/{token}/i/%00",
        "/p/{token}/i/x%00.png",
        "/p/{token}/i/%2fetc%2fpasswd",
        "/p/{token}/i//etc/passwd",
        "/p/{token}/i/../../links.csv",
        "/p/{token}/../../links.csv",
        "/p/{token}/i/%252e%252e%252flinks.csv",
        "/p/{token}/i/{picture}",
        "/p/{token}/i/{picture}.png",
        "/p/{token}/",
        "/static/..%2fapp.py",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%5capp.py",
        "/static/%00",
        "/static//etc/passwd",
        "/static/",
        "/images/{picture}.png",
        "/links.csv",
        "/study.json",
        "/p/..%2fadmin%2fstate",
        "//admin/state",
        "/admin/../admin/export.csv",
        "/%ff%fe",
        "/p/%ff%fe/state",
        "/p/" + "a" * 5000,
    ],
)
def test_path_tricks_find_nothing(served: Served, path: str) -> None:
    picture = next((served.study / "images").iterdir()).stem
    path = path.format(token=tokens(served.study)["p01"], picture=picture)
    request = f"GET {path} HTTP/1.1\r\nHost: {served.address[7:]}\r\nConnection: close\r\n\r\n"
    answer = raw(served, request.encode("latin-1"))
    assert answer.split()[1] in (b"404", b"400", b"429", b"401"), answer[:200]
    assert b"PNG" not in answer
    assert b"Traceback" not in answer


def posted(served: Served, headers: dict[str, str], content: Any = None) -> httpx.Response:
    token = tokens(served.study)["p02"]
    body = content if content is not None else b'{"agree": true}'
    with httpx.Client(base_url=served.address, timeout=30) as client:
        return client.post(f"/p/{token}/consent", content=body, headers=headers)


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**JSON}, 403),
        ({**JSON, "origin": "https://evil.example"}, 403),
        ({**JSON, "origin": "null"}, 403),
        ({**JSON, "origin": "{own}.evil.example"}, 403),
        ({**JSON, "origin": "{own}", "sec-fetch-site": "cross-site"}, 403),
        ({**JSON, "origin": "{own}", "sec-fetch-site": "same-site"}, 403),
        ({"content-type": "text/plain", "origin": "{own}"}, 415),
        ({"content-type": "application/x-www-form-urlencoded", "origin": "{own}"}, 415),
        ({"origin": "{own}"}, 415),
        ({**JSON, "origin": "{own}", "content-encoding": "gzip"}, 415),
    ],
)
def test_posts_from_other_sites_and_forms_are_refused(
    served: Served, headers: dict[str, str], status: int
) -> None:
    told = {name: value.replace("{own}", served.address) for name, value in headers.items()}
    assert posted(served, told).status_code == status


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b"7",
        b"\xff\xfe",
        b"[" * 60_000,
        b'{"agree": NaN}',
        b'{"agree": ' + b"9" * 60_000 + b"}",
        b"null",
    ],
)
def test_bodies_that_are_no_json_object_are_refused(served: Served, content: bytes) -> None:
    answer = posted(served, {**JSON, "origin": served.address}, content)
    assert answer.status_code == 400
    assert "Traceback" not in answer.text


def test_ten_megabytes_are_refused_without_being_read(served: Served) -> None:
    token = tokens(served.study)["p02"]
    head = (
        f"POST /p/{token}/consent HTTP/1.1\r\nHost: {served.address[7:]}\r\n"
        f"Origin: {served.address}\r\nContent-Type: application/json\r\n"
    )
    announced = raw(served, f"{head}Content-Length: 10485760\r\n\r\n".encode() + b"x" * 1000)
    assert announced.split()[1] == b"413"
    assert b"connection: close" in announced.lower()
    piece = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    chunked = raw(served, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + piece * 3)
    assert chunked.split()[1] == b"413"
    for wrong in ("-5", "5, 6", "0x10", "9" * 30):
        answer = raw(served, f"{head}Content-Length: {wrong}\r\n\r\n{{}}".encode())
        assert answer.split()[1] in (b"400", b"413"), wrong


def test_ten_megabytes_from_a_client_that_sends_all_are_refused(served: Served) -> None:
    try:
        answer = posted(served, {**JSON, "origin": served.address}, b"x" * 10_485_760)
    except httpx.TransportError:  # the server hung up while it was still being sent to
        return
    assert answer.status_code == 413


def test_scripts_in_texts_are_stored_as_they_are_and_sent_as_json_alone(served: Served) -> None:
    token, evil = tokens(served.study)["p04"], "<script>alert(1)</script>'\";DROP TABLE answers;--"
    with served.client() as client:
        state = client.post(f"/p/{token}/consent", json={"agree": True}).json()
        body = {**any_answer(state), "comment": evil}
        assert client.post(f"/p/{token}/answers", json=body).json()["saved"]
        client.headers["x-forwarded-for"] = "203.0.113.77"
        client.post("/admin/login", json={"secret": admin_secret(served.study)})
        answer = client.get("/admin/state")
        assert answer.headers["content-type"] == "application/json"
        assert evil in [comment["text"] for comment in answer.json()["comments"]]
    assert evil in set(export.answers(served.study)["comment"])


def test_methods_that_are_not_meant_are_refused(served: Served) -> None:
    token = tokens(served.study)["p01"]
    with served.client() as client:
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            assert client.request(method, f"/p/{token}/answers").status_code == 405
        assert client.get(f"/p/{token}/answers").status_code == 405
        assert client.post("/admin/export.csv", json={}).status_code == 405


def test_the_log_has_no_secret(served: Served) -> None:
    with served.client() as client:
        client.get(f"/p/{tokens(served.study)['p01']}/state")
    said = served.said()
    assert "serving" in said
    for secret in (*tokens(served.study).values(), admin_secret(served.study)):
        assert secret not in said


def test_a_fault_of_ours_is_told_without_its_inside(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", participants=1)
    (token,) = tokens(study).values()
    with Served(study) as served, served.client() as client:
        state = client.post(f"/p/{token}/consent", json={"agree": True}).json()
        for file in (study / "images").iterdir():
            file.unlink()
        answer = client.get(state["item"]["slots"][0]["image"])
        assert answer.status_code == 500
        assert json.loads(answer.text) == {
            "error": "something went wrong here; try again in a moment."
        }
        assert answer.headers["x-content-type-options"] == "nosniff"
        end = time.monotonic() + 10  # it is written down after the answer has gone out
        while "FileNotFoundError (app.py, line" not in (said := served.said()):
            assert time.monotonic() < end, said
            time.sleep(0.02)
        assert token not in said


def test_a_server_that_knows_its_name_answers_to_no_other(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", participants=1, base_url="https://rate.example.org")
    (token,) = tokens(study).values()
    with Served(study, "--base-url", "https://other.example.org"):
        assert (study / "admin.txt").read_text().split()[1] == "https://other.example.org/admin"
        assert tokens(study) == {"p01": token}
    with Served(study) as served:
        assert (study / "admin.txt").read_text().split()[1] == "https://rate.example.org/admin"
        for host, status in (("rate.example.org", 200), ("evil.example", 421), ("127.0.0.1", 200)):
            answer = httpx.get(f"{served.address}/p/{token}", headers={"host": host})
            assert answer.status_code == status, host
        proxied = {"host": "rate.example.org", "origin": "https://rate.example.org", **JSON}
        assert posted_as(served, token, proxied) == 200
        assert posted_as(served, token, {**proxied, "origin": "http://rate.example.org"}) == 403
        login = httpx.post(f"{served.address}/admin/login", headers=proxied,
                           json={"secret": admin_secret(study)})  # fmt: skip
        assert "secure" in login.headers["set-cookie"].lower()


def posted_as(served: Served, token: str, headers: dict[str, str]) -> int:
    address = f"{served.address}/p/{token}/consent"
    return httpx.post(address, headers=headers, content=b'{"agree": true}').status_code


def test_the_limiter_forgives_with_time_and_remembers_only_so_many() -> None:
    now = [0.0]
    limiter = Limiter(tries=3, seconds=30, most=5, clock=lambda: now[0])
    for _ in range(3):
        assert limiter.wait("192.0.2.1") == 0
        limiter.wrong("192.0.2.1")
    assert limiter.wait("192.0.2.1") == 10
    assert limiter.wait("192.0.2.2") == 0
    now[0] = 10.0
    assert limiter.wait("192.0.2.1") == 0
    for number in range(100):
        limiter.wrong(f"198.51.100.{number}")
    assert len(limiter) == 5
    for last in range(3):
        limiter.wrong(f"2001:db8:0:1::{last}")
    assert limiter.wait("2001:db8:0:1:ffff::9") > 0, "one customer has a whole /64"
    assert limiter.wait("2001:db8:0:2::1") == 0
