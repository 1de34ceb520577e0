// Talking with the server. It may be away for a while: what is asked is asked until it is answered.
import { pause } from "./dom.js";

const base = location.pathname.replace(/\/+$/, "");
const PATIENCE = 20_000; // of one attempt
const LONGEST = 8_000; // between two attempts

/** What the server refused; trying the same again would not help. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function attempt(path, body) {
  const options = { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  const response = await fetch(base + path, options);
  if (response.status === 429 || response.status >= 500) {
    const after = Number(response.headers.get("Retry-After"));
    return { wait: after > 0 ? after * 1000 : null };
  }
  const type = response.headers.get("Content-Type") ?? "";
  const reply = type.includes("json") ? await response.json() : {};
  if (!response.ok) throw new Refused(response.status, reply.error ?? `refused (${response.status})`);
  return { reply };
}

/** Ask until there is an answer; `away(times)` is called whenever there was none. */
async function ask(path, body, away) {
  for (let times = 1; ; times += 1) {
    let wait = null;
    try {
      const { reply, wait: asked } = await attempt(path, body);
      if (reply) return reply;
      wait = asked;
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
    away(times);
    const own = Math.min(LONGEST, 400 * 2 ** (times - 1)) * (0.75 + Math.random() / 2);
    await pause(Math.max(own, wait ?? 0));
  }
}

export const state = (away) => ask("/state", undefined, away);
export const consent = (away) => ask("/consent", { agree: true }, away);

/** Send one answer. Comes back only when the server says that it is kept, now or before. */
export async function answer(body, away) {
  const reply = await ask("/answers", body, away);
  if (reply.saved !== true && reply.already !== true) throw new Refused(200, "the server did not keep the answer");
  return reply;
}
