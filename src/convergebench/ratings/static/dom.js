// Elements without markup: text is always text, so nothing a person wrote can become code.

/** Make an element; `on…` keys are listeners, `class` and `data-…` attributes, the rest properties. */
export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key.includes("-") || key === "role" || key === "for") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Paragraphs of a plain text: a blank line begins a new one. */
export function paragraphs(text) {
  const parts = String(text ?? "").split(/\n\s*\n/).map((part) => part.trim()).filter(Boolean);
  return parts.map((part) => make("p", {}, part));
}

export const byId = (id) => document.getElementById(id);

/** Wait so many milliseconds, or less when the browser says that it is online again. */
export function pause(milliseconds) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    addEventListener("online", end);
  });
}
