// The participant's page. The server's state decides what is shown; this page never runs ahead of it.
import { byId, make, paragraphs } from "./dom.js";
import * as drafts from "./draft.js";
import { ItemPage } from "./item.js";
import { listenToKeys } from "./keys.js";
import { Lightbox } from "./lightbox.js";
import * as screens from "./screens.js";
import * as server from "./server.js";
import { View } from "./view.js";

const READ = "instructions"; // kept among the drafts: in this tab they were read
const UNREAD = 600; // milliseconds for which a second click does not go past what was just told

class App {
  view = new View();
  lightbox = new Lightbox(this.view);
  page = null;
  fed = null; // the state that follows, while feedback on a practice page is read
  sending = false;

  constructor() {
    this.submit = this.submit.bind(this);
    byId("next").addEventListener("click", this.submit);
    byId("zoom-in").addEventListener("click", () => this.pane?.step(1));
    byId("zoom-out").addEventListener("click", () => this.pane?.step(-1));
    byId("zoom-reset").addEventListener("click", () => this.view.reset());
    byId("open-help").addEventListener("click", () => this.help());
    byId("open-instructions").addEventListener("click", () => byId("instructions").showModal());
    for (const kind of ["input", "reference"]) this.holds(byId(`hold-${kind}`), kind);
    this.view.addEventListener("change", () => this.level());
    listenToKeys(this);
    document.addEventListener("focusin", () => this.page?.frame());
    addEventListener("pagehide", () => this.keep());
    addEventListener("pageshow", (event) => { if (event.persisted) this.begin(); });
  }

  /** The pane that keys and buttons zoom: the lightbox's, else that of the card in hand. */
  get pane() {
    if (this.lightbox.isOpen) return this.lightbox.pane;
    return this.page?.panes.at(-1) ?? null;
  }

  async begin() {
    try {
      const state = await server.state((times) => { if (times > 1) this.away(); });
      await this.show(state);
    } catch (error) {
      this.refused(error);
    }
  }

  away() {
    if (!this.page) byId("stage").replaceChildren(make("p", { class: "sheet wait" }, "The server does not answer. Trying again…"));
  }

  refused(error) {
    if (!(error instanceof server.Refused)) throw error;
    this.leave();
    if (error.status === 404) screens.trouble("This link leads nowhere", "Please open the whole link that you were sent, or ask the person who sent it for a new one.");
    else screens.trouble("That did not work", `The server says: ${error.message}`);
  }

  /** Shows what the server's state says is next. */
  async show(state) {
    const { study } = state;
    this.leave();
    document.title = study.title;
    byId("title").textContent = study.title;
    byId("instructions").querySelector(".text").replaceChildren(...paragraphs(study.instructions));
    if (state.stage === "consent") {
      const line = await screens.consent(study);
      const next = await server.consent(() => { line.textContent = "Not saved yet, trying again…"; });
      return this.show(next);
    }
    if (state.stage === "done" || !state.item) return screens.thanks(state);
    if (!state.done && !drafts.read(READ).seen) {
      await screens.instructions(state);
      drafts.keep(READ, { seen: true });
    }
    return this.open(state);
  }

  leave() {
    this.lightbox.close();
    this.clock?.stop();
    this.page?.close();
    this.page = null;
    this.fed = null;
  }

  open(state) {
    const { study, item } = state;
    const draft = drafts.read(item.id);
    const practice = item.kind === "practice";
    this.state = state;
    this.view.reset();
    this.page = new ItemPage(study, item, draft, this.view, (index) => this.lightbox.open(this.page, index));
    this.clock = new drafts.Clock(draft.milliseconds);
    const count = practice ? `Practice: ${state.practice_left} left` : `${state.done + 1} of ${state.total}`;
    byId("count").textContent = count;
    byId("progress").max = state.total || 1;
    byId("progress").value = state.done;
    this.page.heading.textContent = practice ? count : `Page ${count}`;
    byId("hold-input").hidden = !item.input;
    byId("hold-reference").hidden = !item.reference;
    const shown = [study.design, ...["input", "reference"].filter((kind) => item[kind]), ...(study.design === "pairs" && study.ties ? ["ties"] : [])];
    for (const row of document.querySelectorAll("#help [data-for]")) row.hidden = !row.dataset.for.split(" ").some((word) => shown.includes(word));
    const last = !practice && state.done + 1 >= state.total;
    byId("next").textContent = last ? "Finish" : "Next";
    document.body.dataset.screen = "item";
    byId("stage").replaceChildren(this.page.root);
    this.page.arrange();
    this.level();
    scrollTo(0, 0);
    this.page.heading.focus({ preventScroll: true });
    this.page.frame();
    this.loaded = false;
    const page = this.page;
    page.ready.then(() => {
      if (this.page !== page) return;
      this.loaded = true;
      this.clock.stop(); // nobody looks at pictures that are still loading
      this.clock = new drafts.Clock(draft.milliseconds);
      this.tell();
    });
    page.marks.addEventListener("change", () => this.changed());
    page.comment?.addEventListener("input", () => this.keep());
    this.tell();
  }

  changed() {
    this.keep();
    this.tell();
  }

  keep() {
    if (!this.page || this.fed) return;
    drafts.keep(this.page.item.id, { values: this.page.marks.values, comment: this.page.comment?.value, milliseconds: this.clock.milliseconds });
  }

  /** Says what is still to do; the button is there to be pressed only when nothing is. */
  tell() {
    if (!this.page || this.sending || this.fed) return;
    const { places, missing } = this.page.marks;
    const ready = this.loaded && !missing.length;
    byId("next").disabled = !ready;
    const marked = this.page.study.design === "pairs" ? "" : `${places.length - missing.length} of ${places.length} answered`;
    this.say(this.loaded ? marked : "Loading the pictures…");
  }

  say(text, trouble = false) {
    const line = byId("status");
    line.classList.toggle("trouble", trouble);
    if (line.textContent !== text) line.textContent = text;
  }

  level() {
    const pane = this.page?.panes.at(-1);
    if (!pane) return;
    byId("zoom-reset").textContent = this.view.zoom > 1 ? `${Math.round(pane.ratio * 100)} %` : "fit";
    byId("zoom-out").disabled = this.view.zoom <= 1;
  }

  holds(button, kind) {
    const show = (on) => {
      button.setAttribute("aria-pressed", String(on));
      this.compare(on ? kind : null);
    };
    button.addEventListener("pointerdown", (event) => { button.setPointerCapture(event.pointerId); show(true); });
    for (const end of ["pointerup", "pointercancel", "blur"]) button.addEventListener(end, () => show(false));
    button.addEventListener("contextmenu", (event) => event.preventDefault());
    button.addEventListener("keydown", (event) => { if (event.key === " " || event.key === "Enter") { event.preventDefault(); show(true); } });
    button.addEventListener("keyup", () => show(false));
  }

  compare(kind) {
    if (this.lightbox.isOpen) this.lightbox.pane?.compare(kind);
    else this.page?.compare(kind);
  }

  help() {
    const dialog = byId("help");
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  async submit() {
    if (!this.page || this.sending) return;
    if (this.fed) {
      if (byId("next").disabled) return;
      await this.show(this.fed).catch((error) => this.refused(error));
      return;
    }
    const { marks, item } = this.page;
    if (!this.loaded) return;
    if (marks.missing.length) {
      this.say(`${marks.missing.length} of ${marks.places.length} still to answer`, true);
      this.page.focus(marks.missing[0]);
      return;
    }
    this.keep();
    this.sending = true;
    marks.locked = true;
    byId("next").disabled = true;
    this.say("Saving…");
    const body = { item: item.id, values: marks.values, milliseconds: this.clock.milliseconds };
    const comment = this.page.comment?.value.trim();
    if (comment) body.comment = comment;
    try {
      const reply = await server.answer(body, () => this.say("Not saved yet, trying again…", true));
      document.dispatchEvent(new CustomEvent("answered", { detail: { ...body, saved: reply.saved === true } }));
      drafts.forget(item.id);
      this.sending = false;
      await this.after(reply);
    } catch (error) {
      this.sending = false;
      marks.locked = false;
      if (error.status === 422) await this.mistaken(error).catch((another) => this.refused(another));
      else this.refused(error);
    }
  }

  /** A refused answer: the server may be elsewhere (another tab), else its sentence is shown. */
  async mistaken(error) {
    const state = await server.state(() => {});
    if (state.item?.id !== this.page.item.id) return this.show(state);
    byId("next").disabled = false;
    this.say(error.message, true);
    return undefined;
  }

  /** Goes on; after a practice page only when what there is to say about it was read. */
  async after(reply) {
    const practice = this.page.item.kind === "practice";
    const over = practice && reply.item?.kind !== "practice";
    if (!practice || (!reply.feedback && !over)) return this.show(reply);
    this.fed = reply;
    this.clock.stop();
    const note = make("div", { class: "note feedback", role: "status", tabIndex: -1 });
    if (reply.feedback) note.append(make("p", {}, reply.feedback));
    if (over && reply.item) note.append(make("p", {}, "That was the practice. From now on your answers count."));
    this.page.note.remove();
    this.page.root.prepend(note);
    for (const input of this.page.root.querySelectorAll("input, textarea")) input.disabled = true;
    byId("next").textContent = "Go on";
    setTimeout(() => { if (this.fed === reply) byId("next").disabled = false; }, UNREAD);
    this.say("");
    scrollTo(0, 0);
    note.focus({ preventScroll: true });
    return undefined;
  }
}

history.replaceState(null, "", location.href);
new App().begin();
