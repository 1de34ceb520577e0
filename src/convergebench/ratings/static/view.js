// Pictures that zoom and move together: one view, many panes.
import { make } from "./dom.js";

const LEVELS = [0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 16]; // screen pixels per picture pixel
const MOST = 16;
const RETRY = 1500;

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

/** The place all panes look at: its middle in parts of the picture, and how often the whole fits. */
export class View extends EventTarget {
  zoom = 1;
  x = 0.5;
  y = 0.5;

  set(zoom, x, y) {
    this.zoom = zoom;
    this.x = zoom > 1 ? x : 0.5;
    this.y = zoom > 1 ? y : 0.5;
    this.dispatchEvent(new Event("change"));
  }

  reset() {
    this.set(1, 0.5, 0.5);
  }
}

/** One picture of an item, with the input and the reference behind it to be shown in its place. */
export class Pane {
  constructor(view, item, source, name, { compare = true } = {}) {
    this.view = view;
    this.shape = { width: item.width || 1, height: item.height || 1 };
    this.shown = make("p", { class: "shown" });
    this.root = make("div", { class: "pane loading" });
    this.root.style.setProperty("--shape", `${this.shape.width} / ${this.shape.height}`);
    this.image = make("img", { alt: name, draggable: false });
    this.images = [this.image];
    for (const kind of compare ? ["input", "reference"] : []) {
      if (item[kind]) this.images.push(make("img", { class: `over ${kind}`, alt: "", draggable: false, src: item[kind] }));
    }
    this.root.append(...this.images, this.shown);
    this.draw = this.draw.bind(this);
    view.addEventListener("change", this.draw);
    this.watch = new ResizeObserver(this.draw);
    this.watch.observe(this.root);
    this.loaded = this.load(source);
  }

  /** Loads the picture, again and again if need be: nobody shall rate a blank. */
  async load(source) {
    this.image.src = source;
    while (!this.gone) {
      try {
        await this.image.decode();
        this.root.classList.remove("loading", "broken");
        this.draw();
        return;
      } catch {
        this.root.classList.add("broken");
        await new Promise((resolve) => setTimeout(resolve, RETRY));
        this.image.src = source;
        for (const over of this.images.slice(1)) if (!over.naturalWidth) over.src = over.getAttribute("src");
      }
    }
  }

  /** Shows the input or the reference in the picture's place, or (null) the picture. */
  compare(kind) {
    const has = kind && this.root.querySelector(`img.${kind}`);
    this.root.classList.toggle("over-input", Boolean(has) && kind === "input");
    this.root.classList.toggle("over-reference", Boolean(has) && kind === "reference");
    if (has) this.shown.textContent = kind === "input" ? "Input" : "Reference";
  }

  /** Size of the pane and of the whole picture within it, in CSS pixels. */
  get fit() {
    const { clientWidth: w, clientHeight: h } = this.root;
    const scale = Math.min(w / this.shape.width, h / this.shape.height);
    return { w, h, fw: this.shape.width * scale, fh: this.shape.height * scale, scale };
  }

  /** Screen pixels per picture pixel. */
  get ratio() {
    return this.fit.scale * this.view.zoom * devicePixelRatio;
  }

  get most() {
    return Math.max(1, MOST / (this.fit.scale * devicePixelRatio));
  }

  /** Where the picture's corner is, with no gap at an edge that could be filled. */
  corner() {
    const { w, h, fw, fh } = this.fit;
    const along = (pane, whole, middle) => {
      const size = whole * this.view.zoom;
      return size <= pane + 0.5 ? (pane - size) / 2 : clamp(pane / 2 - middle * size, pane - size, 0);
    };
    return { left: along(w, fw, this.view.x), top: along(h, fh, this.view.y) };
  }

  draw() {
    const { w, fw, fh } = this.fit;
    if (!w) return;
    const { left, top } = this.corner();
    const zoom = this.view.zoom;
    for (const image of this.images) {
      image.style.width = `${fw}px`;
      image.style.height = `${fh}px`;
      image.style.transform = `translate(${left}px, ${top}px) scale(${zoom})`;
    }
    // Beyond 100 % people see the picture's pixels, not the browser's smoothing. A whole picture
    // that is only a little enlarged is smoothed: pixels of uneven size would look like a fault of it.
    const ratio = this.ratio;
    this.root.classList.toggle("sharp", ratio > 1.001 && (zoom > 1 || ratio >= 2));
    this.root.classList.toggle("zoomed", zoom > 1);
  }

  /** Zooms all panes so that what is under a point of this one stays there. */
  zoomTo(zoom, clientX, clientY) {
    const { fw, fh, w, h } = this.fit;
    const box = this.root.getBoundingClientRect();
    const px = clientX === undefined ? w / 2 : clientX - box.left;
    const py = clientY === undefined ? h / 2 : clientY - box.top;
    const { left, top } = this.corner();
    const old = this.view.zoom;
    const next = clamp(zoom, 1, this.most);
    const u = (px - left) / (fw * old);
    const v = (py - top) / (fh * old);
    this.look(next, u - (px - w / 2) / (fw * next), v - (py - h / 2) / (fh * next));
  }

  /** Moves all panes by CSS pixels of this one. */
  move(dx, dy) {
    const { fw, fh } = this.fit;
    const zoom = this.view.zoom;
    this.look(zoom, this.view.x - dx / (fw * zoom), this.view.y - dy / (fh * zoom));
  }

  look(zoom, x, y) {
    const { w, h, fw, fh } = this.fit;
    const held = (middle, pane, whole) => {
      const half = pane / 2 / (whole * zoom);
      return half >= 0.5 ? 0.5 : clamp(middle, half, 1 - half);
    };
    this.view.set(zoom, held(x, w, fw), held(y, h, fh));
  }

  /** The next level: whole pixels of the screen per pixel of the picture, so that all look alike. */
  step(direction, clientX, clientY) {
    const whole = this.fit.scale * devicePixelRatio;
    const levels = [whole, ...LEVELS.filter((level) => level > whole * 1.05)];
    const now = this.ratio;
    const next = direction > 0
      ? levels.find((level) => level > now * 1.02)
      : levels.findLast((level) => level < now * 0.98);
    if (next === undefined) return false;
    this.zoomTo(next / whole, clientX, clientY);
    return true;
  }

  /** Between the whole picture and its pixels, as a double tap does. */
  toggle(clientX, clientY) {
    if (this.view.zoom > 1) this.view.reset();
    else {
      const whole = this.fit.scale * devicePixelRatio;
      const level = LEVELS.find((each) => each >= 1 && each >= whole * 1.9) ?? MOST;
      this.zoomTo(level / whole, clientX, clientY);
    }
  }

  close() {
    this.gone = true;
    this.watch.disconnect();
    this.view.removeEventListener("change", this.draw);
  }
}
