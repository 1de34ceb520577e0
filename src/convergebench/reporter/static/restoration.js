// Chooses among tables, and draws the charts of the measures that are chosen.
(() => {
  "use strict";
  const told = JSON.parse(document.getElementById("restoration-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const NARROW = 520; // pixels of a chart in which names must be shorter
  const at = (id) => document.getElementById(id);

  // -- data: scripts, because a page opened from a file may load nothing else -----------------

  const waiting = new Map();
  const known = new Map();

  function load(name) {
    if (!known.has(name)) {
      known.set(
        name,
        new Promise((resolve, reject) => {
          waiting.set(name, resolve);
          const script = document.createElement("script");
          script.src = `data/restoration/${encodeURIComponent(name)}.js`;
          script.onerror = () => {
            known.delete(name); // the next try asks again
            reject(new Error(`no data of ${name}`));
          };
          document.head.append(script);
        }),
      );
    }
    return known.get(name);
  }

  window.convergebench = { take: (name, data) => waiting.get(name)?.(data), load, told };

  function rowsOf(columns) {
    const names = Object.keys(columns);
    const values = names.map((name) => {
      const column = columns[name];
      return column.words ? column.are.map((i) => column.words[i]) : column;
    });
    return (values[0] ?? []).map((_, i) => Object.fromEntries(names.map((name, k) => [name, values[k][i]])));
  }

  // -- tables: one of several is shown ------------------------------------------------------------

  for (const select of document.querySelectorAll("[data-chooses]")) {
    const group = select.dataset.chooses;
    const panels = [...document.querySelectorAll(`[data-panel="${group}"]`)];
    const show = () => {
      for (const panel of panels) panel.hidden = panel.dataset.name !== select.value;
    };
    select.addEventListener("change", show);
    for (const button of document.querySelectorAll(`[data-turns="${group}"]`)) {
      button.addEventListener("click", () => {
        const count = select.options.length;
        select.selectedIndex = (select.selectedIndex + Number(button.dataset.by) + count) % count;
        show();
      });
    }
    show();
  }
  for (const controls of document.querySelectorAll(".controls[hidden]")) controls.hidden = false;

  // -- charts ---------------------------------------------------------------------------------------

  const figures = {
    tradeoff() {
      const place = told.pairs.findIndex(([a, b]) => a === at("distortion").value && b === at("perception").value);
      return { name: `restoration-tradeoff-${place + 1}`, still: place < told.stills };
    },
    spread: () => ({ name: told.spreads[at("spread-of").value], still: true }),
  };
  const drawn = new Map();
  const wanted = new Set();
  const turns = new Map();
  const figureOf = (kind) => document.querySelector(`[data-figure="${kind}"]`);

  function narrowed(spec, width) {
    if (width >= NARROW) return spec;
    for (const layer of spec.layer) {
      const axis = layer.encoding.y?.axis;
      if (axis?.labelLimit) axis.labelLimit = 110;
    }
    return spec;
  }

  // All methods, these with the controls, or prompts alone, whose names then have more room.
  function points(chart) {
    const rows = rowsOf(chart.rows);
    const which = at("points")?.value;
    if (which === "prompts") return rows.filter(({ near }) => near).map((row) => ({ ...row, side: row.near }));
    return which === "controls" && chart.controls ? [...rows, ...rowsOf(chart.controls)] : rows;
  }

  function caption(figure, { name, still }) {
    const link = figure.querySelector("a.svg");
    link.hidden = !still;
    if (!still) return;
    const address = `charts/${encodeURIComponent(name)}.svg`;
    const image = figure.querySelector("img.still");
    if (image.getAttribute("src") !== address) image.src = address;
    link.href = address;
  }

  async function draw(kind) {
    const mine = (turns.get(kind) ?? 0) + 1;
    turns.set(kind, mine);
    const figure = figureOf(kind);
    const theme = dark.matches ? "dark" : "light";
    const chosen = figures[kind]();
    caption(figure, chosen);
    try {
      const chart = await load(chosen.name);
      if (mine !== turns.get(kind)) return;
      figure.classList.add("live"); // before drawing: a hidden place has no width to fill
      const home = at(`chart-${kind}`);
      const spec = narrowed(structuredClone(chart.spec), home.clientWidth);
      const rows = kind === "tradeoff" ? points(chart) : rowsOf(chart.rows);
      // A layer without rows cannot tell how far its axes reach, and complains.
      spec.layer = spec.layer.filter(({ name }) => !name?.startsWith("names-") || rows.some(({ side }) => name.endsWith(side)));
      spec.datasets = { ...spec.datasets, rows };
      const base = told.themes[theme];
      const config = { ...base, range: { ...base.range, category: chart[theme] } };
      const how = { mode: "vega-lite", renderer: "svg", ast: true, config, tooltip: { theme }, actions: false };
      const made = await window.vegaEmbed(home, spec, how);
      if (mine !== turns.get(kind)) return made.finalize();
      drawn.get(kind)?.finalize();
      drawn.set(kind, made);
      figure.dataset.drawn = mine;
      figure.querySelector(".save").hidden = false;
    } catch (error) {
      figure.classList.remove("live"); // the still drawing is there
      console.error(error);
    }
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const kind = target.dataset.figure;
        if (!isIntersecting || wanted.has(kind)) continue;
        wanted.add(kind);
        draw(kind);
      }
    },
    { rootMargin: "300px 0px" },
  );
  for (const figure of document.querySelectorAll("[data-figure]")) {
    caption(figure, figures[figure.dataset.figure]()); // a browser may keep what was chosen
    seen.observe(figure);
    figure.querySelector(".save").addEventListener("click", async () => {
      const kind = figure.dataset.figure;
      const image = new Blob([await drawn.get(kind).view.toSVG()], { type: "image/svg+xml" });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(image);
      link.download = `${figures[kind]().name}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
  const again = (kind) => {
    caption(figureOf(kind), figures[kind]());
    if (wanted.has(kind)) draw(kind);
  };
  for (const id of ["distortion", "perception", "points"]) at(id)?.addEventListener("change", () => again("tradeoff"));
  at("spread-of")?.addEventListener("change", () => again("spread"));
  dark.addEventListener("change", () => [...wanted].forEach(again));

  const stills = () => {
    for (const still of document.querySelectorAll("img.still")) still.loading = "eager";
  };
  window.addEventListener("beforeprint", stills);
  window.addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(stills));
})();
