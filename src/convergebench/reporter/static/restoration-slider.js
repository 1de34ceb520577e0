// Two pictures of one source, one over the other, with a line between them that can be moved.
// The address says what is shown: #compare/SOURCE/LEFT/RIGHT.
(() => {
  "use strict";
  const place = document.getElementById("slider");
  if (!place) return;
  const { load, told } = window.convergebench;
  const at = (id) => document.getElementById(id);
  const split = at("split");
  const divider = at("divider");
  const MOST = 16; // times the fitted picture
  const PIXELS_FROM = 3; // screen pixels per picture pixel from which these are shown as squares
  const state = { source: null, left: "input", right: "", at: 50, scale: 1, x: 0, y: 0 };
  let album = { views: [], scores: [] };
  let turn = 0;

  function element(tag, css, text) {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // -- what there is to choose --------------------------------------------------------------------

  const viewOf = (key) => album.views.find((view) => view.key === key);
  const filtered = () =>
    told.sources.filter(
      (one) =>
        (!at("of-scene")?.value || one.scene === at("of-scene").value) &&
        (!at("of-damage")?.value || one.damage === at("of-damage").value),
    );

  function list() {
    const some = filtered();
    at("of-source").replaceChildren(...some.map((one) => new Option(one.name, one.name)));
    if (state.source) at("of-source").value = state.source;
    const words = some.length === 1 ? "1 picture" : `${some.length} pictures`;
    at("how-many").textContent = some.length ? words : "no such picture";
  }

  function options(select, chosen) {
    select.replaceChildren(
      ...album.views.map((view) => new Option(view.missing ? `${view.label} (${view.missing})` : view.label, view.key)),
    );
    select.value = chosen;
  }

  // -- showing ------------------------------------------------------------------------------------

  function fill(side) {
    const view = viewOf(state[side]);
    const home = split.querySelector(`[data-side="${side}"]`);
    const image = home.querySelector("img");
    const hole = home.querySelector(".hole");
    const there = Boolean(view?.shown);
    image.hidden = !there;
    hole.hidden = there;
    hole.textContent = there ? "" : (view?.missing ?? "picture not here");
    if (there && image.getAttribute("src") !== view.shown) {
      image.classList.add("waiting");
      image.src = view.shown;
    }
    image.alt = view ? view.label : "";
    split.querySelector(`.tag.${side}`).textContent = view ? view.label : "";
    const words = [];
    const input = viewOf("input");
    if (view?.size) words.push(`${view.size[0]} × ${view.size[1]}`);
    if (view?.size && input?.size && String(view.size) !== String(input.size)) words.push("not the input’s size");
    const line = at(`told-${side}`);
    line.replaceChildren(`${side === "left" ? "Left" : "Right"}: ${view ? view.label : "–"}${words.length ? `, ${words.join(", ")}` : ""} `);
    if (view?.full) {
      const link = element("a", "", "file");
      link.href = view.full;
      line.append(link);
    }
  }

  function scores() {
    const table = at("both-scores");
    table.replaceChildren();
    const sides = ["left", "right"].map((side) => viewOf(state[side])).filter((view) => view?.method);
    if (!sides.length || !album.scores.length) return;
    const head = element("tr");
    head.append(element("th", "", "This picture, mean over repeats"));
    for (const { title } of album.scores) head.append(element("th", "num", title));
    const thead = element("thead");
    thead.append(head);
    const body = element("tbody");
    const seen = new Set();
    for (const view of sides) {
      if (seen.has(view.method)) continue;
      seen.add(view.method);
      const row = element("tr");
      const name = element("th", "", view.label.replace(/ · repeat \d+$/, ""));
      name.scope = "row";
      row.append(name);
      for (const { of } of album.scores) row.append(element("td", "num", of[view.method]?.toFixed(3).replace("-", "−") ?? "–"));
      body.append(row);
    }
    table.append(thead, body);
  }

  function mark() {
    for (const button of at("shots").querySelectorAll("button")) {
      const left = button.dataset.key === state.left;
      const right = button.dataset.key === state.right;
      if (left || right) button.dataset.on = left && right ? "both" : left ? "left" : "right";
      else delete button.dataset.on;
    }
    // The one on the right is in sight; only the strip moves, never the page.
    const strip = at("shots");
    const item = strip.querySelector(`button[data-on="right"]`)?.parentNode;
    if (item) strip.scrollLeft = Math.max(0, item.offsetLeft - strip.offsetLeft - strip.clientWidth + item.clientWidth + 12, Math.min(strip.scrollLeft, item.offsetLeft - strip.offsetLeft));
  }

  function shots() {
    at("shots").replaceChildren(
      ...album.views.map((view) => {
        const item = element("li");
        const button = element("button");
        button.type = "button";
        button.dataset.key = view.key;
        if (view.thumb) {
          const image = element("img");
          image.loading = "lazy";
          image.decoding = "async";
          image.alt = "";
          image.src = view.thumb;
          button.append(image);
        } else button.append(element("span", "hole", view.missing ?? "not here"));
        button.append(view.label);
        button.addEventListener("click", (event) => {
          state[event.shiftKey ? "left" : "right"] = view.key;
          refresh();
        });
        item.append(button);
        return item;
      }),
    );
  }

  function aspect() {
    const sized = viewOf("input") ?? viewOf("truth") ?? album.views.find((view) => view.size);
    const [width, height] = sized?.size ?? [1, 1];
    place.style.setProperty("--ratio", width / height);
    return width;
  }

  function move() {
    split.style.setProperty("--at", `${state.at}%`);
    divider.setAttribute("aria-valuenow", Math.round(state.at));
    divider.setAttribute("aria-valuetext", `${Math.round(state.at)} % ${viewOf(state.left)?.label ?? ""}`);
  }

  function zoom() {
    const { clientWidth: width, clientHeight: height } = split;
    state.scale = Math.min(MOST, Math.max(1, state.scale));
    state.x = Math.min(0, Math.max(width * (1 - state.scale), state.x));
    state.y = Math.min(0, Math.max(height * (1 - state.scale), state.y));
    split.style.setProperty("--scale", state.scale);
    split.style.setProperty("--x", `${state.x}px`);
    split.style.setProperty("--y", `${state.y}px`);
    split.classList.toggle("zoomed", state.scale > 1);
    split.classList.toggle("squares", (width * state.scale) / aspect() >= PIXELS_FROM);
    at("zoom").textContent = `${Number(state.scale.toFixed(1))}×`;
  }

  // The point of the picture that is at (x, y) of the split stays there.
  function zoomBy(factor, x = split.clientWidth / 2, y = split.clientHeight / 2) {
    const before = state.scale;
    state.scale = Math.min(MOST, Math.max(1, before * factor));
    state.x = x - ((x - state.x) * state.scale) / before;
    state.y = y - ((y - state.y) * state.scale) / before;
    zoom();
  }

  function refresh({ address = true } = {}) {
    options(at("left"), state.left);
    options(at("right"), state.right);
    fill("left");
    fill("right");
    scores();
    mark();
    move();
    if (!address) return;
    const parts = [state.source, state.left, state.right].map(encodeURIComponent);
    history.replaceState(null, "", `#compare/${parts.join("/")}`);
  }

  async function open(source, { left, right, address = true } = {}) {
    const mine = (turn += 1);
    const one = told.sources.find((each) => each.name === source);
    if (!one) return;
    const found = await load(one.data);
    if (mine !== turn) return;
    album = found;
    state.source = source;
    const fits = (key) => key && viewOf(key);
    const first = album.views.find((view) => view.method && view.shown) ?? album.views.at(-1);
    state.left = fits(left) ? left : fits(state.left) ? state.left : album.views[0].key;
    state.right = fits(right) ? right : fits(state.right) ? state.right : first.key;
    if (!filtered().includes(one)) {
      for (const id of ["of-scene", "of-damage"]) if (at(id)) at(id).value = "";
    }
    list();
    aspect();
    state.scale = 1;
    zoom();
    shots();
    refresh({ address });
    place.dataset.shown = source;
  }

  // -- choosing -----------------------------------------------------------------------------------

  for (const id of ["of-scene", "of-damage"]) {
    at(id)?.addEventListener("change", () => {
      list();
      const some = filtered();
      if (some.length && !some.some((one) => one.name === state.source)) open(some[0].name);
    });
  }
  at("of-source").addEventListener("change", (event) => open(event.target.value));
  for (const button of place.querySelectorAll("[data-picture]")) {
    button.addEventListener("click", () => {
      const some = filtered();
      const here = some.findIndex((one) => one.name === state.source);
      if (some.length) open(some[(here + Number(button.dataset.picture) + some.length) % some.length].name);
    });
  }
  for (const side of ["left", "right"]) {
    at(side).addEventListener("change", (event) => {
      state[side] = event.target.value;
      refresh();
    });
    const image = split.querySelector(`[data-side="${side}"] img`);
    image.addEventListener("load", () => image.classList.remove("waiting"));
    image.addEventListener("error", () => {
      // Some files no browser can show: the thumbnail is better than nothing.
      const small = viewOf(state[side])?.thumb;
      if (small && image.getAttribute("src") !== small) image.src = small;
      else image.classList.remove("waiting");
    });
  }
  at("swap").addEventListener("click", () => {
    [state.left, state.right] = [state.right, state.left];
    refresh();
  });
  for (const button of place.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const factor = Number(button.dataset.zoom);
      if (factor) return zoomBy(factor);
      state.scale = 1;
      zoom();
    });
  }

  divider.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 10 : 1;
    const to = {
      ArrowLeft: state.at - step, ArrowDown: state.at - step, ArrowRight: state.at + step, ArrowUp: state.at + step,
      PageDown: state.at - 10, PageUp: state.at + 10, Home: 0, End: 100,
    }[event.key];
    if (to !== undefined) {
      state.at = Math.min(100, Math.max(0, to));
      move();
    } else if (event.key === "+" || event.key === "=") zoomBy(1.5);
    else if (event.key === "-") zoomBy(1 / 1.5);
    else if (event.key === "0") zoomBy(0);
    else return;
    event.preventDefault();
  });

  // -- fingers and mouse ----------------------------------------------------------------------------

  const fingers = new Map();
  let held = ""; // "line" or "picture"
  const where = (event) => {
    const box = split.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top, box.width];
  };
  const drag = (event) => {
    const [x, , width] = where(event);
    state.at = Math.min(100, Math.max(0, (100 * x) / width));
    move();
  };
  const apart = () => {
    const [[ax, ay], [bx, by]] = [...fingers.values()];
    return { gap: Math.hypot(ax - bx, ay - by) || 1, x: (ax + bx) / 2, y: (ay + by) / 2 };
  };

  split.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const [x, y] = where(event);
    fingers.set(event.pointerId, [x, y]);
    split.setPointerCapture(event.pointerId);
    const line = divider.contains(event.target);
    if (line) divider.focus({ preventScroll: true });
    held = fingers.size > 1 || (state.scale > 1 && !line) ? "picture" : "line";
    if (held === "line" && event.pointerType !== "touch") drag(event);
    event.preventDefault();
  });
  split.addEventListener("pointermove", (event) => {
    const last = fingers.get(event.pointerId);
    if (!last) return;
    const [x, y] = where(event);
    if (fingers.size > 1) {
      const before = apart();
      fingers.set(event.pointerId, [x, y]);
      const now = apart();
      state.x += now.x - before.x;
      state.y += now.y - before.y;
      return zoomBy(now.gap / before.gap, now.x, now.y);
    }
    fingers.set(event.pointerId, [x, y]);
    if (held === "line") return drag(event);
    state.x += x - last[0];
    state.y += y - last[1];
    zoom();
  });
  for (const end of ["pointerup", "pointercancel"]) split.addEventListener(end, (event) => fingers.delete(event.pointerId));
  split.addEventListener("dblclick", (event) => {
    const [x, y] = where(event);
    if (state.scale > 1) zoomBy(0);
    else zoomBy(3, x, y);
  });
  split.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls; a pinch says ctrl
      event.preventDefault();
      const [x, y] = where(event);
      zoomBy(Math.exp(-event.deltaY / 200), x, y);
    },
    { passive: false },
  );
  window.addEventListener("resize", zoom);

  // -- addresses ------------------------------------------------------------------------------------

  function arrive() {
    const [name, ...parts] = location.hash.slice(1).split("/");
    if (name !== "compare" || !parts.length) return false;
    const [source, left, right] = parts.map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
    if (!told.sources.some((one) => one.name === source)) return false;
    open(source, { left, right }).then(() => at("compare").scrollIntoView());
    return true;
  }

  place.hidden = false;
  window.addEventListener("hashchange", arrive);
  list();
  if (!arrive() && told.sources.length) {
    // Nothing is loaded before it is near.
    const near = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting) || state.source) return;
        near.disconnect();
        open(told.sources[0].name, { address: false });
      },
      { rootMargin: "600px 0px" },
    );
    near.observe(place);
  }
})();
