// Only served by `convergebench view`: shows the report again when there is a newer one.
(() => {
  "use strict";
  const QUIET = 3000; // milliseconds without a hand on the page before it may change under it
  const shown = Number(document.currentScript.dataset.version);
  let newest = shown;
  let touched = 0;
  let timer = 0;

  const pill = document.createElement("button");
  pill.type = "button";
  pill.id = "live";
  pill.hidden = true;
  pill.setAttribute("aria-live", "polite");
  pill.style.cssText =
    "position:fixed;right:1rem;bottom:1rem;z-index:2147483647;padding:.5rem .9rem;border-radius:2rem;" +
    "border:1px solid #8886;background:#1f6feb;color:#fff;font:inherit;cursor:pointer;box-shadow:0 2px 8px #0004";
  document.body.append(pill);
  pill.addEventListener("click", () => again());

  const say = (text) => {
    pill.textContent = text;
    pill.hidden = !text;
    // Beside an open dialog nothing can be seen or clicked.
    const place = document.querySelector("dialog[open]") ?? document.body;
    if (pill.parentNode !== place) place.append(pill);
  };
  document.addEventListener("close", () => document.body.append(pill), true);

  // -- what was chosen stays chosen: kept for the next page, by name, because places may move ------

  const kept = `convergebench-live ${location.pathname}`;
  const words = (element) => element?.textContent.trim() ?? "";
  const all = (selector) => [...document.querySelectorAll(selector)];
  const sorted = "table.sortable th[aria-sort]";
  const nameOf = (fold) => fold.id || words(fold.querySelector("summary")).replace(/\d+/g, "#");

  function state() {
    return {
      y: scrollY,
      pressed: all(".legend [data-editor][aria-pressed=true]").map((key) => key.dataset.editor),
      tabs: all("[role=tab][aria-selected=true]").map(words),
      selects: all("select[id]").map((one) => [one.id, words(one.selectedOptions[0])]),
      sorts: all(sorted).map((head) => [
        all("table.sortable").indexOf(head.closest("table")),
        words(head),
        head.getAttribute("aria-sort"),
      ]),
      folds: all("details").map((fold) => [nameOf(fold), fold.open]),
    };
  }

  function choose(old) {
    for (const [name, open] of old.folds) {
      for (const fold of all("details")) if (nameOf(fold) === name) fold.open = open;
    }
    for (const tab of all("[role=tab]")) if (old.tabs.includes(words(tab))) tab.click();
    for (const [id, text] of old.selects) {
      const one = document.getElementById(id);
      const option = [...(one?.options ?? [])].find((each) => words(each) === text);
      if (!option || option.selected) continue;
      option.selected = true;
      one.dispatchEvent(new Event("change", { bubbles: true }));
    }
    for (const key of all(".legend [data-editor]")) {
      const pressed = key.getAttribute("aria-pressed") === "true";
      if (pressed !== old.pressed.includes(key.dataset.editor)) key.click();
    }
    for (const [place, text, way] of old.sorts) {
      const heads = [...(all("table.sortable")[place]?.querySelectorAll("th") ?? [])];
      const head = heads.find((each) => words(each) === text);
      for (let i = 0; i < 2 && head && head.getAttribute("aria-sort") !== way; i++) {
        head.querySelector(".sorter")?.click();
      }
    }
    scrollTo({ top: old.y, behavior: "instant" });
  }

  function again() {
    try {
      if (shown) sessionStorage.setItem(kept, JSON.stringify(state()));
    } catch (error) {
      console.warn(error); // a page without a memory is shown from its start
    }
    location.reload();
  }

  // Not before the page's own scripts have run: they are deferred, this one is not.
  addEventListener("load", () => {
    let old = null;
    try {
      old = JSON.parse(sessionStorage.getItem(kept));
      sessionStorage.removeItem(kept);
    } catch (error) {
      console.warn(error);
    }
    if (old) choose(old);
  });

  // -- when -----------------------------------------------------------------------------------------

  // A picture that is being looked at is not taken away: the page waits for the hand.
  const busy = () =>
    document.hidden ||
    Date.now() - touched < QUIET ||
    document.querySelector("dialog[open]") !== null;

  function settle() {
    clearTimeout(timer);
    if (newest === shown) return;
    if (shown === 0 || !busy()) return again();
    say("New frames: show them");
    timer = setTimeout(settle, 1000);
  }

  for (const event of ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"]) {
    addEventListener(event, () => (touched = Date.now()), { passive: true, capture: true });
  }
  const stream = new EventSource("/events");
  stream.addEventListener("message", (message) => {
    const { version, problem } = JSON.parse(message.data);
    if (problem) return say(`Not up to date: ${problem}`);
    newest = version;
    if (newest === shown) say("");
    settle();
  });
  stream.addEventListener("error", () => say("convergebench view has stopped"));
  stream.addEventListener("open", () => say(""));
})();
