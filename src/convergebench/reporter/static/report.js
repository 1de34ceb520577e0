// Draws the curves and lets the legend pick editors out, in all charts at once.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const keys = [...document.querySelectorAll(".legend [data-editor]")];
  const all = document.querySelector(".legend [data-all]");
  let drawn = [];
  let turn = 0;

  const chosen = () =>
    keys.filter((key) => key.getAttribute("aria-pressed") === "true").map((key) => key.dataset.editor);

  function pick() {
    const names = chosen();
    all.hidden = names.length === 0;
    for (const { view } of drawn) view.signal("chosen", names).runAsync();
  }

  async function draw() {
    const mine = ++turn;
    const theme = dark.matches ? "dark" : "light";
    for (const each of drawn.splice(0)) each.finalize();
    for (const [id, chart] of Object.entries(data)) {
      const place = document.getElementById(id);
      const figure = place.closest("figure");
      figure.classList.add("live"); // before drawing: a hidden place has no width to fill
      try {
        const made = await window.vegaEmbed(place, chart.spec, {
          mode: "vega-lite",
          renderer: "svg",
          ast: true,
          config: chart[theme],
          tooltip: { theme },
          actions: false,
        });
        if (mine !== turn) return made.finalize();
        drawn.push(made);
      } catch (error) {
        figure.classList.remove("live"); // the still drawing is there
        console.error(error);
      }
    }
    pick();
  }

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
  dark.addEventListener("change", draw);
  draw();
})();
