// The messages that are seen: each is an article at once, and is filled when its text is here.

import { markFound } from "./matches.js";
import { article, fill, fillFailed, sortOf } from "./message.js";
import { MORE } from "./texts.js";

const WHOLE_CALL = 1024 * 1024; // bytes: an edit is shown whole
const MARK_MS = 50;

export class Loader {
  #folds = new Map(); // what somebody has folded or unfolded, by id
  #running = new Map(); // id → what ends its being read
  #marking = null;

  /** *change* (act) lets `act` change elements while what is seen stays (ScrollList). */
  constructor(texts, change) {
    this.texts = texts;
    this.change = change;
    this.q = "";
  }

  /** An article for *message*; *before* is the message above it, *place* where it stands (see `article`). */
  show(message, before, place) {
    const made = article(message, before, place);
    const known = this.texts.peek(message.id);
    if (known) this.#fill(made, known);
    else this.#read(made, message);
    return made;
  }

  /** A message is not seen any longer: it need not be read. */
  drop(id) {
    this.#running.get(id)?.abort();
    this.#running.delete(id);
  }

  /** Another transcript: its ids mean other messages. */
  forget() {
    this.#folds.clear();
    this.texts.clear();
  }

  async #read(made, message) {
    const running = new AbortController();
    this.#running.set(message.id, running);
    try {
      let text = await this.texts.read(message, { signal: running.signal });
      if (sortOf(message.kind) === "call" && !text.isWhole) text = await this.texts.read(message, { more: WHOLE_CALL });
      if (made.isConnected) this.change(() => this.#fill(made, text));
    } catch (error) {
      if (error.name !== "AbortError") this.change(() => fillFailed(made, error));
    } finally {
      if (this.#running.get(message.id) === running) this.#running.delete(message.id);
    }
  }

  #fill(made, text) {
    fill(made, text, this.#folds, () => this.#readOn(made, text), this.q);
    this.mark();
  }

  async #readOn(made, { message }) {
    try {
      const longer = await this.texts.read(message, { more: MORE });
      this.change(() => this.#fill(made, longer));
    } catch (error) {
      this.change(() => fillFailed(made, error));
    }
  }

  /** Mark what is looked for in what is seen, soon. */
  mark() {
    clearTimeout(this.#marking);
    this.#marking = setTimeout(() => markFound(document.querySelectorAll(".said"), this.q), MARK_MS);
  }
}
