"""What an organiser does to a study's folder: copying, editing, adding, naming another address."""

from __future__ import annotations

import csv
import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convergebench.errors import InputError, StoreDamaged, StoreMismatch
from convergebench.ratings import export, links, open_study
from convergebench.ratings.creating import create
from convergebench.ratings.design import Scale
from convergebench.ratings.session import checked_values
from tests.ratings.made import any_answer, restored_run, small_study, tokens
from tests.ratings.serving import Served


def refused(study: Path, *options: str) -> str:
    """What `rate serve` says when it does not start."""
    command = [sys.executable, "-m", "convergebench", "rate", "serve", str(study), "--port", "0"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_own_completion_codes_are_in_a_private_file_for_the_organiser(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", code="each", images=1, practice=0)
    file = study / "codes.csv"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with file.open(newline="") as opened:
        codes = {row["participant"]: row["code"] for row in csv.DictReader(opened)}
    assert len(set(codes.values())) == 3
    token = tokens(study)["p02"]
    with Served(study) as served, served.client() as client:
        state = client.post(f"/p/{token}/consent", json={"agree": True}).json()
        state = client.post(f"/p/{token}/answers", json=any_answer(state)).json()
        assert state["code"] == codes["p02"]
    same = small_study(tmp_path / "same", code="THANKS", images=1)
    assert not (same / "codes.csv").exists()


def test_columns_that_the_organiser_added_to_the_links_stay(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=1)
    file = study / "links.csv"
    head, *rows = file.read_text().splitlines()
    told = [f"{head},email", *(f"{row},someone{n}@example.org" for n, row in enumerate(rows))]
    file.write_text("\ufeff" + "\r\n".join(told) + "\r\n", "utf-8")
    before = [row.split(",")[1] for row in rows]
    links.point_links_to(study, "https://rate.example.org")
    with file.open(newline="", encoding="utf-8") as opened:
        found = list(csv.DictReader(opened))
    assert [row["email"] for row in found] == [f"someone{n}@example.org" for n in range(3)]
    assert [row["token"] for row in found] == before
    assert all(row["link"] == f"https://rate.example.org/p/{row['token']}" for row in found)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "content"),
    [("links.csv", b""), ("links.csv", b"a;b\n1;2\n"), ("links.csv", b"\xff"), ("admin.txt", b"")],
)
def test_links_that_are_no_longer_as_written_are_told(
    tmp_path: Path, name: str, content: bytes
) -> None:
    study = small_study(tmp_path / "s", images=1)
    (study / name).write_bytes(content)
    with pytest.raises(StoreDamaged, match=f"{name} is not as it was written"):
        links.point_links_to(study, "https://rate.example.org")


@pytest.mark.parametrize(
    ("told", "sent"),
    [
        ("https://Rate.Example.org:443/", "https://rate.example.org"),
        ("http://rate.example.org:80", "http://rate.example.org"),
        ("https://rate.example.org:8443", "https://rate.example.org:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_is_kept_as_browsers_send_it(told: str, sent: str) -> None:
    assert links.checked_base(told) == sent


@pytest.mark.parametrize(
    "told", ["https://a b", "https://@x", "https://u:p@x", "https://", "https://x:0", "https://x/p"]
)
def test_what_is_no_address_is_refused(told: str) -> None:
    with pytest.raises(InputError, match="is no address of a server"):
        links.checked_base(told)


class Begun(Served):
    """Taken at its word: the test's own way out may lead through a proxy."""

    def _answers(self) -> bool:
        return True


def test_links_of_a_server_on_all_addresses_can_be_followed(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=1)
    with Begun(study, "--host", "0.0.0.0", "--public") as served:
        said = served.said()
        assert "participants reach it at http://" in said
        text = (study / "links.csv").read_text() + (study / "admin.txt").read_text()
        assert "0.0.0.0" not in text


def test_tokens_survive_spreadsheets_and_mail_programs() -> None:
    for _ in range(300):
        token = links.new_token()
        assert token[0].isalnum()
        assert token[-1].isalnum()
        assert len(token) == 32


def test_a_short_key_is_refused_since_logins_could_be_forged(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=1)
    (study / "server.key").write_bytes(b"")
    assert "server.key has 0 bytes, expected 32" in refused(study)


def test_a_study_that_was_not_copied_whole_is_not_served(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=1)
    next((study / "images").iterdir()).unlink()
    assert "lacks 1 of 8 pictures" in refused(study)


def test_a_picture_that_was_exchanged_is_not_shown(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=1)
    token = tokens(study)["p01"]
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0")
    for file in (study / "images").iterdir():
        file.unlink()
        file.symlink_to(secret)
    with Served(study) as served, served.client() as client:
        state = client.post(f"/p/{token}/consent", json={"agree": True}).json()
        answer = client.get(state["item"]["slots"][0]["image"])
        assert answer.status_code == 503
        assert "root" not in answer.text
        assert "is not the picture it was" in served.said()
        assert token not in served.said()


def without_somebody(record: dict[str, Any]) -> None:
    del record["participants"][0]


def with_other_slots(record: dict[str, Any]) -> None:
    for item in record["participants"][0]["items"]:
        item["slots"].reverse()


def with_another_scale(record: dict[str, Any]) -> None:
    record["scale"]["high"] = 3


def with_another_design(record: dict[str, Any]) -> None:
    record["design"] = "labels"


@pytest.mark.parametrize(
    "change", [without_somebody, with_other_slots, with_another_scale, with_another_design]
)
def test_a_changed_plan_is_refused_before_answers_change_their_meaning(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    study = small_study(tmp_path / "s", images=2)
    file = study / "study.json"
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))
    with pytest.raises(StoreMismatch, match="was changed after the study was made"):
        export.answers(study)
    assert "was changed after the study was made" in refused(study)


def test_words_and_a_link_may_be_changed_later(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=2)
    file = study / "study.json"
    record = json.loads(file.read_text())
    record |= {"title": "Other words", "consent": "Other terms", "instructions": "Look well"}
    record["questions"][0]["text"] = "And now?"
    record["scale"]["low_label"] = "poor"
    record["participants"][0]["token_sha256"] = links.token_hash("a new link for p01")
    file.write_text(json.dumps(record, sort_keys=True))
    assert export.answers(study).is_empty()


def test_half_a_record_is_damaged_and_not_quoted(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=1)
    file = study / "study.json"
    file.write_bytes(file.read_bytes()[:400])
    with pytest.raises(StoreDamaged, match=r"study\.json is no JSON any more") as told:
        open_study(study)
    assert len(str(told.value)) < 300


def test_an_organiser_is_told_minutes_and_what_nobody_will_see(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run", images=6)
    small = create(run, tmp_path / "small", participants=3, images=["hidden-source-0"])
    assert "minutes each" in str(small)
    assert not any("minutes" in note for note in small.notes)
    told = create(run, tmp_path / "pairs", "pairs", participants=3, per_participant=7)
    assert any("see 21 of the 60 pages" in note for note in told.notes)
    long = create(run, tmp_path / "long", participants=3, practice=60)
    assert long.to_dict()["minutes"] == 33
    assert any("About 33 minutes" in note and "BT.500" in note for note in long.notes)


def test_a_text_too_long_is_told_before_anything_is_made(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run", images=1)
    with pytest.raises(InputError, match=r"title: 201 letters(.|\n)*") as told:
        create(run, tmp_path / "s", participants=1, title="x" * 201,
               questions={"quality": "y" * 501})  # fmt: skip
    assert "question quality: 501 letters, at most 500" in str(told.value)


def test_a_text_names_a_method_only_as_a_word_of_its_own(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run", images=1, methods=["ours", "net"])
    create(run, tmp_path / "s", participants=1, title="Is yours on the Internet?")
    with pytest.raises(InputError, match="names the method ours"):
        create(run, tmp_path / "t", participants=1, title="Is (Ours) better?")


def test_a_comment_has_no_control_characters_that_hide_a_formula(tmp_path: Path) -> None:
    study = small_study(tmp_path / "s", images=1, practice=0)
    told = tokens(study)
    with Served(study) as served, served.client() as client:
        for person, comment in (("p01", "\x00=1+1\x7f"), ("p02", "\x00"), ("p03", "a\n=b\tc")):
            state = client.post(f"/p/{told[person]}/consent", json={"agree": True}).json()
            body = {**any_answer(state), "comment": comment}
            assert client.post(f"/p/{told[person]}/answers", json=body).json()["saved"]
    frame = export.answers(study)
    kept = dict(frame.select("rater", "comment").unique().iter_rows())
    assert kept == {"p01": "=1+1", "p02": None, "p03": "a\n=b\tc"}
    assert "'=1+1" in export.csv_text(frame)


def test_a_score_is_kept_as_the_number_on_the_scale_that_was_meant(tmp_path: Path) -> None:
    study = open_study(small_study(tmp_path / "s", "single", images=1, practice=0,
                                   scale=Scale(low=0, high=1, step=0.1)))  # fmt: skip
    item = study.participants[0].items[0]
    assert checked_values(study, item, {"a": 0.1 + 0.2}) == {"a": 0.3}


def test_what_a_killed_create_leaves_is_private_and_in_nobodys_way(tmp_path: Path) -> None:
    run = restored_run(tmp_path / "run", images=1)
    modes = []

    def look(done: int, of: int) -> None:
        (scratch,) = tmp_path.glob(".s.new-*")
        modes.append(stat.S_IMODE(scratch.stat().st_mode))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create(run, tmp_path / "s", participants=1, observe=look)
    assert modes == [0o700]
    assert not list(tmp_path.glob(".s.new-*"))
    (tmp_path / ".s.new-left").mkdir()
    create(run, tmp_path / "s", participants=1)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
