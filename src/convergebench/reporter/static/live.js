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
  pill.addEventListener("click", () => location.reload());

  const say = (text) => {
    pill.textContent = text;
    pill.hidden = !text;
  };
  // A picture that is being looked at is not taken away: the page waits for the hand.
  const busy = () =>
    document.hidden ||
    Date.now() - touched < QUIET ||
    document.querySelector("dialog[open], [data-viewer-open]") !== null;

  function settle() {
    clearTimeout(timer);
    if (newest === shown) return;
    if (shown === 0 || !busy()) return location.reload();
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
