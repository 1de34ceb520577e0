// The pages of text: consent, instructions, thanks, trouble.
import { byId, make, paragraphs } from "./dom.js";

/** Puts a page of text on the stage; its heading gets the focus, so that it is read out. */
function sheet(screen, title, ...children) {
  const heading = make("h1", { tabIndex: -1 }, title);
  document.body.dataset.screen = screen;
  byId("stage").replaceChildren(make("div", { class: "sheet" }, heading, ...children));
  scrollTo(0, 0);
  heading.focus({ preventScroll: true });
}

/** Shows the consent text; resolves when the participant agrees. */
export function consent(study) {
  return new Promise((resolve) => {
    const trouble = make("p", { class: "trouble", role: "alert" });
    const agree = make("button", { type: "button", class: "main", id: "agree", onclick: () => { agree.disabled = true; resolve(trouble); } }, "I agree, begin");
    const decline = make("button", { type: "button", id: "decline", onclick: () => declined(study, resolve) }, "I do not agree");
    sheet("consent", study.title, make("div", { class: "text" }, ...paragraphs(study.consent)), make("div", { class: "choices" }, agree, decline), trouble);
  });
}

function declined(study, resolve) {
  const back = make("button", { type: "button", onclick: () => consent(study).then(resolve) }, "Go back");
  sheet("declined", "That is all right", make("p", {}, "Nothing was recorded. You can close this page."), make("div", { class: "choices" }, back));
}

/** Shows the instructions; resolves when they were read. */
export function instructions(state) {
  const facts = [`There ${state.total === 1 ? "is 1 page" : `are ${state.total} pages`}`];
  if (state.practice_left) facts.push(`after ${state.practice_left} for practice`);
  return new Promise((resolve) => {
    sheet(
      "instructions",
      "What to do",
      make("div", { class: "text" }, ...paragraphs(state.study.instructions)),
      make("p", { class: "facts" }, `${facts.join(" ")}. You can stop at any time and go on later with the same link: what was answered is kept. `, make("span", { class: "keyboard" }, "Press ? for the keys.")),
      make("div", { class: "choices" }, make("button", { type: "button", class: "main", id: "start", onclick: resolve }, "Start")),
    );
  });
}

export function thanks(state) {
  const parts = [make("p", {}, state.total === 1 ? "Your answer is stored." : `All ${state.total} pages are answered and stored.`)];
  if (state.code) {
    const code = make("output", { id: "code" }, state.code);
    const copy = make("button", { type: "button", id: "copy", onclick: () => copied(copy, code) }, "Copy");
    parts.push(make("p", {}, "Your completion code:"), make("div", { class: "code" }, code, copy));
  }
  parts.push(make("p", {}, "You can close this page."));
  sheet("done", "Thank you", ...parts);
}

async function copied(button, code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code); // no permission: the code is chosen, ready to be copied
  }
}

export function trouble(title, text) {
  sheet("trouble", title, make("p", {}, text), make("div", { class: "choices" }, make("button", { type: "button", class: "main", onclick: () => location.reload() }, "Try again")));
}
