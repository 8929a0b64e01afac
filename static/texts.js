// The texts of messages, read a piece at a time and kept while there is room. A message never changes.

import { ask } from "./tree.js";

export const PIECE = 32 * 1024; // bytes: of most messages this is all
export const MORE = 256 * 1024;
const ROOM = 16 * 1024 * 1024; // characters
const AT_ONCE = 4; // a browser keeps six connections to a server, and following takes one

/** The part of a message that was read: text, and how many bytes that is of how many. */
class Text {
  text = "";
  read = 0;
  #decoder = new TextDecoder();

  constructor(message) {
    this.message = message;
  }

  get isWhole() {
    return this.read >= this.message.size;
  }

  async readOn(most, signal) {
    if (this.isWhole) return;
    const { href, size } = this.message;
    const end = Math.min(size, this.read + most);
    const part = this.read > 0 || end < size;
    const headers = part ? { Range: `bytes=${this.read}-${end - 1}` } : {};
    const data = new Uint8Array(await (await ask(href, { headers, signal })).arrayBuffer());
    this.read += data.length;
    this.text += this.#decoder.decode(data, { stream: this.read < size });
  }
}

/** Reads messages, the one asked for last first; those that nobody wants any longer are not read. */
export class Texts {
  #kept = new Map(); // by id, the one used longest ago first
  #characters = 0;
  #queue = [];
  #running = 0;

  /** What is here of a message already, else undefined. */
  peek(id) {
    const text = this.#kept.get(id);
    if (text) this.#keep(id, text);
    return text;
  }

  /** Read *most* bytes more of a message than there are, or its first piece. Rejects as `ask` does. */
  async read(message, { more = 0, signal } = {}) {
    const known = this.peek(message.id);
    if (known && !more) return known;
    await this.#turn(signal);
    const text = this.peek(message.id) ?? new Text(message);
    const before = text.text.length;
    try {
      await text.readOn(more || PIECE, signal);
    } finally {
      this.#running--;
      this.#next();
    }
    this.#characters += text.text.length - before;
    this.#keep(message.id, text);
    return text;
  }

  clear() {
    this.#kept.clear();
    this.#characters = 0;
  }

  #keep(id, text) {
    this.#kept.delete(id);
    this.#kept.set(id, text);
    for (const [oldest, { text: held }] of this.#kept) {
      if (this.#characters <= ROOM || oldest === id) break;
      this.#kept.delete(oldest);
      this.#characters -= held.length;
    }
  }

  #turn(signal) {
    return new Promise((resolve, reject) => {
      this.#queue.push({ resolve, reject, signal });
      this.#next();
    });
  }

  #next() {
    while (this.#queue.length && this.#running < AT_ONCE) {
      const { resolve, reject, signal } = this.#queue.pop();
      if (signal?.aborted) {
        reject(signal.reason);
      } else {
        this.#running++;
        resolve();
      }
    }
  }
}
