// One picture on the whole screen, turned over by swipe or arrow, looking at the same place.
import { byId, make } from "./dom.js";
import { listen } from "./gestures.js";
import { Pane } from "./view.js";

export class Lightbox {
  constructor(view) {
    this.view = view;
    this.dialog = byId("lightbox");
    byId("lightbox-close").addEventListener("click", () => this.dialog.close());
    byId("lightbox-previous").addEventListener("click", () => this.turn(-1));
    byId("lightbox-next").addEventListener("click", () => this.turn(1));
    this.dialog.addEventListener("close", () => this.empty());
  }

  get isOpen() {
    return this.dialog.open;
  }

  open(page, index) {
    this.page = page;
    if (!this.dialog.open) this.dialog.showModal();
    this.show(index);
  }

  /** The place that a key press would mark while the lightbox is open. */
  get current() {
    const slot = this.page.pictures[this.index].slot;
    if (!slot) return null;
    const focused = document.activeElement?.closest?.("[data-place]");
    if (focused) return focused.dataset.place.split(" ");
    const own = this.page.marks.places.filter(([first]) => first === slot.id);
    return own.find((place) => this.page.marks.get(place) === undefined) ?? own[0] ?? null;
  }

  show(index) {
    this.empty();
    const { pictures, item, marks, study } = this.page;
    this.index = (index + pictures.length) % pictures.length;
    const { source, name, slot, against } = pictures[this.index];
    this.ending = new AbortController();
    this.pane = new Pane(this.view, item, source, name, { compare: Boolean(slot) });
    listen(this.pane, {
      hold: (on) => this.pane.compare(on ? against : null),
      swipe: (direction) => this.turn(direction),
    });
    byId("lightbox-picture").replaceChildren(this.pane.root);
    byId("lightbox-name").textContent = `${name} (${this.index + 1} of ${pictures.length})`;
    const controls = slot ? this.page.controls(slot, name, this.ending.signal) : [];
    if (!controls.length) {
      const chosen = study.design === "pairs" && slot && marks.get(["choice"]) === slot.id;
      controls.push(make("p", {}, chosen ? "Your choice" : slot ? "" : "Not rated: for comparison"));
    }
    byId("lightbox-control").replaceChildren(...controls);
    this.pane.draw();
  }

  turn(direction) {
    this.show(this.index + direction);
  }

  empty() {
    this.ending?.abort();
    this.pane?.close();
    this.pane = null;
    byId("lightbox-picture").replaceChildren();
    byId("lightbox-control").replaceChildren();
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }
}
