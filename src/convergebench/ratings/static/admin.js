// The organiser's page: how far everybody is, and what the answers say so far. Asks every few seconds.
import { byId, make } from "./dom.js";
import { means } from "./means.js";

const EVERY = 3000;
const DESIGNS = { absolute: "Absolute rating", single: "Single pictures", pairs: "Choice between two", labels: "Labels" };

const NAMES = { alpha: "Krippendorff's α", level: "level of measurement", stimuli: "pictures rated", raters: "raters", answers: "scores" };

async function ask(path, body) {
  const options = { cache: "no-store", signal: AbortSignal.timeout(15_000) };
  if (body) Object.assign(options, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return fetch(path, options);
}

let timer = 0;
let last = null; // when the server last answered

async function refresh() {
  clearTimeout(timer);
  let again = EVERY;
  try {
    const response = await ask("/admin/state");
    if (response.status === 401 || response.status === 404 || response.status === 403) return login();
    if (response.ok) {
      last = new Date();
      draw(await response.json());
      fresh(`Live. As of ${last.toLocaleTimeString("en-GB")}.`);
    } else {
      again = Math.max(EVERY, 1000 * (Number(response.headers.get("Retry-After")) || 0));
      fresh(`The server answers ${response.status}. Trying again…`, true);
    }
  } catch {
    fresh(last ? `The server does not answer; figures of ${last.toLocaleTimeString("en-GB")}. Trying again…` : "The server does not answer. Trying again…", true);
  }
  timer = setTimeout(refresh, again);
  return undefined;
}

function fresh(text, trouble = false) {
  const line = byId("fresh");
  line.classList.toggle("trouble", trouble);
  line.textContent = text;
}

function login() {
  clearTimeout(timer);
  byId("board").hidden = true;
  byId("login").hidden = false;
  byId("secret").focus();
}

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = byId("secret");
  const button = byId("enter");
  if (button.disabled) return;
  button.disabled = true;
  byId("refused").textContent = "";
  try {
    const response = await ask("/admin/login", { secret: field.value.trim() });
    if (response.ok) {
      field.value = "";
      byId("login").hidden = true;
      await refresh();
    } else if (response.status === 429) byId("refused").textContent = "Too many attempts. Wait a minute and try again.";
    else byId("refused").textContent = "That is not the secret of this study.";
  } catch {
    byId("refused").textContent = "The server does not answer. Try again.";
  }
  button.disabled = false;
});

byId("leave").addEventListener("click", async () => {
  try {
    if ((await ask("/admin/logout", {})).ok) login();
  } catch {
    fresh("The server does not answer: still logged in.", true);
  }
});

const seconds = (value) => (value === null || value === undefined ? "–" : value < 99.5 ? `${value.toFixed(value < 9.95 ? 1 : 0)} s` : `${(value / 60).toFixed(1)} min`);

function moment(text) {
  if (!text) return "–";
  const when = new Date(text);
  if (Number.isNaN(when.getTime())) return text;
  const today = when.toDateString() === new Date().toDateString();
  return when.toLocaleString("en-GB", today ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
}

function draw(state) {
  byId("login").hidden = true;
  byId("board").hidden = false;
  const { participants, study } = state;
  if (study) {
    document.title = `${study.title}: organiser`;
    byId("title").textContent = study.title;
    byId("design").textContent = DESIGNS[study.design] ?? "Rating study";
  }
  byId("leave").hidden = !state.logout;
  const finished = participants.filter((each) => each.finished).length;
  const begun = participants.filter((each) => each.started).length;
  const done = participants.reduce((sum, each) => sum + each.done, 0);
  const total = participants.reduce((sum, each) => sum + each.total, 0);
  const alphas = Object.entries(state.agreement ?? {}).filter(([name]) => /(^|: )alpha$/.test(name));
  const [named, alpha] = alphas[0] ?? ["", null];
  const of = alphas.length > 1 ? ` (${named.split(": ")[0]})` : ""; // one of several questions
  const figure = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)));
  byId("figures").replaceChildren(
    figure("pages answered", `${done} of ${total}`),
    figure("participants finished", `${finished} of ${participants.length}`),
    figure("under way", begun - finished),
    figure(`Krippendorff's α${of}`, typeof alpha === "number" ? alpha.toFixed(2) : "–"),
  );
  const rows = state.methods?.filter((method) => method.answers) ?? [];
  byId("methods").replaceChildren(...(rows.length ? means(rows, study) : [make("p", { class: "nothing" }, "No answers yet.")]));
  agreement(state.agreement ?? {});
  people(participants);
  const comments = state.comments ?? [];
  byId("comments-section").hidden = !comments.length;
  byId("comments").replaceChildren(...comments.map((each) => make("li", {}, make("span", { class: "who" }, `${each.participant}, ${moment(each.at)}`), make("p", {}, each.text))));
}

/** Figures come by name, `quality: alpha`; the question is said where there are several. */
function agreement(figures) {
  const shown = Object.entries(figures).filter(([, value]) => ["number", "string", "boolean"].includes(typeof value));
  const split = (name) => (name.includes(": ") ? name.split(": ", 2) : ["", name]);
  const several = new Set(shown.map(([name]) => split(name)[0])).size > 1;
  const rows = shown.map(([name, value]) => {
    const [question, plain] = split(name);
    const words = NAMES[plain] ?? plain.replaceAll("_", " ");
    const text = typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : String(value);
    return make("div", {}, make("dt", {}, several && question ? `${question}: ${words}` : words), make("dd", {}, text));
  });
  byId("agreement").replaceChildren(...(rows.length ? rows : [make("p", { class: "nothing" }, "Not known before two participants have rated the same pictures.")]));
}

/** Rows are changed in place, so that what is marked or read out is not taken away every time. */
function people(participants) {
  const body = byId("people");
  const known = new Map([...body.rows].map((row) => [row.dataset.id, row]));
  for (const each of participants) {
    const row = known.get(each.id) ?? body.appendChild(blank(each.id));
    known.delete(each.id);
    const [bar, count, state, checks, pace, when] = [...row.cells].slice(1);
    bar.firstChild.max = each.total || 1;
    bar.firstChild.value = each.done;
    const failed = each.attention_seen - each.attention_passed;
    text(count, `${each.done} of ${each.total}`);
    text(state, each.finished ? "finished" : each.started ? "under way" : "not begun");
    text(checks, each.attention_seen ? `${each.attention_passed} of ${each.attention_seen} passed` : "–");
    checks.classList.toggle("failed", failed > 0);
    text(pace, seconds(each.median_seconds));
    text(when, moment(each.last));
  }
  for (const row of known.values()) row.remove();
}

function text(cell, words) {
  if (cell.textContent !== words) cell.textContent = words;
}

function blank(id) {
  const cells = ["num", "", "", "num", "when"].map((name) => make("td", { class: name }));
  const bar = make("td", { class: "bar-cell" }, make("progress", { "aria-label": `Progress of ${id}` }));
  return make("tr", { "data-id": id }, make("th", { scope: "row" }, id), bar, ...cells);
}

refresh();
