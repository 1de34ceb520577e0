"""What strangers may see: a card that says all, and no secret, signed address or machine's path."""

from __future__ import annotations

from pathlib import Path

import pytest

from convergebench.chain import Call
from convergebench.dataset import export
from convergebench.dataset.cleaning import Cleaner, holds_path
from convergebench.importer import import_run
from convergebench.scoretable import rows_frame
from convergebench.store import RunStore
from tests.dataset.made import Made, Walk, make_run, odd_run, png


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("see https://h.test/a.png?X-Amz-Signature=1f&X-Amz-Expires=9 there",
         "see https://h.test/a.png?… there"),
        ("https://h.test/a?sig=1", "https://h.test/a?…"),
        ("https://h.test/a?width=3", "https://h.test/a?width=3"),
        ("https://me:pass@h.test/a", "https://h.test/a"),
        ("cannot open /home/ada/models/x.safetensors: gone",
         "cannot open …/x.safetensors: gone"),
        ("in '/home/ada/tmpab12/in.png', line 3", "in '…/in.png', line 3"),
        ("C:\\Users\\ada\\x.png", "…/x.png"),
        ("key sk-abcdefghijklmnopqrstuvwx is wrong", "key <key> is wrong"),
        ("Authorization: Bearer abcdefghijklmnop1234", "Authorization: <key>"),
        ("key 01234567-89ab-cdef-0123-456789abcdef:0123456789abcdef0123456789abcdef no",
         "key <key> no"),
        ("xai-abcdefghijklmnopqrst, ghp_abcdefghijklmnopqrstuv", "<key>, <key>"),
        ('{"api_key": "abcdef0123456789"}', '{"<key>"}'),
        ("file:///home/ada/x.png is gone", "…/x.png is gone"),
        ("a/b, 1/2 and/or https://h.test/tmp/x.png", "a/b, 1/2 and/or https://h.test/tmp/x.png"),
    ],
)  # fmt: skip
def test_reports_lose_secrets_and_paths(before: str, after: str) -> None:
    cleaner = Cleaner()
    assert cleaner.report(before) == after
    assert cleaner.cleaned == (before != after)
    assert cleaner.report(after) == after, "cleaning twice changes nothing"


def test_what_was_asked_and_answered_keeps_paths_but_no_secret() -> None:
    cleaner = Cleaner()
    assert cleaner.said("Paint /home/ada on the sign.") == "Paint /home/ada on the sign."
    assert cleaner.said("hf_abcdefghijklmnopqrst") == "<key>"
    assert cleaner.said(None) is None
    assert cleaner.data({"a": ["/home/ada/x", {"/home/ada/y": 1}], "b": 2.5, "c": None}) == {
        "a": ["…/x", {"…/y": 1}], "b": 2.5, "c": None,
    }  # fmt: skip


def test_editors_called_by_a_path_are_told() -> None:
    assert holds_path("folder:/home/ada/pictures")
    assert holds_path("local:/data/flux")
    assert not holds_path("openai:gpt-image-2,quality=high")
    assert not holds_path("https://host.test/edit")


def test_no_secret_reaches_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, path = "very-secret-value-123", "/home/ada/private/x.png"
    monkeypatch.setenv("SHOP_API_KEY", secret)
    signed = "https://h.test/f.png?X-Goog-Signature=feed"
    call = Call(
        parameters={"image": signed, "deep": [{"path": path}]}, reasoning=f"I used {secret}.",
        session={"url": signed}, task={"poll": signed}, request_id=secret,
        effective_prompt=f"{secret}!", caveats=(path,), usage={secret: 1}, model=path,
    )  # fmt: skip
    more = {"call": call, "detail": f"{secret} at {path}", "prompt": f"Use {secret}."}
    walk = Walk(editor="folder:/home/ada/private", first=png(0))
    walk.steps = [Made(1, "failed", None, more)]
    run = make_run(tmp_path / "run", [walk])
    store = RunStore.open(run)
    (chain,) = store.chains()
    store.add_scores(rows_frame([(chain.key.id, 1, "m", "1", "none", "all", None, path)]))  # type: ignore[list-item]
    result = export(run, tmp_path / "out", form="both")
    assert result.cleaned == 11
    assert any("folder:/home/ada/private" in note for note in result.notes)
    for file in (tmp_path / "out").rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        for word in (secret, "X-Goog-Signature", "private/x.png", str(tmp_path)):
            assert word.encode() not in data, (file, word)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "From 11 texts a secret" in card
    import_run(tmp_path / "out", tmp_path / "back")
    (back,) = RunStore.open(tmp_path / "back").chains()
    assert back.steps[0].detail == "<SHOP_API_KEY> at …/x.png"


def test_the_card_counts_and_names_everything(tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(odd_run(tmp_path / "run"), out, name="Odd set", licence="CC-BY-4.0")
    card = (out / "README.md").read_text()
    front, _, body = card.removeprefix("---\n").partition("\n---\n")
    assert "license: cc-by-4.0" in front
    assert 'pretty_name: "Odd set"' in front
    assert "size_categories:\n- n<1K" in front
    assert body.startswith("\n# Odd set\n")
    assert "3 chains of 3 editors over 2 source pictures, 3 frames made" in body
    assert "| ref:odd | 1 | model-7 (1) | 1 | 2 | refused 1 | $0.25 |" in body
    assert "| ref:broken | 1 | – | 1 | 1 | malformed 1 | – |" in body
    assert "edited 3, malformed 1, missing 1, refused 1, reported 1" in body
    assert "| cloth | drawn by our code | a \\| licence, of its own | Ada |" in body
    assert "Sources \\| of &lt;all> sorts" in body
    assert "| copy@1 | replicate | 1 | Copy the picture. |" in body
    assert "call.session" in body
    assert "`score:psnr@1:home:all`" in body
    assert "year = {2026}" in body
    assert str(tmp_path) not in card


def test_a_licence_the_hub_does_not_know_is_named(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    export(run, tmp_path / "own", licence="House rules 2")
    text = (tmp_path / "own" / "README.md").read_text()
    assert 'license: other\nlicense_name: "House rules 2"' in text
    export(run, tmp_path / "none")
    text = (tmp_path / "none" / "README.md").read_text()
    assert "license: unknown" in text
    assert "No licence was given" in text


def test_a_licence_is_held_against_those_of_the_sources(tmp_path: Path) -> None:
    run = odd_run(tmp_path / "run")
    notes = export(run, tmp_path / "own", licence="cc-by-4.0").notes
    assert any("(a | licence, of its own): look whether" in note for note in notes), notes
    assert not any("look whether" in note for note in export(run, tmp_path / "none").notes)


def test_a_card_says_of_imported_pictures_only_what_is_known(tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for step in range(3):
        (pictures / f"fog_step_{step}.png").write_bytes(png(step))
    import_run(pictures, tmp_path / "run")
    export(tmp_path / "run", tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "The pictures were made elsewhere and imported." in card
    assert "between the steps is not known" in card
    assert "Nothing was resized" not in card
    export(odd_run(tmp_path / "walked"), tmp_path / "other")
    assert "Nothing was resized" in (tmp_path / "other" / "README.md").read_text()
