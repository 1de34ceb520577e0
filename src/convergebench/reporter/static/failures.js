// Lets the legend pick editors: the others fade in tables and curves and leave the gallery.
(() => {
  "use strict";
  const legend = document.getElementById("editors");
  if (!legend) return;
  const keys = [...legend.querySelectorAll("[data-editor]")];
  const all = legend.querySelector("[data-all]");

  function show() {
    const chosen = keys.filter((key) => key.getAttribute("aria-pressed") === "true");
    const names = new Set(chosen.map((key) => key.dataset.editor));
    const out = (each) => names.size > 0 && !names.has(each.dataset.of);
    for (const each of document.querySelectorAll(".curves [data-of]")) {
      each.classList.toggle("dim", out(each));
    }
    for (const each of document.querySelectorAll(".rates tr[data-of] > td")) {
      each.classList.toggle("dim", out(each.parentNode));
    }
    for (const each of document.querySelectorAll(".cases [data-of]")) each.hidden = out(each);
    all.hidden = names.size === 0;
  }

  for (const key of keys) {
    key.disabled = false;
    key.addEventListener("click", () => {
      key.setAttribute("aria-pressed", key.getAttribute("aria-pressed") !== "true");
      show();
    });
  }
  all.disabled = false;
  all.addEventListener("click", () => {
    for (const key of keys) key.setAttribute("aria-pressed", "false");
    show();
  });
  legend.classList.add("live");
  show();
})();
