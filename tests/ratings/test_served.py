"""The served app as a participant and as the organiser: sessions, resuming, what is exported."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import polars as pl
import pytest

from convergebench.opinions.answers import SCHEMA
from convergebench.ratings import export, open_study
from convergebench.ratings.design import DESIGNS
from tests.ratings.made import admin_secret, any_answer, small_study, tokens
from tests.ratings.serving import Served


@pytest.fixture(params=DESIGNS)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    study = small_study(
        tmp_path / "s", request.param, attention=1, repeats=1, practice=1, ties=True, code="each"
    )
    with Served(study) as running:
        yield running


def begun(client: httpx.Client, token: str) -> dict[str, Any]:
    answer = client.post(f"/p/{token}/consent", json={"agree": True})
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


def test_a_session_goes_from_consent_to_a_code_and_every_answer_is_exported(served: Served) -> None:
    one, other, _ = tokens(served.study).values()
    items = open_study(served.study).participants[0].items
    with served.client() as client:
        state = client.get(f"/p/{one}/state").json()
        assert (state["stage"], state["item"], state["code"]) == ("consent", None, None)
        state = begun(client, one)
        assert state["total"] == len(items) - 1
        assert state["practice_left"] == 1
        sent: list[dict[str, Any]] = []
        while state["stage"] == "rate":
            assert client.get(f"/p/{one}/state").json() == {
                k: v for k, v in state.items() if k not in ("saved", "already", "feedback")
            }
            pictures = [slot["image"] for slot in state["item"]["slots"]]
            assert len(set(pictures)) == len(pictures)
            for address in pictures:
                assert client.get(address).headers["content-type"] == "image/png"
            practice = state["item"]["kind"] == "practice"
            sent.append(any_answer(state, value=len(sent)))
            state = client.post(f"/p/{one}/answers", json=sent[-1]).json()
            assert state["saved"] is True
            assert (state["feedback"] is not None) == practice
        assert (state["stage"], state["done"], len(sent)) == ("done", len(items) - 1, len(items))
        assert state["code"]
        elsewhere = client.get(f"/p/{other}/state").json()
        assert (elsewhere["done"], elsewhere["code"]) == (0, None)
    rows = export.answers(served.study)
    assert dict(rows.schema) == SCHEMA
    assert rows["rater"].unique().to_list() == ["p01"]
    assert sorted(rows["order"].unique()) == list(range(1, len(items) + 1))
    assert {item.kind for item in items} == set(rows["kind"].unique())
    checks = rows.filter(pl.col("kind").is_in(["attention", "practice"]))
    assert not checks["passed"].is_null().any()
    assert rows.filter(pl.col("kind") == "item")["passed"].is_null().all()


def test_values_are_exported_under_the_method_that_was_in_the_slot(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", practice=0, participants=2)
    items = open_study(study).participants[1].items
    token = tokens(study)["p02"]
    given: dict[tuple[int, str], float] = {}
    with Served(study) as served, served.client() as client:
        state = begun(client, token)
        for item in items:
            values = {slot["id"]: n for n, slot in enumerate(state["item"]["slots"])}
            given |= {(item.image, method): float(n) for n, method in enumerate(item.slots)}
            body = {"item": state["item"]["id"], "values": values, "milliseconds": 1500}
            state = client.post(f"/p/{token}/answers", json=body).json()
    rows = export.answers(study)
    found = {
        (int(image.rpartition("-")[2]), method): value
        for image, method, value in rows.select("image", "method", "value").iter_rows()
    }
    assert found == given
    assert rows["seconds"].unique().to_list() == [1.5]
    assert all(m in chain for m, chain in rows.select("method", "chain").iter_rows())


def test_pairs_are_a_row_per_side(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", "pairs", practice=0, participants=1, ties=True, images=1)
    items = open_study(study).participants[0].items
    (token,) = tokens(study).values()
    with Served(study) as served, served.client() as client:
        state = begun(client, token)
        for choice in ("a", "b", "tie"):
            body = {"item": state["item"]["id"], "values": {"choice": choice}}
            state = client.post(f"/p/{token}/answers", json=body).json()
    rows = export.answers(study).select("method", "other_method", "value").rows()
    expected = []
    for item, (left, right) in zip(items[:3], [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5)], strict=True):
        one, other = item.slots
        expected += [(one, other, left), (other, one, right)]
    assert rows == expected


def test_the_same_answer_again_and_the_back_button_do_no_harm(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", practice=0, participants=1)
    (token,) = tokens(study).values()
    with Served(study) as served, served.client() as client:
        first = begun(client, token)
        body = any_answer(first, 1)
        second = client.post(f"/p/{token}/answers", json=body).json()
        again = client.post(f"/p/{token}/answers", json=any_answer(first, 4)).json()
        assert (again["saved"], again["already"]) == (False, True)
        assert again["item"] == second["item"] != first["item"]
    rows = export.answers(study)
    assert sorted(rows["value"]) == sorted(float(v) for v in body["values"].values())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"item": "nonsense"}, "no such item"),
        ({"item": ["x"]}, "no such item"),
        ({"values": None}, "values are missing"),
        ({"values": {"a": 3}}, "every picture needs an answer"),
        ({"values": dict.fromkeys("abcdef", 1)}, "every picture needs an answer"),
        ({"values": dict.fromkeys("abcde", 6)}, "a score is 0 to 5 in steps of 1"),
        ({"values": dict.fromkeys("abcde", 2.5)}, "a score is"),
        ({"values": dict.fromkeys("abcde", True)}, "a score is"),
        ({"values": dict.fromkeys("abcde", "3")}, "a score is"),
        ({"values": dict.fromkeys("abcde", 10**400)}, "a score is"),
        ({"comment": "x" * 1001}, "at most 1000 letters"),
        ({"comment": 7}, "at most 1000 letters"),
        ({"comment": "\ud800"}, "no Unicode text"),
    ],
)
def test_an_answer_that_is_none_is_refused_in_words(
    quiet: tuple[Served, str], change: dict[str, Any], match: str
) -> None:
    served, token = quiet
    import json

    with served.client(headers={"content-type": "application/json"}) as client:
        state = begun(client, token)
        body = json.dumps({**any_answer(state), **change})
        answer = client.post(f"/p/{token}/answers", content=body)
        assert answer.status_code == 422
        assert match in answer.json()["error"]
        assert client.get(f"/p/{token}/state").json()["done"] == 0


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    study = small_study(tmp_path_factory.mktemp("quiet") / "s", practice=0, participants=1)
    with Served(study) as running:
        yield running, next(iter(tokens(study).values()))


def test_nothing_is_taken_before_consent_or_out_of_turn(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", practice=0, participants=2)
    one, other = tokens(study).values()
    with Served(study) as served, served.client() as client:
        assert client.post(f"/p/{one}/consent", json={"agree": "yes"}).status_code == 422
        state = begun(client, one)
        body = any_answer(state)
        refused = client.post(f"/p/{other}/answers", json=body)
        assert (refused.status_code, refused.json()["error"][:8]) == (422, "there is")
        from convergebench.ratings.session import Session

        key = (study / "server.key").read_bytes()
        mine = Session(open_study(study), 0, one, key)
        later = mine._told(2)["id"]
        refused = client.post(f"/p/{one}/answers", json={**body, "item": later})
        assert "not the one that is asked now" in refused.json()["error"]
        early = Session(open_study(study), 1, other, key)._told(0)["id"]
        refused = client.post(f"/p/{other}/answers", json={**body, "item": early})
        assert "consent is missing" in refused.json()["error"]
    assert export.answers(study).is_empty()


def test_the_organiser_sees_progress_methods_comments_and_the_export(served: Served) -> None:
    token = tokens(served.study)["p01"]
    with served.client() as client:
        state = begun(client, token)
        for number in range(3):
            body = {**any_answer(state), "comment": f"=HYPERLINK({number})"}
            state = client.post(f"/p/{token}/answers", json=body).json()
        assert client.get("/admin/state").status_code == 401
        secret = admin_secret(served.study)
        assert client.post("/admin/login", json={"secret": secret}).status_code == 200
        told = client.get("/admin/state").json()
        first, second, _ = told["participants"]
        assert (first["id"], first["done"], first["finished"]) == ("p01", 2, False)
        assert (second["done"], second["started"], second["last"]) == (0, None, None)
        assert first["median_seconds"] == 1.2
        assert told["answers"] == 3
        assert [c["text"] for c in told["comments"]] == [f"=HYPERLINK({n})" for n in (2, 1, 0)]
        assert {m["label"] for m in told["methods"]} == {
            m.label for m in open_study(served.study).methods
        }
        assert told["agreement"]
        csv = client.get("/admin/export.csv")
        assert csv.headers["content-type"].startswith("text/csv")
        table = pl.read_csv(io.StringIO(csv.text))
        assert set(table["comment"]) == {f"'=HYPERLINK({n})" for n in range(3)}
        assert set(export.answers(served.study)["comment"]) == {
            f"=HYPERLINK({n})" for n in range(3)
        }
        assert client.post("/admin/logout", json={}).status_code == 200
        assert client.get("/admin/state").status_code == 401
