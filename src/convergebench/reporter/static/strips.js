// The filmstrips: rows that a long page left folded, arrow keys from picture to picture, and the
// scripts of data, which a page that was opened from a file cannot fetch.
window.ConvergeBench = window.ConvergeBench || {};
(() => {
  "use strict";
  const main = document.getElementById("main");
  const NEAR = "1200px";
  const told = {};
  const waiting = {};

  // A script of data calls this; what it tells is kept for whoever asks.
  window.convergebench = (kind, data) => {
    told[kind] = data;
    if (waiting[kind]) waiting[kind].done(data);
  };

  ConvergeBench.load = (kind, path) => {
    if (waiting[kind]) return waiting[kind].promise;
    const mine = (waiting[kind] = {});
    mine.promise = new Promise((done, failed) => {
      mine.done = done;
      const script = document.createElement("script");
      script.src = path;
      script.onerror = () => failed(new Error(`${path} is not there`));
      document.head.append(script);
    });
    return mine.promise;
  };

  // -- folded rows ---------------------------------------------------------------------------------

  const links = (row) => [...row.querySelectorAll("td > a")];
  // One stop per row for the tabulator; arrows go on from there.
  const onestop = (row) => links(row).forEach((link, index) => index && (link.tabIndex = -1));

  function unfold(row) {
    if (!("folded" in row.dataset) || !told.rows) return;
    const head = row.cells[0];
    row.innerHTML = told.rows[row.id]; // escaped by the template, as the page's own rows are
    row.prepend(head);
    delete row.dataset.folded;
    onestop(row);
  }

  ConvergeBench.cellAt = (id, step) => {
    const row = document.getElementById(id);
    if (!row) return null;
    unfold(row);
    return row.cells[step + 1] || null;
  };

  const folded = [...main.querySelectorAll("tr[data-folded]")];
  if (folded.length) {
    const seen = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          unfold(target);
          seen.unobserve(target);
        }
      },
      { rootMargin: NEAR },
    );
    ConvergeBench.load("rows", main.dataset.rows).then(() => {
      for (const row of folded) seen.observe(row);
      window.addEventListener("beforeprint", () => folded.forEach(unfold));
    });
  }

  // -- keys ----------------------------------------------------------------------------------------

  ConvergeBench.rove = (link) => {
    for (const other of links(link.closest("tr"))) other.tabIndex = -1;
    link.tabIndex = 0;
    link.focus();
  };

  function beside(link, key) {
    const row = link.closest("tr");
    const mine = links(row);
    const at = mine.indexOf(link);
    if (key === "ArrowLeft") return mine[at - 1];
    if (key === "ArrowRight") return mine[at + 1];
    if (key === "Home") return mine[0];
    if (key === "End") return mine[mine.length - 1];
    const next = key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling;
    if (!next) return undefined;
    unfold(next);
    const cell = next.cells[link.closest("td").cellIndex];
    return (cell && cell.querySelector("a")) || links(next).pop();
  }

  main.querySelectorAll(".strip tbody tr").forEach(onestop);
  main.addEventListener("keydown", (event) => {
    const link = event.target.closest(".strip td > a");
    if (!link || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (!/^(Arrow(Left|Right|Up|Down)|Home|End)$/.test(event.key)) return;
    const next = beside(link, event.key);
    event.preventDefault();
    if (next) ConvergeBench.rove(next);
  });
})();
