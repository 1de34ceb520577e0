"""Takes the pictures of the rating app in the docs, with a real browser and a real server.

python docs/screenshot_ratings.py WORK docs/images

WORK is a folder for a run of `restoration-v1` (drawn pictures, classical methods) and a study made
of it; both are made if they are not there. `rating-desktop.png` is a page of the study half
answered, `rating-phone.png` one on a phone, `rating-admin.png` the organiser's page
after some made-up participants have answered.
"""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from convergebench.ratings.creating import create
from convergebench.ratings.study import open_study
from convergebench.runner import run

BROWSER = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SOURCES = (
    "aerial-view-defocus",
    "large-face-defocus",
    "animal-fur-digital-zoom",
    "architecture-defocus",
    "leaves-defocus",
)
METHODS = {
    "ref:restorer": 3.6,
    "classic:unsharp": 2.7,
    "classic:wiener": 3.0,
    "classic:nlm": 1.6,
    "classic:bicubic": 2.1,
}
"""What the made-up participants think of the methods."""
PEOPLE = 8
SIZE = 768


def made(work: Path) -> Path:
    """A new study of a run that is made once."""
    spec = {
        "suite": "restoration-v1", "editors": list(METHODS), "sources": list(SOURCES),
        "cycles": ["restore", "lf1"], "size": SIZE, "rounds": 1, "controls": False,
    }  # fmt: skip
    run(work / "restored", spec)
    shutil.rmtree(work / "study", ignore_errors=True)
    create(
        work / "restored", work / "study", "absolute", participants=PEOPLE, practice=0,
        attention=1, seed=4, title="Which repair is best?", code="each",
    )  # fmt: skip
    return work / "study"


def asked(address: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One request to the server."""
    origin = "/".join(address.split("/")[:3])
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Content-Type": "application/json", "Origin": origin}
    with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as reply:
        told: dict[str, Any] = json.load(reply)
    return told


def answered(study: Path, address: str) -> None:
    """Made-up answers: everybody but the first two, each as far as they got."""
    chance = random.Random(7)
    with (study / "links.csv").open(newline="") as file:
        tokens = [row["token"] for row in csv.DictReader(file)]
    record = open_study(study)
    for place, token in enumerate(tokens[2:], start=2):
        link = f"{address}/p/{token}"
        asked(f"{link}/consent", {"agree": True})
        for item in record.participants[place].items[: 6 if place > 3 else 2 * place - 3]:
            liked = {slot: wanted(slot, chance) for slot in item.slots}
            values = {
                letter: liked[slot] for letter, slot in zip("abcdefg", item.slots, strict=False)
            }
            now = asked(f"{link}/state")["item"]["id"]
            taken = int(chance.gauss(21_000, 6_000))
            asked(f"{link}/answers", {"item": now, "values": values, "milliseconds": taken})


def wanted(slot: str, chance: random.Random) -> int:
    """What somebody gives a method's picture."""
    if slot.startswith("("):
        return {"(reference)": 5, "(broken)": 0}.get(slot, 1)
    mean = next(value for name, value in METHODS.items() if slot.startswith(name))
    return min(5, max(0, round(chance.gauss(mean, 0.8))))


def begun(browser: Browser, link: str, **options: Any) -> Page:
    """A participant at the first page, with its pictures loaded."""
    page = browser.new_context(**options).new_page()
    page.goto(link)
    page.click("#agree")
    page.click("#start")
    page.wait_for_selector(".item")
    while page.locator(".pane.loading").count():
        page.wait_for_timeout(100)
    return page


def taken(browser: Browser, study: Path, address: str, out: Path) -> None:
    """The three pictures."""
    with (study / "links.csv").open(newline="") as file:
        first, second = [f"{address}/p/{row['token']}" for row in csv.DictReader(file)][:2]
    page = begun(browser, first, viewport={"width": 1280, "height": 840})
    for key in "423":
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    page.screenshot(path=out / "rating-desktop.png")

    page = begun(
        browser, second, viewport={"width": 390, "height": 844}, device_scale_factor=2,
        has_touch=True, is_mobile=True,
    )  # fmt: skip
    page.locator("[data-slot=a] .step").nth(4).tap()
    page.evaluate("document.querySelector('[data-slot=a]').scrollIntoView({block: 'end'})")
    page.evaluate("scrollBy(0, 140)")
    page.wait_for_timeout(300)
    page.screenshot(path=out / "rating-phone.png")

    page = browser.new_context(viewport={"width": 1200, "height": 1180}).new_page()
    page.goto(f"{address}/admin")
    page.fill("#secret", (study / "admin.txt").read_text().split()[0])
    page.keyboard.press("Enter")
    page.wait_for_selector("#board:not([hidden]) .means")
    page.screenshot(path=out / "rating-admin.png", full_page=True)


def main() -> None:
    """Make the study, serve it, answer some of it, take the pictures, keep few colours."""
    work, out = Path(sys.argv[1]), Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    study = made(work)
    command = [sys.executable, "-m", "convergebench", "rate", "serve", str(study), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        found = re.search(r"http://127\.0\.0\.1:\d+", server.stderr.readline())
        try:
            if found is None:
                raise SystemExit(f"the server did not start: {server.stderr.read()}")
            answered(study, found[0])
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
                taken(browser, study, found[0], out)
                browser.close()
        finally:
            server.terminate()
    for name in ("rating-desktop.png", "rating-phone.png", "rating-admin.png"):
        image = Image.open(out / name).convert("RGB")
        image.quantize(256, method=Image.Quantize.MEDIANCUT).save(out / name, optimize=True)


if __name__ == "__main__":
    main()
