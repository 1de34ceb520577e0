// What a participant has marked on the current item, in the form in which it is sent.

/** A mark for every slot (a number), for every slot and question (yes or no), or one choice. */
export class Marks extends EventTarget {
  constructor(study, item, values = {}) {
    super();
    this.design = study.design;
    this.slots = item.slots.map((slot) => slot.id);
    this.questions = study.questions.map((question) => question.id);
    this.ties = study.ties;
    this.scale = study.scale;
    this.values = {};
    this.locked = false;
    for (const place of this.places) {
      const value = this.pick(values, place);
      if (this.fits(value)) this.put(place, value);
    }
  }

  /** Everything that must be marked: [slot] or [slot, question] or ["choice"]. */
  get places() {
    if (this.design === "pairs") return [["choice"]];
    if (this.design === "labels") return this.slots.flatMap((slot) => this.questions.map((question) => [slot, question]));
    return this.slots.map((slot) => [slot]);
  }

  get missing() {
    return this.places.filter((place) => this.get(place) === undefined);
  }

  get(place) {
    return this.pick(this.values, place);
  }

  /** Marks a place; not what does not fit, and nothing while an answer is on its way (`locked`). */
  set(place, value) {
    const good = !this.locked && this.fits(value);
    if (good) this.put(place, value);
    this.dispatchEvent(new Event("change")); // a control that was turned in vain turns back
    return good;
  }

  fits(value) {
    if (this.design === "labels") return typeof value === "boolean";
    if (this.design === "pairs") return this.slots.includes(value) || (value === "tie" && this.ties);
    return numbers(this.scale).includes(value);
  }

  pick(values, [first, second]) {
    const found = values?.[first];
    return second === undefined ? found : found?.[second];
  }

  put([first, second], value) {
    if (second === undefined) this.values[first] = value;
    else this.values[first] = { ...this.values[first], [second]: value };
  }
}

/** The numbers of a scale, from low to high. */
export function numbers({ low, high, step }) {
  const count = Math.round((high - low) / step);
  return Array.from({ length: count + 1 }, (_, index) => Number((low + index * step).toFixed(6)));
}
