// Scales, yes-or-no questions and the choice between two. Native radio buttons: every browser's
// keyboard, every screen reader. The same marks may have several controls (page and lightbox).
import { make } from "./dom.js";
import { numbers } from "./marks.js";

const MOST_STEPS = 11; // more numbers than this are a slider
let made = 0;

function radios(marks, place, options, named, signal) {
  made += 1;
  const inputs = options.map(([value]) => make("input", {
    type: "radio", name: `mark-${made}`, value: String(value),
    onchange: () => marks.set(place, value),
  }));
  const follow = () => {
    const now = marks.get(place);
    inputs.forEach((input, index) => { input.checked = options[index][0] === now; });
  };
  marks.addEventListener("change", follow, { signal });
  follow();
  const steps = inputs.map((input, index) => {
    const [, text, spoken] = options[index];
    if (spoken) input.setAttribute("aria-label", spoken);
    return make("label", { class: "step" }, input, make("span", {}, text));
  });
  const group = make("fieldset", { role: "radiogroup", "aria-label": named, "data-place": place.join(" ") });
  return { group, steps: make("div", { class: "steps" }, ...steps) };
}

/** A number for one picture. */
export function scaleControl(marks, place, name, signal) {
  const { low_label: low, high_label: high, ...scale } = marks.scale;
  const values = numbers(scale);
  const ends = make("div", { class: "ends", "aria-hidden": "true" }, make("span", {}, low ?? ""), make("span", {}, high ?? ""));
  if (values.length > MOST_STEPS) return slider(marks, place, name, scale, ends, signal);
  const options = values.map((value, index) => {
    const end = index === 0 ? low : index === values.length - 1 ? high : "";
    return [value, String(value), end ? `${value}, ${end}` : String(value)];
  });
  const { group, steps } = radios(marks, place, options, `${name}: rating`, signal);
  group.className = "scale";
  group.append(steps, ends);
  return group;
}

function slider(marks, place, name, scale, ends, signal) {
  const shown = make("output", {});
  const input = make("input", { type: "range", min: scale.low, max: scale.high, step: scale.step, "aria-label": `${name}: rating` });
  const take = () => marks.set(place, Number(input.value));
  // A thumb that nobody touched is no rating, wherever it stands.
  for (const kind of ["input", "pointerup", "keyup"]) {
    input.addEventListener(kind, (event) => { if (event.key !== "Tab") take(); });
  }
  const follow = () => {
    const now = marks.get(place);
    if (now !== undefined) input.value = now;
    shown.textContent = now === undefined ? "–" : String(now);
    group.classList.toggle("untouched", now === undefined);
  };
  const group = make("fieldset", { class: "scale slider", "data-place": place.join(" ") }, make("div", { class: "steps" }, input, shown), ends);
  marks.addEventListener("change", follow, { signal });
  follow();
  return group;
}

/** Yes or no to one question about one picture. */
export function questionControl(marks, place, name, asked, signal) {
  const { group, steps } = radios(marks, place, [[true, "Yes"], [false, "No"]], `${name}: ${asked}`, signal);
  group.className = "question";
  group.append(make("span", { class: "asked", "aria-hidden": "true" }, asked), steps);
  return group;
}

/** One of two pictures, or neither. */
export function choiceControl(marks, item, asked, signal) {
  const [a, b] = item.slots;
  const options = [[a.id, `${a.label} is better`, `Picture ${a.label}`]];
  if (marks.ties) options.push(["tie", "No difference"]);
  options.push([b.id, `${b.label} is better`, `Picture ${b.label}`]);
  const { group, steps } = radios(marks, ["choice"], options, asked, signal);
  group.className = "verdict";
  group.append(make("span", { class: "asked", "aria-hidden": "true" }, asked), steps);
  return group;
}
