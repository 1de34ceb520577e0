// The viewer's pictures: panes that show the same place of home and of each editor's frame.
window.ConvergeBench = window.ConvergeBench || {};
ConvergeBench.panes = (place, changed) => {
  "use strict";
  const MOST = 64; // screen pixels per fitted pixel of the picture
  const PIXELS_FROM = 3; // screen pixels per picture pixel from which these are shown as squares
  const view = { scale: 1, x: 0.5, y: 0.5 }; // the picture's point (x, y) is in the middle
  const panes = new Map();
  let size = [1, 1];

  const file = (frame) => `frames/${frame.file.slice(0, 2)}/${frame.file}`;
  const thumb = (frame) =>
    frame.unreadable ? "" : `thumbs/${frame.file.slice(0, 2)}/${frame.file.split(".")[0]}.webp`;

  function element(tag, css, text) {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function picture(css) {
    const made = element("img", css);
    made.alt = "";
    made.draggable = false;
    made.decoding = "async";
    made.addEventListener("load", () => made.classList.remove("waiting"));
    made.addEventListener("error", () => {
      // Some frames no browser can show (TIFF): the thumbnail is better than nothing.
      const small = made.dataset.thumb;
      if (small && made.getAttribute("src") !== small) made.src = small;
      else made.classList.remove("waiting");
    });
    return made;
  }

  function show(image, frame) {
    const there = Boolean(frame && frame.file);
    image.hidden = !there;
    if (!there) return image.removeAttribute("src");
    if (image.dataset.file === frame.file && image.hasAttribute("src")) return;
    image.dataset.file = frame.file;
    image.dataset.thumb = thumb(frame);
    image.classList.add("waiting");
    image.src = file(frame);
  }

  function made(key) {
    const root = element("figure", "pane");
    const caption = element("figcaption");
    const stage = element("div", "stage");
    const world = element("div", "world");
    const home = picture("home");
    const frame = picture("frame");
    const hole = element("div", "v-hole");
    const flag = element("span", "flag");
    world.append(home, frame);
    stage.append(world, hole, flag);
    root.append(caption, stage);
    root.dataset.pane = key;
    return { root, caption, stage, world, home, frame, hole, flag };
  }

  // Flipped first, then turned, as `Home.view` does it.
  function moved(image, home, source) {
    const turns = (home && home.quarters) || 0;
    const flips = home && home.flip ? (home.flip === "horizontal" ? "scaleX(-1)" : "scaleY(-1)") : "";
    image.style.transform = `translate(-50%, -50%) rotate(${turns * 90}deg) ${flips}`;
    const [width, height] = (source && source.size) || size;
    const [across, down] = turns % 2 ? [height, width] : [width, height];
    image.style.width = `${(100 * width) / across}%`;
    image.style.height = `${(100 * height) / down}%`;
    image.classList.toggle("grey", Boolean(home && home.grey));
  }

  // told: {mode, gain, size, panes: [{key, caption, home: {frame, how}, frame, hole, flags, differs}]}
  function draw(told) {
    size = told.size || [1, 1];
    place.dataset.mode = told.mode;
    place.style.setProperty("--gain", told.gain);
    place.style.setProperty("--across", size[0]);
    place.style.setProperty("--down", size[1]);
    const wanted = new Set(told.panes.map((pane) => pane.key));
    for (const [key, pane] of panes) {
      if (wanted.has(key)) continue;
      pane.root.remove();
      panes.delete(key);
    }
    told.panes.forEach((pane, index) => {
      if (!panes.has(pane.key)) panes.set(pane.key, made(pane.key));
      const mine = panes.get(pane.key);
      if (place.children[index] !== mine.root) place.insertBefore(mine.root, place.children[index] || null);
      mine.caption.replaceChildren(...pane.caption);
      show(mine.home, pane.home && pane.home.frame);
      moved(mine.home, pane.home && pane.home.how, pane.home && pane.home.frame);
      show(mine.frame, pane.frame);
      mine.root.classList.toggle("differs", Boolean(pane.differs));
      mine.root.classList.toggle("empty", Boolean(pane.hole));
      mine.hole.replaceChildren(...(pane.hole || []));
      mine.flag.dataset.home = pane.flags[0];
      mine.flag.dataset.frame = pane.flags[1];
      mine.frame.alt = pane.alt;
      mine.home.alt = pane.flags[0];
    });
    arrange();
  }

  // As many columns as let the pictures be largest.
  function arrange() {
    const count = panes.size;
    const { width, height } = place.getBoundingClientRect();
    const over = 40; // caption and gap
    let best = [0, 1];
    for (let columns = 1; columns <= count; columns++) {
      const room = width / columns - 12;
      const fitted = Math.min(room, ((height / Math.ceil(count / columns) - over) * size[0]) / size[1]);
      if (fitted > best[0] + 1) best = [fitted, columns];
    }
    place.style.setProperty("--columns", best[1]);
    move();
  }

  // -- zoom and pan, the same in all panes ----------------------------------------------------

  const first = () => panes.values().next().value;

  // The stage, and the picture in it when it is fitted.
  function measure(pane) {
    const stage = pane.stage.getBoundingClientRect();
    const fitted = Math.min(stage.width, (stage.height * size[0]) / size[1]) || 1;
    const actual = size[0] / (fitted * devicePixelRatio); // the scale of pixel by pixel
    return { stage, width: fitted, height: (fitted * size[1]) / size[0], actual };
  }

  // No smaller than fitted, or than pixel by pixel where that is smaller still.
  const bounded = (scale, actual) => Math.min(MOST, Math.max(Math.min(1, actual), scale));

  function move() {
    const pane = first();
    if (!pane) return;
    const { stage, width, height, actual } = measure(pane);
    view.scale = bounded(view.scale, actual);
    for (const [axis, extent, room] of [["x", width, stage.width], ["y", height, stage.height]]) {
      const margin = room / (2 * view.scale * extent);
      view[axis] = margin >= 0.5 ? 0.5 : Math.min(1 - margin, Math.max(margin, view[axis]));
    }
    const dense = (view.scale * width * devicePixelRatio) / size[0];
    place.style.setProperty("--zoom", view.scale);
    place.style.setProperty("--x", `${100 * (0.5 - view.scale * view.x)}%`);
    place.style.setProperty("--y", `${100 * (0.5 - view.scale * view.y)}%`);
    place.classList.toggle("zoomed", view.scale > 1);
    place.classList.toggle("pixels", dense >= PIXELS_FROM);
    changed(view.scale === 1 ? "fit" : `${Math.round(100 * dense)} %`, view.scale <= Math.min(1, actual));
  }

  // The point under (left, top) of that pane stays where it is.
  function zoom(factor, pane = first(), left = null, top = null) {
    if (!pane) return;
    const { stage, width, height, actual } = measure(pane);
    const dx = left === null ? 0 : left - stage.left - stage.width / 2;
    const dy = top === null ? 0 : top - stage.top - stage.height / 2;
    const scale = bounded(view.scale * factor, actual);
    view.x += (dx / width) * (1 / view.scale - 1 / scale);
    view.y += (dy / height) * (1 / view.scale - 1 / scale);
    view.scale = scale;
    move();
  }

  function pan(dx, dy, pane = first()) {
    if (!pane) return;
    const { width, height } = measure(pane);
    view.x -= dx / (view.scale * width);
    view.y -= dy / (view.scale * height);
    move();
  }

  function fit() {
    Object.assign(view, { scale: 1, x: 0.5, y: 0.5 });
    move();
  }

  function actual() {
    const pane = first();
    if (!pane) return;
    zoom(measure(pane).actual / view.scale);
  }

  const paneOf = (event) => {
    const root = event.target.closest(".pane");
    return root && event.target.closest(".stage") ? panes.get(root.dataset.pane) : null;
  };
  const fingers = new Map();

  place.addEventListener(
    "wheel",
    (event) => {
      const pane = paneOf(event);
      if (!pane) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), pane, event.clientX, event.clientY);
    },
    { passive: false },
  );
  place.addEventListener("dblclick", (event) => {
    const pane = paneOf(event);
    if (!pane) return;
    if (view.scale !== 1) fit();
    else zoom(4, pane, event.clientX, event.clientY);
  });
  place.addEventListener("pointerdown", (event) => {
    if (!paneOf(event) || event.target.closest("a") || event.button) return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    event.target.closest(".stage").setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    const pane = before && paneOf(event);
    if (!pane) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...fingers].find(([id]) => id !== event.pointerId);
    if (other) {
      const apart = (one) => Math.hypot(one.x - other[1].x, one.y - other[1].y) || 1;
      zoom(apart(now) / apart(before), pane, (now.x + other[1].x) / 2, (now.y + other[1].y) / 2);
      pan((now.x - before.x) / 2, (now.y - before.y) / 2, pane);
    } else {
      pan(now.x - before.x, now.y - before.y, pane);
    }
    fingers.set(event.pointerId, now);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    place.addEventListener(end, (event) => fingers.delete(event.pointerId));
  }
  new ResizeObserver(arrange).observe(place);

  return { draw, zoom: (factor) => zoom(factor), pan: (dx, dy) => pan(dx, dy), fit, actual, file, thumb, element };
};
