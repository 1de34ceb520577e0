"""Takes the README's picture of the report, with a real browser.

python docs/screenshot.py demo-run/report/index.html docs/images/report.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

BROWSER = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Open the page, wait for its charts, keep the top of it."""
    page_file, picture = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        page = browser.new_page(viewport={"width": 1180, "height": 1720})
        page.goto(page_file.as_uri())
        page.wait_for_selector("svg, canvas")
        page.wait_for_timeout(1000)
        page.screenshot(path=picture)
        browser.close()
    image = Image.open(picture).convert("RGB")
    image.quantize(128, method=Image.Quantize.MEDIANCUT).save(picture, optimize=True)


if __name__ == "__main__":
    main()
