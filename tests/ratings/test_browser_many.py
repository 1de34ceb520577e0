"""Twenty people at once, in a real browser, on a server that is killed again and again."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from convergebench.ratings.study import open_study
from tests.ratings.browser_support import DESKTOP, Server, serving, watched
from tests.ratings.made import small_study, tokens
from tests.reporter.conftest import browser as browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]
PEOPLE = 20
IMAGES = 20
METHODS = 5
KILLS = 5

# A person: agrees, starts, tries again when told to, marks every scale by a click on it, presses
# Next as soon as it can be pressed (twice in a row, as the impatient do), and notes what the page
# saw acknowledged. Lives in the page, survives a reload, and touches only what a hand could touch.
PERSON = """
(() => {
  if (window.top !== window) return;
  const noted = (name) => JSON.parse(sessionStorage.getItem(name) ?? "[]");
  const note = (name, value) =>
    sessionStorage.setItem(name, JSON.stringify([...noted(name), value]));
  document.addEventListener("answered", (event) => {
    const count = document.getElementById("count").textContent; // "7 of 20"
    note("acknowledged", { ...event.detail, page: parseInt(count) });
  });
  const act = () => {
    const screen = document.body?.dataset.screen;
    if (screen === "consent") document.getElementById("agree")?.click();
    else if (screen === "instructions") document.getElementById("start")?.click();
    else if (screen === "trouble") document.querySelector(".choices .main")?.click();
    else if (screen === "item") {
      for (const group of document.querySelectorAll("#stage [role=radiogroup]")) {
        if (group.querySelector("input:checked")) continue;
        const steps = [...group.querySelectorAll(".step")];
        steps[Math.floor(Math.random() * steps.length)].click();
      }
      const next = document.getElementById("next");
      if (!next.disabled) { next.click(); next.click(); }
    }
  };
  setInterval(act, 120);
})();
"""


def progress(page: Page) -> dict[str, Any]:
    """How far a person is, as the page tells."""
    from playwright.sync_api import Error

    try:
        found: dict[str, Any] = page.evaluate(
            """() => ({
              screen: document.body?.dataset.screen,
              acknowledged: JSON.parse(sessionStorage.getItem("acknowledged") ?? "[]"),
              status: document.getElementById("status")?.textContent,
            })"""
        )
    except Error as error:  # the page is being loaded again, or its process has died
        return {"screen": "", "acknowledged": [], "status": "", "error": str(error)}
    return found


def everybody(pages: list[Page]) -> tuple[int, int]:
    """Acknowledged answers, and people who are done."""
    told = [progress(page) for page in pages]
    return (
        sum(len(each["acknowledged"]) for each in told),
        sum(each["screen"] == "done" for each in told),
    )


def killed_while_they_rate(server: Server, pages: list[Page]) -> int:
    """Kill the server in the midst of the work, five times; a reload or two on the way."""
    total, kills = PEOPLE * IMAGES, 0
    trying_again = 0
    lost: Counter[int] = Counter()
    end = time.monotonic() + 600
    while time.monotonic() < end:
        acknowledged, done = everybody(pages)
        if done == len(pages):
            assert kills == KILLS, f"all was over after {kills} kills"
            return trying_again
        if kills < KILLS and acknowledged > total * (kills + 0.5) / (KILLS + 1):
            server.kill()
            kills += 1
            time.sleep(0.7)
            told = [progress(page)["status"] for page in pages]
            trying_again += sum("Not saved yet, trying again" in text for text in told)
            server.start()
            pages[kills].reload()
        for number, page in enumerate(pages):
            # Whose page was still loading its scripts at a kill sees it wait, and loads it again.
            waits = progress(page)["screen"] in ("", "wait", None)
            lost[number] = lost[number] + 1 if waits else 0
            if lost[number] >= 25:
                page.reload()
                lost[number] = 0
        time.sleep(0.2)
    pytest.fail(f"not done in time: {everybody(pages)}, {[progress(p) for p in pages]}")


def joined(browser: Browser, server: Server, complaints: list[str]) -> list[BrowserContext]:
    """All participants with their links, each in a profile of their own."""
    contexts = []
    for token in tokens(server.study).values():
        context = browser.new_context(**DESKTOP)
        context.add_init_script(PERSON)
        page = watched(context, complaints)
        page.goto(f"{server.address}/p/{token}", wait_until="commit")
        contexts.append(context)
    return contexts


def test_twenty_people_lose_nothing_while_the_server_is_killed_five_times(
    browser: Browser, tmp_path: Path
) -> None:
    study = small_study(
        tmp_path / "s", images=IMAGES, size=64, participants=PEOPLE, practice=0, seed=5
    )
    complaints: list[str] = []
    with serving(study) as server:
        contexts = joined(browser, server, complaints)
        pages = [context.pages[0] for context in contexts]
        trying_again = killed_while_they_rate(server, pages)
        seen = {
            rater: progress(page)["acknowledged"]
            for rater, page in zip(tokens(study), pages, strict=True)
        }
        server.kill()  # what is not on the disk now is lost
        server.start()
        rows = server.export()
        for context in contexts:
            context.close()
    assert not complaints
    assert trying_again  # the page told somebody that an answer was not saved yet

    record = open_study(study)
    found = Counter((row["rater"], row["image"], row["method"]) for row in rows)
    assert len(rows) == PEOPLE * IMAGES * METHODS
    assert set(found.values()) == {1}  # none twice

    kept: dict[str, dict[int, dict[str, float]]] = {}
    for row in rows:
        by_order = kept.setdefault(row["rater"], {})
        by_order.setdefault(int(row["order"]), {})[row["method"]] = float(row["value"])
    for participant in record.participants:
        stored = [kept[participant.id][order] for order in sorted(kept[participant.id])]
        for answer in seen[participant.id]:
            slots = participant.items[answer["page"] - 1].slots
            told = {
                slot: answer["values"][letter] for letter, slot in zip("abcde", slots, strict=True)
            }
            assert told == stored[answer["page"] - 1], (participant.id, answer)
    pages_seen = Counter((rater, answer["page"]) for rater, told in seen.items() for answer in told)
    assert set(pages_seen.values()) == {1}
    # Who reloads while an answer is on its way may never see it acknowledged; nobody else.
    assert PEOPLE * IMAGES - KILLS <= len(pages_seen) <= PEOPLE * IMAGES
