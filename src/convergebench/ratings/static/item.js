// One item on the page: its cards, its pictures, its marks.
import { make } from "./dom.js";
import { Pane } from "./view.js";
import { listen } from "./gestures.js";
import { choiceControl, questionControl, scaleControl } from "./controls.js";
import { Marks } from "./marks.js";

export const SHORT = { infidelity: "Infidelity", "over-generation": "Over-generation" };
const MEANING = {
  infidelity: "An object added, a shape distorted, a meaning changed.",
  "over-generation": "Excessive or exaggerated detail.",
};
const BESIDE = ["single", "pairs"]; // designs with large pictures, and what they came from beside them
const GAP = 12; // between cards, as in items.css
const SMALLEST = 230; // pixels; pictures are never made smaller than this to fit the screen
const NARROWEST = 160; // of what stands beside
const USEFUL = 300; // of a picture on a page that scrolls anyway, and for thumbs
const NARROW = 736; // below it, cards are stacked (as in items.css)

function enlargeSign() {
  const sign = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [key, value] of [["width", 18], ["height", 18], ["viewBox", "0 0 18 18"], ["aria-hidden", "true"]]) sign.setAttribute(key, value);
  for (const [key, value] of [["d", "M2 7V2h5M11 2h5v5M16 11v5h-5M7 16H2v-5"], ["fill", "none"], ["stroke", "currentColor"], ["stroke-width", "2"]]) path.setAttribute(key, value);
  sign.append(path);
  return sign;
}

export class ItemPage {
  /** `enlarge(index)` opens the lightbox at one of `pictures`. */
  constructor(study, item, draft, view, enlarge) {
    this.study = study;
    this.item = item;
    this.view = view;
    this.enlarge = enlarge;
    this.marks = new Marks(study, item, draft.values);
    this.ending = new AbortController();
    this.panes = [];
    this.pictures = []; // what the lightbox turns over: {source, name, slot, compare}
    this.root = make("div", { class: `item ${study.design}${BESIDE.includes(study.design) ? " beside" : ""}` });
    this.heading = make("h1", { tabIndex: -1 });
    this.root.append(this.heading);
    this.build(draft.comment ?? "");
    this.arrange = this.arrange.bind(this);
    addEventListener("resize", this.arrange, { signal: this.ending.signal });
    this.marks.addEventListener("change", () => this.frame(), { signal: this.ending.signal });
    this.ready = Promise.all(this.panes.map((pane) => pane.loaded));
  }

  get question() {
    return this.study.questions[0]?.text ?? "";
  }

  build(comment) {
    const { study, item } = this;
    const references = [];
    if (item.input) references.push(this.card(item.input, "Input", "damaged", null));
    if (item.reference) references.push(this.card(item.reference, "Reference", "as it should be", null));
    const methods = item.slots.map((slot) => this.card(slot.image, item.slots.length > 1 ? slot.label : "Picture", "", slot));
    this.given = make("div", { class: "group references" }, ...references);
    this.methods = make("div", { class: "group methods" }, ...methods);
    this.root.classList.toggle("alone", !references.length);
    this.root.classList.toggle("flat", item.width > item.height * 1.2);
    this.grid = make("div", { class: "grid" }, this.given, this.methods);
    this.note = make("div", { class: "note" });
    if (item.kind === "practice") this.note.append(make("p", { class: "tag" }, "Practice, does not count"));
    if (study.design === "labels") this.note.append(this.meanings());
    else if (study.design !== "pairs" && this.question) this.note.append(make("p", {}, this.question));
    if (study.design === "absolute" || study.design === "single") this.note.append(this.legend());
    if (this.note.children.length) this.root.append(this.note);
    this.root.append(this.grid);
    if (study.design === "pairs") this.root.append(choiceControl(this.marks, item, this.question, this.ending.signal));
    if (study.design === "labels") {
      this.comment = make("textarea", { id: "comment", maxLength: 1000, rows: 2, value: comment });
      this.root.append(make("div", { class: "comment" }, make("label", { for: "comment" }, "Comment (optional)"), this.comment));
    }
    this.frame();
  }

  legend() {
    const { low, high, low_label: worst, high_label: best } = this.study.scale;
    const end = (number, name) => make("span", {}, make("b", {}, String(number)), name ? ` ${name}` : "");
    return make("p", { class: "legend" }, end(low, worst), " … ", end(high, best));
  }

  meanings() {
    const rows = this.study.questions.map(({ id, text }) => make("div", {}, make("dt", {}, `${SHORT[id] ?? id}: `), make("dd", {}, text, make("span", { class: "means" }, MEANING[id] ? ` ${MEANING[id]}` : ""))));
    return make("dl", { class: "meanings" }, ...rows);
  }

  card(source, name, role, slot) {
    const spoken = slot && name !== "Picture" ? `Picture ${name}` : name;
    const pane = new Pane(this.view, this.item, source, spoken, { compare: Boolean(slot) });
    const index = this.pictures.length;
    const against = slot ? (this.item.reference ? "reference" : this.item.input ? "input" : null) : null;
    this.panes.push(pane);
    this.pictures.push({ source, name: spoken, slot, against });
    listen(pane, { hold: (on) => pane.compare(on ? against : null) });
    const large = make("button", { type: "button", class: "large", "aria-label": `${spoken} on the whole screen`, title: "Whole screen (F)", onclick: () => this.enlarge(index) }, enlargeSign());
    const head = make("div", { class: "card-head" }, make("p", { class: "name" }, name), make("p", { class: "role" }, role), large);
    const card = make("section", { class: slot ? "card method" : "card given", "aria-label": spoken }, head, pane.root);
    if (slot) {
      card.dataset.slot = slot.id;
      card.append(...this.controls(slot, spoken, this.ending.signal));
    }
    return card;
  }

  /** The controls of one picture; the lightbox asks for them too. */
  controls(slot, spoken, signal) {
    if (this.study.design === "pairs") return [];
    if (this.study.design === "labels") {
      return this.study.questions.map(({ id }) => questionControl(this.marks, [slot.id, id], spoken, SHORT[id] ?? id, signal));
    }
    return [scaleControl(this.marks, [slot.id], spoken, signal)];
  }

  /** As large as they can be with all of them in sight, if that is large enough to see anything. */
  arrange() {
    if (innerWidth < NARROW || !this.root.isConnected) return;
    const shape = (this.item.width || 1) / (this.item.height || 1);
    const wide = this.root.clientWidth - 2 * GAP;
    const bars = document.querySelector(".top").offsetHeight + document.querySelector(".bar").offsetHeight;
    const tall = innerHeight - bars - (this.root.offsetHeight - this.grid.offsetHeight) - 2;
    // What a card has besides its picture.
    const first = this.methods.firstElementChild;
    const used = [...first.children].filter((part) => !part.matches(".pane")).map((part) => part.offsetHeight);
    const extra = used.reduce((sum, part) => sum + part, 0);
    const size = (count, columns, room) => {
      const rows = Math.ceil(count / columns);
      return Math.min((room - GAP * (columns - 1)) / columns, ((tall - GAP * (rows - 1)) / rows - extra) * shape);
    };
    const best = (count, room) => {
      const widths = Array.from({ length: count }, (_, index) => size(count, index + 1, room));
      return widths.indexOf(Math.max(...widths)) + 1;
    };
    const { length: few } = this.methods.children;
    const set = (name, value) => this.grid.style.setProperty(name, value);
    if (BESIDE.includes(this.study.design)) {
      const { length: given } = this.given.children;
      const beside = given ? Math.max(NARROWEST, Math.min(wide * 0.24, ((tall - GAP) / 2 - 40) * shape)) : 0;
      const room = wide - (beside ? beside + GAP : 0);
      const columns = best(few, room);
      set("--columns", columns);
      set("--picture", `${Math.floor(Math.max(SMALLEST, size(few, columns, room)))}px`);
      set("--beside", `${Math.floor(beside)}px`);
      set("--low", `${Math.floor((tall - GAP) / 2 - 40)}px`);
      return;
    }
    const count = few + this.given.children.length;
    const smallest = matchMedia("(pointer: coarse)").matches ? USEFUL : SMALLEST;
    let columns = best(count, wide);
    let picture = size(count, columns, wide);
    if (picture < smallest) { // too small: the page scrolls, with pictures of a useful size
      columns = Math.min(count, Math.max(1, Math.floor((wide + GAP) / (USEFUL + GAP))));
      picture = Math.max(SMALLEST, Math.min((wide - GAP * (columns - 1)) / columns, (tall - extra) * shape));
    }
    set("--columns", columns);
    set("--picture", `${Math.floor(picture)}px`);
  }

  /** The control that a key press would mark: the one with the focus, else the first unmarked one. */
  get current() {
    const focused = document.activeElement?.closest?.("[data-place]");
    if (focused && this.root.contains(focused)) return focused.dataset.place.split(" ");
    const card = document.activeElement?.closest?.(".card[data-slot]");
    const inCard = card && this.marks.places.filter(([slot]) => slot === card.dataset.slot);
    if (inCard?.length) return inCard.find((place) => this.marks.get(place) === undefined) ?? inCard[0];
    return this.marks.missing[0] ?? null;
  }

  /** Frames what comes next while the focus is elsewhere. */
  frame() {
    const next = this.marks.missing[0];
    for (const card of this.root.querySelectorAll(".card[data-slot]")) {
      const here = next && next[0] === card.dataset.slot;
      card.classList.toggle("framed", Boolean(here) && !this.root.contains(document.activeElement?.closest?.("[data-place]") ?? null));
      card.classList.toggle("chosen", this.study.design === "pairs" && this.marks.get(["choice"]) === card.dataset.slot);
    }
  }

  /** Puts the focus on a control, and scrolls its card into view. */
  focus(place) {
    const control = this.root.querySelector(`[data-place="${CSS.escape(place.join(" "))}"]`);
    const input = control?.querySelector("input:checked") ?? control?.querySelector("input");
    input?.focus({ preventScroll: true });
    control?.closest(".card, .verdict")?.scrollIntoView({ block: "nearest" });
    this.frame();
  }

  /** After a mark by key: on to the next unmarked one, else stay. */
  advance(place) {
    const places = this.marks.places;
    const at = places.findIndex((each) => each.join() === place.join());
    const rest = [...places.slice(at + 1), ...places.slice(0, at)];
    this.focus(rest.find((each) => this.marks.get(each) === undefined) ?? place);
  }

  /** One place up or down, as Tab does. */
  step(direction) {
    const places = this.marks.places;
    const now = this.current?.join();
    const at = places.findIndex((place) => place.join() === now);
    const inside = this.root.contains(document.activeElement?.closest?.("[data-place]") ?? null);
    const to = inside ? at + direction : Math.max(at, 0);
    if (places[to]) this.focus(places[to]);
  }

  compare(kind) {
    for (const pane of this.panes) pane.compare(kind);
  }

  close() {
    this.ending.abort();
    for (const pane of this.panes) pane.close();
  }
}
