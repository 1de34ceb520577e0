// What is marked but not yet sent, and the time it took: kept in this tab, so that a reload loses nothing.

const key = (item) => `draft ${location.pathname} ${item}`;

export function read(item) {
  try {
    return JSON.parse(sessionStorage.getItem(key(item))) ?? {};
  } catch {
    return {}; // no storage, or not ours: begin afresh
  }
}

export function keep(item, draft) {
  try {
    sessionStorage.setItem(key(item), JSON.stringify(draft));
  } catch {
    // A full or forbidden storage costs the comfort only.
  }
}

export function forget(item) {
  try {
    sessionStorage.removeItem(key(item));
  } catch {
    // as above
  }
}

/** Counts milliseconds while the page can be seen. */
export class Clock {
  constructor(before = 0) {
    this.before = Number.isFinite(before) ? before : 0;
    this.since = document.hidden ? null : performance.now();
    this.listener = () => {
      this.before = this.milliseconds;
      this.since = document.hidden ? null : performance.now();
    };
    document.addEventListener("visibilitychange", this.listener);
  }

  get milliseconds() {
    return Math.round(this.before + (this.since === null ? 0 : performance.now() - this.since));
  }

  stop() {
    this.before = this.milliseconds;
    this.since = null;
    document.removeEventListener("visibilitychange", this.listener);
  }
}
