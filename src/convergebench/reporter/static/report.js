// Draws the charts as they come into view, lets the legend pick editors out in all of them, the
// tabs choose a metric and the list a part of the chains; sorts the tables.
(() => {
  "use strict";
  const told = JSON.parse(document.getElementById("chart-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const keys = [...document.querySelectorAll(".legend [data-editor]")];
  const all = document.querySelector(".legend [data-all]");
  const part = document.getElementById("part");

  // -- data: scripts, because a page opened from a file may load nothing else -----------------

  const waiting = new Map();
  const known = new Map();

  function rowsOf(columns) {
    const names = Object.keys(columns);
    const values = names.map((name) => {
      const column = columns[name];
      return column.words ? column.are.map((i) => column.words[i]) : column;
    });
    const rows = [];
    for (let i = 0; i < values[0].length; i++) {
      const row = {};
      names.forEach((name, k) => {
        if (values[k][i] !== null) row[name] = values[k][i];
      });
      rows.push(row);
    }
    return rows;
  }

  window.convergebench = {
    take(name, columns) {
      waiting.get(name)?.(rowsOf(columns));
    },
  };

  function load(name) {
    if (!known.has(name)) {
      known.set(
        name,
        new Promise((resolve, reject) => {
          waiting.set(name, resolve);
          const script = document.createElement("script");
          script.src = `data/charts/${encodeURIComponent(name)}.js`;
          script.onerror = () => reject(new Error(`no data of ${name}`));
          document.head.append(script);
        }),
      );
    }
    return known.get(name);
  }

  async function rowsFor(id) {
    const chart = told.charts[id];
    if (!part?.value || !chart.groups) return load(id);
    return (await load(`${id}.groups`)).filter((row) => row.group === part.value);
  }

  // -- charts ------------------------------------------------------------------------------------

  const drawn = new Map();
  const wanted = new Set();
  let turn = 0;

  const chosen = () =>
    keys.filter((key) => key.getAttribute("aria-pressed") === "true").map((key) => key.dataset.editor);

  function caption(id) {
    const place = document.getElementById(id).closest("figure").querySelector(".of");
    if (place) place.textContent = part?.value ? `Only ${part.value.replace(":", ": ")}.` : "All chains.";
  }

  // Charts that have no data of parts stay as they are while a part is chosen, and say so.
  function mark() {
    for (const figure of document.querySelectorAll("#curves figure:has(.chart)")) {
      const whole = Boolean(part.value) && !told.charts[figure.querySelector(".chart").id].groups;
      figure.classList.toggle("unfiltered", whole);
      figure.querySelector(".whole")?.remove();
      if (!whole) continue;
      const words = document.createElement("span");
      words.className = "whole";
      words.textContent = "All chains; not filtered.";
      figure.querySelector("figcaption").append(words);
    }
  }

  async function draw(id) {
    const mine = turn;
    const chart = told.charts[id];
    const place = document.getElementById(id);
    const figure = place.closest("figure");
    const theme = dark.matches ? "dark" : "light";
    try {
      const rows = await rowsFor(id);
      if (mine !== turn) return;
      figure.classList.add("live"); // before drawing: a hidden place has no width to fill
      const base = told.themes[theme];
      const made = await window.vegaEmbed(
        place,
        { ...chart.spec, datasets: { ...chart.spec.datasets, rows: structuredClone(rows) } },
        {
          mode: "vega-lite",
          renderer: "svg",
          ast: true,
          config: { ...base, range: { ...base.range, category: chart[theme] } },
          tooltip: { theme },
          actions: false,
        },
      );
      if (mine !== turn) return made.finalize();
      drawn.get(id)?.finalize();
      drawn.set(id, made);
      made.view.signal("chosen", chosen()).runAsync();
      caption(id);
    } catch (error) {
      figure.classList.remove("live"); // the still drawing is there
      console.error(error);
    }
  }

  function redraw() {
    turn += 1;
    for (const made of drawn.values()) made.finalize();
    drawn.clear();
    for (const id of wanted) draw(id);
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const id = entry.target.querySelector(".chart").id;
        if (!entry.isIntersecting || wanted.has(id)) continue;
        wanted.add(id);
        draw(id);
      }
    },
    { rootMargin: "400px 0px" },
  );

  function pick() {
    const names = chosen();
    all.hidden = names.length === 0;
    for (const { view } of drawn.values()) view.signal("chosen", names).runAsync();
    for (const row of document.querySelectorAll(".board tr[data-editor]")) {
      row.classList.toggle("picked", names.includes(row.dataset.editor));
    }
  }

  if (Object.keys(told.charts).length) {
    for (const figure of document.querySelectorAll("figure:has(.chart)")) seen.observe(figure);
    for (const key of keys) {
      key.addEventListener("click", () => {
        key.setAttribute("aria-pressed", String(key.getAttribute("aria-pressed") !== "true"));
        pick();
      });
    }
    all.addEventListener("click", () => {
      for (const key of keys) key.setAttribute("aria-pressed", "false");
      keys[0].focus();
      pick();
    });
    document.querySelector(".legend").classList.add("live");
    dark.addEventListener("change", redraw);
    if (part) mark(); // a browser may keep what was chosen over a reload
    part?.addEventListener("change", async () => {
      mark();
      for (const [id, made] of drawn) {
        if (!told.charts[id].groups) continue;
        made.view.data("rows", structuredClone(await rowsFor(id)));
        await made.view.runAsync();
        caption(id);
      }
    });
  }

  // -- metrics -----------------------------------------------------------------------------------

  const tabs = [...document.querySelectorAll("#curves [role='tab']")];
  const panels = [...document.querySelectorAll("#curves .panel")];
  const more = document.getElementById("more-metrics");

  function show(id) {
    for (const panel of panels) panel.hidden = panel.id !== id;
    for (const tab of tabs) {
      const mine = tab.getAttribute("aria-controls") === id;
      tab.setAttribute("aria-selected", String(mine));
      tab.tabIndex = mine ? 0 : -1;
    }
    if (more) more.value = tabs.some((tab) => tab.getAttribute("aria-controls") === id) ? "" : id;
    if (!tabs.some((tab) => tab.tabIndex === 0)) tabs[0].tabIndex = 0;
  }

  if (panels.length) {
    document.querySelector("#curves .controls").hidden = false;
    document.getElementById("curves").classList.add("tabbed");
    tabs.forEach((tab, i) => {
      tab.addEventListener("click", () => show(tab.getAttribute("aria-controls")));
      tab.addEventListener("keydown", (event) => {
        const ends = { Home: 0, End: tabs.length - 1 };
        const steps = { ArrowRight: 1, ArrowLeft: -1 };
        const next = ends[event.key] ?? (i + (steps[event.key] ?? 0) + tabs.length) % tabs.length;
        if (!(event.key in ends) && !(event.key in steps)) return;
        event.preventDefault();
        tabs[next].focus();
        show(tabs[next].getAttribute("aria-controls"));
      });
    });
    more?.addEventListener("change", () => more.value && show(more.value));
    show(panels[0].id);
  }

  // -- sorting: within each part of a table, numbers from large to small first ---------------------

  function value(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.by !== undefined) return Number(cell.dataset.by);
    return cell.querySelector(".name")?.textContent ?? null;
  }

  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "string" ? a.localeCompare(b) : a - b;
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    table.classList.add("live");
    const order = new Map([...table.rows].map((row, place) => [row, place]));
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => {
      head.querySelector(".sorter")?.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const rising = before ? before === "descending" : column < 2;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", rising ? "ascending" : "descending");
        for (const body of table.tBodies) {
          const rows = [...body.rows].filter((row) => row.dataset.editor !== undefined);
          rows.sort((a, b) => order.get(a) - order.get(b)); // of equals the better stays first
          const known = rows.filter((row) => value(row, column) !== null);
          const rest = rows.filter((row) => value(row, column) === null); // these stay last
          known.sort((a, b) => (rising ? 1 : -1) * compare(value(a, column), value(b, column)));
          body.append(...known, ...rest);
        }
      });
    });
  }

  // -- print: drawings that are not loaded would be white ------------------------------------------

  const stills = () => {
    for (const still of document.querySelectorAll("img.still")) still.loading = "eager";
  };
  window.addEventListener("beforeprint", () => {
    stills();
    for (const place of document.querySelectorAll(".of")) place.textContent = "All chains."; // as drawn
    for (const fold of document.querySelectorAll("details.fine")) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const id of drawn.keys()) caption(id);
  });
  window.addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(stills));
})();
