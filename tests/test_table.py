from __future__ import annotations

from rich.console import Console

from convergebench.table import Table, fitting

TABLE = Table(
    "A [title] <b>",
    ("name", "count", "share"),
    [("a<script>", 12345, 0.123456), ("[red]b", None, 2.0)],
    ["a note"],
)


def test_plain_text_is_aligned() -> None:
    assert str(TABLE).splitlines() == [
        "A [title] <b>",
        "name        count   share",
        "─────────  ──────  ──────",
        "a<script>  12,345  0.1235",
        "[red]b          –       2",
        "a note",
    ]


def test_markup_from_outside_is_shown_not_obeyed() -> None:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(TABLE)
        console.print(TABLE, markup=False)
    text = captured.get()
    assert "[bold]" not in text
    for part in ("A [title] <b>", "[red]b", "a<script>", "12,345", "a note"):
        assert part in text


def test_html_is_escaped() -> None:
    page = TABLE._repr_html_()
    assert "a&lt;script&gt;" in page
    assert "<script>" not in page
    assert page.count("<tr>") == 3


def test_records() -> None:
    assert TABLE.records()[1] == {"name": "[red]b", "count": None, "share": 2.0}


def test_an_empty_table_is_its_title() -> None:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(Table("nothing", ("a", "b"), []))
    assert captured.get() == "nothing\n"


WIDE = Table(
    "A title that is rather long for so narrow a terminal, is it not?",
    ("editor", "calls to make", "state"),
    [
        ("gemini:gemini-nano-banana-2.1", 560, "lacks a key (GOOGLE_API_KEY or GEMINI_API_KEY)"),
        ("ref:jpeg", 5, "ready"),
    ],
    ["A note that is also too long for the terminal that it is shown in."],
)


def test_a_wide_table_is_broken_into_lines_that_fit() -> None:
    with fitting(50):
        lines = str(WIDE).splitlines()
    assert max(map(len, lines)) <= 50
    assert lines[2:] == [
        "editor                calls  state",
        "                         to",
        "                       make",
        "────────────────────  ─────  ─────────────────────",
        "gemini:gemini-nano-     560  lacks a key",
        "banana-2.1                   (GOOGLE_API_KEY or",
        "                             GEMINI_API_KEY)",
        "ref:jpeg                  5  ready",
        "A note that is also too long for the terminal that",
        "it is shown in.",
    ]
    assert max(map(len, str(WIDE).splitlines())) > 50, "only while asked to"


def test_numbers_are_never_broken() -> None:
    table = Table("t", ("a", "b"), [("x" * 40, "$21.45 ($19.76 to $54.19)")])
    with fitting(20):
        assert "$21.45 ($19.76 to $54.19)" in str(table)
