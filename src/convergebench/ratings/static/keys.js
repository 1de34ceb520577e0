// The keyboard: everything a hand on the mouse or the screen can do.

const SHIFTS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const WRITES = "textarea, input:not([type=radio]):not([type=range])";
const PRESSES = "button, a, summary";

/** Listen to keys. `app` gives page, lightbox, pane, submit(), help(), compare(kind). */
export function listenToKeys(app) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.metaKey || event.isComposing) return;
    const page = app.page;
    const modal = document.querySelector("dialog[open]");
    if (!page || (modal && modal.id !== "lightbox")) return;
    if (event.target.matches(WRITES)) {
      if (event.key === "Enter" && event.ctrlKey) take(event, app.submit);
      return;
    }
    if (event.ctrlKey) return;
    const done = looking(event, app) || marking(event, app, Boolean(modal));
    if (done) event.preventDefault();
  });
  document.addEventListener("keyup", (event) => {
    if ("iIrR".includes(event.key) && event.key.length === 1) app.compare(null);
  });
  addEventListener("blur", () => app.compare(null));
}

function take(event, action) {
  event.preventDefault();
  action();
}

/** Keys that only look: zoom, move, compare, whole screen, help. */
function looking(event, app) {
  const { page, lightbox, pane } = app;
  if (event.key === "?") app.help();
  else if (event.key === "+" || event.key === "=") pane.step(1);
  else if (event.key === "-" || event.key === "−") pane.step(-1);
  else if (event.key === "z" || event.key === "Z") pane.view.reset();
  else if (event.shiftKey && SHIFTS[event.key]) {
    const [x, y] = SHIFTS[event.key];
    pane.move(x * pane.fit.w * 0.15, y * pane.fit.h * 0.15);
  } else if (event.key === "i" || event.key === "I") app.compare("input");
  else if (event.key === "r" || event.key === "R") app.compare("reference");
  else if (event.key === "f" || event.key === "F") {
    if (lightbox.isOpen) lightbox.close();
    else lightbox.open(page, nearest(page));
  } else return false;
  return true;
}

/** The picture to open: that of the card with the focus, else of the next mark. */
function nearest(page) {
  const card = document.activeElement?.closest?.(".card");
  const cards = [...page.root.querySelectorAll(".card")];
  if (card) return cards.indexOf(card);
  const slot = page.current?.[0];
  const found = page.pictures.findIndex((picture) => picture.slot?.id === slot);
  return found >= 0 ? found : page.pictures.findIndex((picture) => picture.slot);
}

/** Keys that mark, go from mark to mark, or send. */
function marking(event, app, boxed) {
  const { page, lightbox } = app;
  const { design } = page.study;
  if (event.key === "Enter") {
    if (boxed || event.target.matches(PRESSES)) return false;
    if (!event.repeat) app.submit();
    return true;
  }
  if (boxed && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    lightbox.turn(event.key === "ArrowLeft" ? -1 : 1);
    return true;
  }
  if (page.marks.locked) return false;
  if (design === "pairs") return choosing(event, page);
  const place = boxed ? lightbox.current : page.current;
  if (place && design === "labels" && /^[yn]$/i.test(event.key)) {
    page.marks.set(place, event.key.toLowerCase() === "y");
    if (!boxed) page.advance(place);
    return true;
  }
  if (place && design !== "labels" && /^[0-9]$/.test(event.key) && !event.repeat) {
    if (page.marks.set(place, Number(event.key)) && !boxed) page.advance(place);
    return true;
  }
  if (!boxed && (event.key === "ArrowUp" || event.key === "ArrowDown") && event.target.type !== "range") {
    page.step(event.key === "ArrowDown" ? 1 : -1);
    return true;
  }
  return false;
}

function choosing(event, page) {
  const [a, b] = page.marks.slots;
  const keys = { ArrowLeft: a, 1: a, ArrowRight: b, 2: b };
  if (page.marks.ties) {
    keys[0] = "tie";
    if (!event.target.matches(`${PRESSES}, input`)) keys[" "] = "tie";
  }
  const value = keys[event.key];
  return value !== undefined && page.marks.set(["choice"], value);
}
