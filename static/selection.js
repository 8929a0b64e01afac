// Which messages of a chat are shown: of some kinds, those that hold a text, those that tell of an error.
//
// Kinds are known from the listing. A text is looked for by the server (`chat/?q=`). For errors each result is looked
// at, the newest first.

import { sortOf } from "./message.js";
import { isError } from "./result.js";
import { ask } from "./tree.js";
import { wait } from "./polling.js";
import { count, number } from "./format.js";

export const SHOWS = {
  all: { label: "All", none: "No message in this chat", takes: () => true },
  prompts: { label: "Prompts", none: "No prompts in this chat", takes: (sort) => sort === "user" },
  talk: { label: "No tools", none: "Nothing but tools in this chat", takes: (sort) => sort !== "call" && sort !== "result" },
  errors: { label: "Errors", none: "No errors in this chat", takes: (sort) => sort === "result" || sort === "system", isChecked: true },
};

const CHECKS_AT_ONCE = 4;
const TELL_MS = 150;

export class Selection {
  ids = [];
  #found = new Set();
  #abort = new AbortController();
  #telling = null;
  #isLooking = false;
  #checked = 0;
  #toCheck = 0;

  /** *chat*: path, rows, texts. *changed* is called when `ids` has changed, with those that came at the end. */
  constructor(chat, { show, q }, changed) {
    this.chat = chat;
    this.show = SHOWS[show];
    this.q = q;
    this.changed = changed;
    this.isPlain = !q && !this.show.isChecked;
    this.isAll = this.isPlain && show === "all";
  }

  end() {
    this.#abort.abort();
    clearTimeout(this.#telling);
  }

  /** Take in the messages from number *from* on. Rejects as `ask` does. */
  async extend(from) {
    const rows = this.chat.rows.slice(from).filter(({ kind }) => this.show.takes(sortOf(kind)));
    if (this.isPlain) {
      const fresh = rows.map(({ id }) => id);
      this.ids = this.ids.concat(fresh);
      this.changed(fresh);
      return;
    }
    this.#isLooking = true;
    this.#tell();
    try {
      const wanted = this.q ? await this.#holding(rows, from) : rows;
      if (this.show.isChecked) await this.#check(wanted);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      return;
    } finally {
      this.#isLooking = false;
    }
    this.#tell();
  }

  /** What was found so far, in words. */
  get words() {
    if (this.isPlain) return "";
    const what = this.q ? "found" : count(this.ids.length, "error");
    const found = this.q ? `${number(this.ids.length)} ${what}` : what;
    if (!this.#isLooking) return found;
    return this.#toCheck ? `${found}, looked at ${number(this.#checked)} of ${number(this.#toCheck)}` : `${found}, looking…`;
  }

  get isLooking() {
    return this.#isLooking;
  }

  // The rows that hold the text.
  async #holding(rows, from) {
    const wanted = new Map(rows.map((row) => [row.id, row]));
    const holding = [];
    let path = `${this.chat.path}?${new URLSearchParams({ q: this.q, ...(from && { after: from - 1 }) })}`;
    while (path) {
      const response = await this.#askPatiently(path);
      const found = (await response.json()).map(({ id }) => wanted.get(id)).filter(Boolean);
      holding.push(...found);
      if (!this.show.isChecked) this.#take(found);
      path = /^<([^>]*)>; rel="next"$/.exec(response.headers.get("Link") ?? "")?.[1];
    }
    return holding;
  }

  // One search at a time is made for a user: another page of his may be searching.
  async #askPatiently(path) {
    for (;;) {
      try {
        return await ask(path, { headers: { Accept: "application/json" }, signal: this.#abort.signal });
      } catch (error) {
        if (error.status !== 429) throw error;
        await wait(300);
      }
    }
  }

  async #check(rows) {
    this.#checked = 0;
    this.#toCheck = rows.length;
    const left = [...rows];
    const checkOn = async () => {
      for (let row; (row = left.pop()); ) {
        const text = await this.chat.texts.read(row, { signal: this.#abort.signal });
        this.#checked++;
        this.#take(isError(text.text) ? [row] : []);
      }
    };
    await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, checkOn));
    this.#toCheck = 0;
  }

  #take(rows) {
    for (const { id } of rows) this.#found.add(id);
    this.#telling ??= setTimeout(() => this.#tell(), TELL_MS);
  }

  #tell() {
    clearTimeout(this.#telling);
    this.#telling = null;
    if (this.#found.size !== this.ids.length) this.ids = [...this.#found].sort((one, other) => one - other);
    this.changed(null);
  }
}
