// Means of methods with their intervals, as rows of a table with a line each.
import { make } from "./dom.js";

const NAMES = {
  quality: "Mean rating", preference: "Share of comparisons won",
  infidelity: "Share labelled infidelity", "over-generation": "Share labelled over-generation",
};
const WIDE = 300; // drawing units of a line
const SIDE = 8;

function drawn(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** One table per question; methods in order of their mean, best first. */
export function means(rows, study) {
  const questions = [...new Set(rows.map((row) => row.question))];
  return questions.map((question) => table(question, rows.filter((row) => row.question === question), study));
}

function table(question, rows, study) {
  const scaled = question === "quality";
  const low = scaled ? (study?.scale?.low ?? 0) : 0;
  const high = scaled ? (study?.scale?.high ?? 5) : 1;
  const known = rows.filter((row) => typeof row.mean === "number").sort((a, b) => b.mean - a.mean);
  const show = (value) => (scaled ? value.toFixed(2) : `${Math.round(value * 100)} %`);
  const body = known.map((row) => {
    const reach = typeof row.low === "number" && typeof row.high === "number";
    const interval = reach ? ` [${show(row.low)}, ${show(row.high)}]` : "";
    return make("tr", {},
      make("th", { scope: "row" }, row.label),
      make("td", { class: "line" }, line(row, low, high, reach)),
      make("td", { class: "num" }, make("b", {}, show(row.mean)), interval),
      make("td", { class: "num" }, String(row.answers)));
  });
  const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Method"), make("th", { scope: "col" }, `${scaled ? low : "0 %"} to ${scaled ? high : "100 %"}, with 95 % intervals`), make("th", { scope: "col", class: "num" }, "Mean"), make("th", { scope: "col", class: "num" }, "Answers")));
  const name = make("caption", {}, NAMES[question] ?? question);
  return make("div", { class: "scroll" }, make("table", { class: "means" }, name, head, make("tbody", {}, ...body)));
}

function line(row, low, high, reach) {
  // Places are shares of the width, so that the drawing stretches and its dots stay round.
  const at = (value) => `${Math.min(100, Math.max(0, ((value - low) / (high - low)) * 100))}%`;
  const art = drawn("svg", { width: WIDE, height: 28, "aria-hidden": "true" });
  art.append(drawn("line", { class: "track", x1: "0%", x2: "100%", y1: 14, y2: 14 }));
  for (const end of ["0%", "100%"]) art.append(drawn("line", { class: "track", x1: end, x2: end, y1: 14 - SIDE, y2: 14 + SIDE }));
  if (reach) art.append(drawn("line", { class: "reach", x1: at(row.low), x2: at(row.high), y1: 14, y2: 14 }));
  art.append(drawn("circle", { class: "middle", cx: at(row.mean), cy: 14, r: 6 }));
  return art;
}
