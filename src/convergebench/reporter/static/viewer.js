// Opens a chain's frames one by one, beside others of the same source and cycle, against home.
// The address tells what is seen: #CHAIN[+CHAIN…]/STEP/MODE, so it can be linked and Back works.
(() => {
  "use strict";
  const MODES = ["frame", "side", "blink", "difference"];
  const GAINS = [1, 4, 16];
  const MOST = 4; // editors at once
  const BLINK = 600; // milliseconds
  const PLAY = 700;
  const PAN = 60; // pixels per key

  const main = document.getElementById("main");
  const dialog = document.getElementById("viewer");
  if (!main || !dialog || !dialog.showModal) return;
  document.documentElement.classList.add("scripted");
  const one = (selector) => dialog.querySelector(selector);
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const slider = one("input[type=range]");
  const shelf = one(".panes");
  const curves = one("[data-metric]");
  const element = (tag, css, text) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  let data = null;
  let cycle = null;
  let timer = 0;
  const state = { chains: [], step: 0, mode: "frame", gain: 4, swapped: false, paused: false, playing: false };

  const panes = ConvergeBench.panes(shelf, (words, least) => {
    one("[data-zoom]").textContent = words;
    one("[data-do=out]").disabled = least;
  });
  const facts = ConvergeBench.facts(element, panes.file);

  // -- data and address ----------------------------------------------------------------------------

  async function load() {
    if (data) return;
    const told = await ConvergeBench.load("chains", main.dataset.viewer);
    if (data) return;
    data = told;
    curves.replaceChildren(...told.metrics.map((metric) => new Option(metric.name)));
    one(".v-metric").hidden = !told.metrics.length;
  }

  function read() {
    let parts;
    try {
      parts = decodeURIComponent(location.hash.slice(1)).split("/");
    } catch {
      return null;
    }
    if (parts.length < 2 || !/^\d+$/.test(parts[1])) return null;
    const mode = MODES.includes(parts[2]) ? parts[2] : "frame";
    return { chains: parts[0].split("+").slice(0, MOST), step: Number(parts[1]), mode };
  }

  const address = () => `#${state.chains.join("+")}/${state.step}/${state.mode}`;

  async function route() {
    const wanted = read();
    if (!wanted) return hide();
    await load();
    const first = wanted.chains.find((id) => find(id));
    if (!first) return hide();
    const found = data.cycles.find((each) => each.chains.some((chain) => chain.id === first));
    if (found !== cycle) panes.fit();
    cycle = found;
    state.chains = wanted.chains.filter((id) => cycle.chains.some((chain) => chain.id === id));
    Object.assign(state, { step: wanted.step, mode: wanted.mode, playing: false });
    if (!dialog.open) {
      state.paused = false;
      panes.fit();
      choices();
      dialog.showModal();
      document.documentElement.classList.add("viewing");
      slider.focus({ preventScroll: true });
    } else choices();
    render();
  }

  function open(id, step) {
    Object.assign(state, { chains: [id], step });
    history.pushState({ viewer: true }, "", address());
    route();
  }

  function hide() {
    state.playing = false;
    clearInterval(timer);
    document.documentElement.classList.remove("viewing");
    if (dialog.open) dialog.close();
    const cell = cycle && ConvergeBench.cellAt(state.chains[0], state.step);
    const link = cell && (cell.querySelector("a") || cell.closest("tr").querySelector("td a"));
    if (link) ConvergeBench.rove(link);
    cycle = null;
  }

  function close() {
    if (history.state && history.state.viewer) return history.back();
    history.replaceState(null, "", `#${state.chains[0]}`);
    hide();
  }

  // -- what is shown -------------------------------------------------------------------------------

  const find = (id) => data.cycles.flatMap((each) => each.chains).find((chain) => chain.id === id);
  const chosen = () => state.chains.map((id) => cycle.chains.find((chain) => chain.id === id));
  const last = () => Math.max(...chosen().map((chain) => chain.steps.length));
  const inkOf = (chain) => {
    const swatch = document.getElementById(chain.id).querySelector(".swatch");
    return [...swatch.classList].find((name) => name.startsWith("ink-")) || "";
  };

  function names(chain) {
    const made = document.getElementById(chain.id).querySelector(".editor").cloneNode(true);
    return chain.variant ? [made, element("span", "variant", chain.variant)] : [made];
  }

  // Home at a step; where the step has none, half-way out, the source is what there is to look at.
  function reference(chain, step) {
    const how = chain.homes[step];
    if (how) return { frame: how.truth ? chain.truth : chain.source, how, name: "home" };
    return { frame: chain.source, how: null, name: "source" };
  }

  const frameAt = (chain, step) => (step === 0 ? chain.source : (chain.steps[step - 1] || {}).frame);

  function boxOf(told) {
    const size = told.frame && told.frame.size;
    if (!size) return null;
    return told.how && told.how.quarters % 2 ? [size[1], size[0]] : size;
  }

  function hole(chain, step) {
    const record = step ? chain.steps[step - 1] : {};
    if (!record) return [element("span", "outcome", chain.rest)];
    const frame = frameAt(chain, step);
    const text = (index) => (index === undefined ? "" : data.texts[index]);
    if (record.outcome === "reported") return [element("span", "quiet", "scores only: the picture is not here")];
    if (record.outcome) {
      const made = [element("span", "outcome", record.outcome), element("span", "detail", text(record.detail))];
      if (frame && frame.file) {
        const link = element("a", "", "bytes as received");
        link.href = panes.file(frame);
        made.push(link);
      }
      return made;
    }
    if (!frame) return [element("span", "quiet", "picture not here")];
    if (!frame.file) return [element("span", "quiet", "file missing")];
    return frame.unreadable ? [element("span", "quiet", "unreadable")] : null;
  }

  function paneOf(chain, size) {
    const { step } = state;
    const frame = frameAt(chain, step);
    const home = reference(chain, step);
    const empty = hole(chain, step);
    const caption = names(chain);
    const box = boxOf(home) || size;
    const apart = !empty && frame.size && box && (frame.size[0] !== box[0] || frame.size[1] !== box[1]);
    if (apart) {
      const mark = element("span", "size", `${frame.size.join("×")} in ${box.join("×")}`);
      mark.title = "another size than home's: drawn in home's place; resampled to it in blink and difference, as for scores";
      caption.push(mark);
    }
    return {
      key: chain.id,
      caption,
      home: state.mode === "blink" || state.mode === "difference" ? home : null,
      frame: empty ? null : frame,
      hole: empty,
      differs: apart,
      flags: [home.name, `step ${step}`],
      alt: `${chain.editor}, step ${step}`,
    };
  }

  function render() {
    state.step = Math.min(last(), Math.max(0, state.step));
    const chains = chosen();
    const { step, mode } = state;
    const home = reference(chains.find((chain) => chain.homes[step]) || chains[0], step);
    const size = boxOf(home) || (frameAt(chains[0], step) || {}).size || [1, 1];
    const shown = chains.map((chain) => paneOf(chain, size));
    if (mode === "side") {
      const gone = home.frame && home.frame.file && !home.frame.unreadable ? null : [element("span", "quiet", "picture not here")];
      shown.unshift({
        key: "home",
        caption: [element("strong", "", home.name === "home" ? "Home" : "Source"), element("span", "quiet", home.how ? home.how.words : "no home at this step")],
        home,
        frame: null,
        hole: gone,
        flags: ["", ""],
        alt: "",
      });
    }
    panes.draw({ mode, gain: state.gain, size, panes: shown });
    controls(chains, home);
    facts.draw(one(".v-facts"), chains, step, data, names);
    facts.curve(one(".v-scores"), one("[data-range]"), chains, curves.value, last(), step, data, inkOf);
    if (location.hash !== address()) history.replaceState(history.state, "", address());
    tick();
    ahead(chains);
  }

  function controls(chains, home) {
    const { step, mode } = state;
    const records = chains.map((chain) => chain.steps[step - 1]).filter((record) => record && record.prompt !== undefined);
    const prompts = new Set(records.map((record) => data.texts[record.prompt]));
    const prompt = step === 0 ? "The source" : prompts.size > 1 ? "prompts differ" : [...prompts].join();
    one("[data-cycle]").textContent = cycle.label;
    one("[data-step]").textContent = `Step ${step} of ${last()}`;
    const words = one("[data-prompt]");
    words.replaceChildren(prompts.size === 1 ? element("q", "", prompt) : prompt);
    if (step && home.how) words.append(" ", element("span", "mark", `should equal ${home.how.words}`));
    else if (step && mode !== "frame") words.append(" ", element("span", "quiet", "has no home: seen against the source"));
    slider.max = last();
    slider.value = step;
    slider.style.setProperty("--done", `${(100 * step) / Math.max(1, last())}%`);
    slider.setAttribute("aria-valuetext", `step ${step} of ${last()}: ${prompt}`);
    for (const radio of dialog.querySelectorAll("[name=viewer-mode]")) radio.checked = radio.value === mode;
    for (const radio of dialog.querySelectorAll("[name=viewer-gain]")) radio.checked = Number(radio.value) === state.gain;
    for (const extra of dialog.querySelectorAll("[data-for]")) extra.hidden = extra.dataset.for !== mode;
    one("[data-do=first]").disabled = one("[data-do=back]").disabled = step === 0;
    one("[data-do=next]").disabled = one("[data-do=last]").disabled = step === last();
  }

  function choices() {
    const list = one(".v-chains div");
    list.replaceChildren(
      ...cycle.chains.map((chain) => {
        const label = element("label");
        const box = element("input");
        box.type = "checkbox";
        box.value = chain.id;
        box.checked = state.chains.includes(chain.id);
        label.append(box, ...names(chain));
        return label;
      }),
    );
    one(".v-chains").hidden = cycle.chains.length < 2;
    limit();
  }

  function limit() {
    const boxes = [...dialog.querySelectorAll(".v-chains input")];
    const count = boxes.filter((box) => box.checked).length;
    for (const box of boxes) box.disabled = box.checked ? count === 1 : count >= MOST;
  }

  // The frames before and after, so that a step is seen at once.
  function ahead(chains) {
    for (const chain of chains) {
      for (const near of [state.step + 1, state.step - 1]) {
        const frame = near >= 0 && frameAt(chain, near);
        if (frame && frame.file && !frame.unreadable) new Image().src = panes.file(frame);
      }
    }
  }

  // -- time ----------------------------------------------------------------------------------------

  function swap(now = !state.swapped) {
    state.swapped = now;
    shelf.classList.toggle("swapped", now);
  }

  function tick() {
    clearInterval(timer);
    const blinking = state.mode === "blink" && !state.playing;
    const manual = state.paused || still.matches;
    const button = one("[data-do=swap]");
    button.textContent = still.matches ? "Swap" : state.paused ? "Go on" : "Pause";
    one("[data-do=play]").textContent = state.playing ? "Stop" : "Play";
    one("[data-do=play]").setAttribute("aria-pressed", String(state.playing));
    if (state.mode !== "blink") swap(false);
    if (state.playing) timer = setInterval(advance, PLAY);
    else if (blinking && !manual) timer = setInterval(swap, BLINK);
  }

  function advance() {
    if (state.step >= last()) state.playing = false;
    else state.step += 1;
    render();
  }

  function blinkKey() {
    if (still.matches) return swap();
    state.paused = !state.paused;
    tick();
  }

  // -- doing ---------------------------------------------------------------------------------------

  const change = (told) => {
    Object.assign(state, told);
    render();
  };
  const go = (step) => change({ step, playing: false });
  const mode = (name) => change({ mode: name, paused: false });
  const gain = (value) => change({ gain: value, mode: "difference" });
  const actions = {
    close,
    first: () => go(0),
    back: () => go(state.step - 1),
    next: () => go(state.step + 1),
    last: () => go(last()),
    swap: blinkKey,
    in: () => panes.zoom(1.5),
    out: () => panes.zoom(1 / 1.5),
    fit: panes.fit,
    actual: panes.actual,
    play: () => {
      state.playing = !state.playing;
      if (state.playing && state.step >= last()) state.step = 0;
      render();
    },
  };
  const keys = {
    ArrowLeft: actions.back,
    ArrowRight: actions.next,
    Home: actions.first,
    End: actions.last,
    " ": () => (state.mode === "blink" ? blinkKey() : actions.play()),
    "+": actions.in,
    "=": actions.in,
    "-": actions.out,
    "−": actions.out,
    0: panes.fit,
    1: panes.actual,
    f: () => mode("frame"),
    s: () => mode("side"),
    b: () => mode("blink"),
    d: () => mode("difference"),
    g: () => gain(GAINS[(GAINS.indexOf(state.gain) + 1) % GAINS.length]),
  };
  const pans = { ArrowLeft: [PAN, 0], ArrowRight: [-PAN, 0], ArrowUp: [0, PAN], ArrowDown: [0, -PAN] };

  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    const own = target.matches("select, input[type=radio], input[type=checkbox], button, summary, a");
    if (event.shiftKey && pans[event.key]) panes.pan(...pans[event.key]);
    else {
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      // What a control does with a key is its own; a slider's arrows are steps all the same.
      if (own && (key === " " || (key.startsWith("Arrow") && target.matches("select, input")))) return;
      if (target.matches("select") && /^[a-z]$/.test(key)) return;
      if (!Object.hasOwn(keys, key)) return;
      keys[key]();
    }
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) actions[button.dataset.do]();
  });
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  dialog.addEventListener("change", (event) => {
    const { name, value, checked } = event.target;
    if (name === "viewer-mode") mode(value);
    else if (name === "viewer-gain") gain(Number(value));
    else if (event.target === curves) render();
    else if (event.target.type === "checkbox") {
      const wanted = new Set(state.chains);
      if (checked) wanted.add(value);
      else wanted.delete(value);
      // In the order of the strips, so that a pane has its place.
      state.chains = cycle.chains.map((chain) => chain.id).filter((id) => wanted.has(id));
      limit();
      render();
    }
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  still.addEventListener("change", () => dialog.open && tick());

  // -- the strips ----------------------------------------------------------------------------------

  main.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const cell = event.target.closest(".strip tbody td:not(.rest)");
    if (!cell || event.target.closest(".under a")) return;
    event.preventDefault();
    open(cell.closest("tr").id, parseInt(cell.querySelector(".under").textContent, 10));
  });
  window.addEventListener("popstate", route);
  route();
})();
