// Mouse, pen and fingers on a pane: wheel, pinch, double tap, drag, press and hold, swipe.

const HOLD = 280; // milliseconds until a press is a hold
const SLIP = 7; // pixels a still finger may move
const DOUBLE = 320; // milliseconds between two taps
const SWIPE = 50; // pixels of a swipe
const NOTCH = 50; // wheel units of one level

/** Listen to a pane. `hold(on)` shows what to compare with, `swipe(direction)` turns to another. */
export function listen(pane, { hold, swipe = null }) {
  const root = pane.root;
  const down = new Map();
  let timer = 0;
  let held = false;
  let moved = false;
  let pinch = null;
  let tap = { at: -Infinity, x: 0, y: 0 };
  let turned = 0;

  const release = () => {
    clearTimeout(timer);
    if (held) hold(false);
    held = false;
  };
  const pair = () => {
    const [a, b] = [...down.values()];
    return { distance: Math.hypot(a.x - b.x, a.y - b.y) || 1, x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };

  // Where fingers never scroll, the browser shall see no gesture of its own: after a flick it would
  // swallow the next tap.
  if (swipe) root.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  root.addEventListener("contextmenu", (event) => event.preventDefault());
  root.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    root.setPointerCapture(event.pointerId);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY, startX: event.clientX, startY: event.clientY });
    clearTimeout(timer);
    if (down.size === 1) {
      moved = false;
      timer = setTimeout(() => { held = true; hold(true); }, HOLD);
    } else if (down.size === 2) {
      release();
      moved = true;
      pinch = { ...pair(), zoom: pane.view.zoom };
    }
  });
  root.addEventListener("pointermove", (event) => {
    const finger = down.get(event.pointerId);
    if (!finger) return;
    const dx = event.clientX - finger.x;
    const dy = event.clientY - finger.y;
    const far = Math.hypot(event.clientX - finger.startX, event.clientY - finger.startY) > SLIP;
    if (far && !moved && !held) {
      moved = true;
      clearTimeout(timer);
    }
    finger.x = event.clientX;
    finger.y = event.clientY;
    if (pinch && down.size === 2) {
      const now = pair();
      pane.move(now.x - pinch.x, now.y - pinch.y);
      pane.zoomTo((pinch.zoom * now.distance) / pinch.distance, now.x, now.y);
      pinch = { ...pinch, x: now.x, y: now.y };
    } else if (moved && !held && pane.view.zoom > 1) {
      pane.move(dx, dy);
    }
  });
  const up = (event) => {
    const finger = down.get(event.pointerId);
    if (!finger) return;
    down.delete(event.pointerId);
    const wasHeld = held;
    release();
    if (pinch) {
      if (!down.size) pinch = null;
      return;
    }
    if (event.type === "pointercancel" || wasHeld) return;
    const dx = event.clientX - finger.startX;
    const dy = event.clientY - finger.startY;
    if (moved) {
      const swiped = swipe && pane.view.zoom <= 1 && Math.abs(dx) > SWIPE && Math.abs(dx) > Math.abs(dy) * 1.5;
      if (swiped) swipe(dx < 0 ? 1 : -1);
      return;
    }
    const near = Math.hypot(event.clientX - tap.x, event.clientY - tap.y) < 30;
    if (event.timeStamp - tap.at < DOUBLE && near) {
      tap = { at: -Infinity, x: 0, y: 0 };
      pane.toggle(event.clientX, event.clientY);
    } else {
      tap = { at: event.timeStamp, x: event.clientX, y: event.clientY };
    }
  };
  root.addEventListener("pointerup", up);
  root.addEventListener("pointercancel", up);
  root.addEventListener("wheel", (event) => {
    const pinching = event.ctrlKey; // how browsers tell of a pinch on a touch pad
    // A page that is longer than the screen must still scroll where the pictures are whole.
    const long = document.documentElement.scrollHeight > innerHeight + 4 && !root.closest("dialog");
    if (!pinching && long && pane.view.zoom <= 1) return;
    event.preventDefault();
    if (pinching) {
      pane.zoomTo(pane.view.zoom * Math.exp(-event.deltaY / 100), event.clientX, event.clientY);
      return;
    }
    turned += event.deltaMode ? event.deltaY * 30 : event.deltaY;
    if (Math.abs(turned) < NOTCH) return;
    pane.step(-Math.sign(turned), event.clientX, event.clientY);
    turned = 0;
  }, { passive: false });
}
