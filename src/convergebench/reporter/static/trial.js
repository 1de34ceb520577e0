// Draws the figures as they come into view, for the editor and the metric that are chosen.
(() => {
  "use strict";
  const told = JSON.parse(document.getElementById("trial-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const walks = window.convergebenchSteps(told.walks);
  const LABELLED = 25; // pixels of a cell that has room for its number
  const LONGEST_LABEL = 170;
  const at = (id) => document.getElementById(id);

  // -- data: scripts, because a page opened from a file may load nothing else -----------------

  const waiting = new Map();
  const known = new Map();
  window.convergebench = { take: (name, data) => waiting.get(name)?.(data) };

  function load(name) {
    if (!known.has(name)) {
      known.set(
        name,
        new Promise((resolve, reject) => {
          waiting.set(name, resolve);
          const script = document.createElement("script");
          script.src = `data/trial/${encodeURIComponent(name)}.js`;
          script.onerror = () => reject(new Error(`no data of ${name}`));
          document.head.append(script);
        }),
      );
    }
    return known.get(name);
  }

  function rowsOf(columns) {
    const names = Object.keys(columns);
    const values = names.map((name) => {
      const column = columns[name];
      return column.words ? column.are.map((i) => column.words[i]) : column;
    });
    return (values[0] ?? []).map((_, i) => {
      const row = {};
      names.forEach((name, k) => {
        if (values[k][i] !== null) row[name] = values[k][i];
      });
      return row;
    });
  }

  // -- what is chosen --------------------------------------------------------------------------

  const place = (id) => (at(id)?.value ? Number(at(id).value) : null);
  const chosen = () => ({
    arm: place("arm") ?? 0,
    metric: place("metric") ?? 0,
    walk: { panels: at("panels")?.value ?? "arm", source: place("source"), arm: place("walker") },
  });

  async function walked(kind, make) {
    const { metric } = chosen();
    const [means, singles] = await Promise.all([load(`steps-${metric + 1}`), load(`single-${metric + 1}`)]);
    return make(means[kind], singles[kind]);
  }

  const rowsFor = {
    gaps: async () => rowsOf(await load(`gaps-${chosen().arm + 1}`)),
    overlay: async () => rowsOf(await load("counts")).filter((row) => row.arm === told.arms[chosen().arm]),
    arms: async () => rowsOf(await load("counts")),
    steps: () => walked("replicate", (means, singles) => walks.copying(means, singles, chosen().walk)),
    adding: () => walked("accumulate", walks.adding),
  };

  // What the still of a figure is called, and what stands beside its title.
  function matching(kind) {
    const { arm, metric, walk } = chosen();
    if (kind === "gaps" || kind === "overlay") return { still: told.stills[kind][arm], which: told.arms[arm] };
    if (kind === "steps") {
      const stills = walk.panels === "arm" ? told.stills.steps : told.stills.images;
      const one = walk.panels === "arm" ? told.walks.sources.replicate[walk.source] : told.walks.arms[walk.arm];
      return { still: stills[metric], which: [told.metrics[metric], one].filter(Boolean).join(", "), how: walks.about(walk) };
    }
    if (kind === "adding") return { still: told.stills.adding[metric], which: told.metrics[metric] };
    return {};
  }

  function caption(figure) {
    const { still, which, how } = matching(figure.dataset.figure);
    if (which !== undefined) figure.querySelector(".which").textContent = `: ${which}`;
    if (how) figure.querySelector(".how").textContent = how;
    if (!still) return;
    const address = `charts/${encodeURIComponent(still)}.svg`;
    const image = figure.querySelector("img.still");
    if (image.getAttribute("src") !== address) image.src = address;
    figure.querySelector("a.svg").href = address;
  }

  // -- drawing ---------------------------------------------------------------------------------

  const drawn = new Map();
  const wanted = new Set();
  const turns = new Map();
  const figureOf = (kind) => document.querySelector(`[data-figure="${kind}"]`);
  const pen = document.createElement("canvas").getContext("2d");

  // Small multiples have no width of their own accord: as many beside each other as fit.
  function fitted(spec, fit, rows, width) {
    pen.font = "11px system-ui, sans-serif";
    const label = Math.max(0, ...fit.beside.map((word) => Math.ceil(pen.measureText(word).width)));
    const left = Math.min(label, LONGEST_LABEL) + 22 + (fit.cells ? 0 : 16);
    const right = fit.cells ? 56 : 12;
    const gap = spec.spacing ?? 20;
    const panels = new Set(rows.map((row) => row[spec.facet.field])).size || 1;
    const free = width - left - right;
    const columns = Math.max(1, Math.min(fit.columns, panels, Math.floor((free + gap) / (fit.least + gap))));
    let each = Math.floor((free - gap * (columns - 1)) / columns);
    if (fit.cells) each = Math.min(Math.max(each, 9 * fit.cells), Math.max(44 * fit.cells, fit.least));
    const labels = fit.cells > 0 && each / fit.cells >= LABELLED;
    spec.columns = columns;
    spec.spec.width = each;
    if (spec.facet.header) spec.facet.header.labelLimit = each;
    if (!fit.cells) {
      // Layers without rows cannot tell how far scores reach, and complain.
      const values = rows.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]);
      const [least, most] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
      const air = Math.max(most - least, 1) * 0.04;
      for (const layer of spec.spec.layer) layer.encoding.y.scale.domain = [least - air, most + air];
    }
    spec.params = spec.params.map((p) => (p.name === "labels" ? { ...p, value: labels } : p));
    return spec;
  }

  async function draw(kind) {
    const mine = (turns.get(kind) ?? 0) + 1;
    turns.set(kind, mine);
    const figure = figureOf(kind);
    const chart = told.charts[kind];
    const theme = dark.matches ? "dark" : "light";
    caption(figure);
    try {
      const rows = await (rowsFor[kind]?.() ?? load(kind).then(rowsOf));
      if (mine !== turns.get(kind)) return;
      drawn.get(kind)?.finalize();
      drawn.delete(kind);
      figure.classList.toggle("empty", rows.length === 0);
      figure.classList.add("live"); // before drawing: a hidden place has no width to fill
      const home = at(`chart-${kind}`);
      if (!rows.length) {
        home.textContent = "No scores.";
        return;
      }
      const base = told.themes[theme];
      const spec = structuredClone(chart.spec);
      if (chart.fit) fitted(spec, chart.fit, rows, home.clientWidth);
      spec.datasets = { ...spec.datasets, rows };
      const config = { ...base, range: { ...base.range, category: chart[theme] } };
      const how = { mode: "vega-lite", renderer: "svg", ast: true, config, tooltip: { theme }, actions: false };
      const made = await window.vegaEmbed(home, spec, how);
      if (mine !== turns.get(kind)) return made.finalize();
      drawn.set(kind, made);
      figure.dataset.drawn = mine;
    } catch (error) {
      figure.classList.remove("live"); // the still drawing is there
      console.error(error);
    }
  }

  const again = (...kinds) => {
    for (const kind of kinds) {
      const figure = figureOf(kind);
      if (figure) caption(figure);
      if (wanted.has(kind)) draw(kind);
    }
  };

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
  const figures = [...document.querySelectorAll("[data-figure]")];
  for (const figure of figures) {
    caption(figure); // a browser may keep what was chosen over a reload
    seen.observe(figure);
  }
  dark.addEventListener("change", () => again(...wanted));

  let width = document.documentElement.clientWidth;
  let soon = 0;
  window.addEventListener("resize", () => {
    clearTimeout(soon);
    soon = setTimeout(() => {
      if (Math.abs(document.documentElement.clientWidth - width) < 12) return;
      width = document.documentElement.clientWidth;
      again(...[...wanted].filter((kind) => told.charts[kind].fit));
    }, 200);
  });

  // -- choosing --------------------------------------------------------------------------------

  for (const controls of document.querySelectorAll(".chooser")) controls.hidden = false;
  const arms = at("arm");
  arms?.addEventListener("change", () => again("gaps", "overlay"));
  for (const button of document.querySelectorAll("[data-turn]")) {
    button.addEventListener("click", () => {
      arms.selectedIndex = (arms.selectedIndex + Number(button.dataset.turn) + arms.length) % arms.length;
      again("gaps", "overlay");
    });
  }
  for (const link of document.querySelectorAll("[data-arm]")) {
    link.addEventListener("click", () => {
      if (!arms) return;
      arms.selectedIndex = Number(link.dataset.arm);
      again("gaps", "overlay");
    });
  }
  const show = () => {
    const by = at("panels")?.value;
    if (!by) return;
    at("one-source").hidden = by !== "arm";
    at("one-arm").hidden = by === "arm";
    document.querySelector(".key-of-arms").hidden = by === "arm" || at("walker").value !== "";
  };
  show();
  at("metric")?.addEventListener("change", () => again("steps", "adding"));
  for (const id of ["panels", "source", "walker"]) {
    at(id)?.addEventListener("change", () => {
      show();
      again("steps");
    });
  }

  for (const button of document.querySelectorAll("button.save")) {
    const kind = button.closest("figure").dataset.figure;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const made = drawn.get(kind);
      if (!made) return;
      const link = document.createElement("a");
      const image = new Blob([await made.view.toSVG()], { type: "image/svg+xml" });
      link.href = URL.createObjectURL(image);
      link.download = `trial-${kind}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // -- print: drawings that are not loaded would be white ----------------------------------------

  const stills = () => {
    for (const still of document.querySelectorAll("img.still")) still.loading = "eager";
  };
  window.addEventListener("beforeprint", stills);
  window.addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(stills));
})();
