// Stored sessions, of agents that run and of those that do not: the newest first, some at a time, and only when somebody unfolds them.

import { ageOf } from "./ages.js";
import { element, setShortText } from "./elements.js";
import { Facts, list, orNothing } from "./tree.js";
import { number } from "./format.js";

const AT_ONCE = 30;
const FACTS = ["title", "cwd", "model"];

/** Add the stored sessions to *main*, where the tree has them. */
export async function addSessions(main) {
  const harnesses = (await orNothing(list("/sessions/")).catch(() => [])).filter(({ type }) => type === "directory");
  if (!harnesses.length) return;
  const body = element("div");
  const details = element("details", { class: "sessions" }, element("summary", {}, element("h2", {}, "Kept sessions")), body);
  details.addEventListener("toggle", () => details.open && !body.hasChildNodes() && new Sessions(body, harnesses).begin());
  main.append(details);
}

class Sessions {
  #facts = new Facts();
  #left = [];

  constructor(body, harnesses) {
    this.harnesses = harnesses;
    this.rows = element("ul", { class: "past" });
    this.more = element("button", { type: "button" });
    this.said = element("p", { class: "faint", role: "status" }, "Loading…");
    this.more.hidden = true;
    this.more.addEventListener("click", () => this.#showMore());
    body.append(this.rows, this.said, this.more);
  }

  async begin() {
    const found = await Promise.all(this.harnesses.map(async ({ name, href }) =>
      (await orNothing(list(href))).map((row) => ({ ...row, harness: name }))));
    this.#left = found.flat().filter(({ type }) => type === "directory").sort((one, other) => (one.mtime < other.mtime ? 1 : -1));
    this.said.textContent = this.#left.length ? "" : "None was found.";
    await this.#showMore();
  }

  async #showMore() {
    const next = this.#left.splice(0, AT_ONCE);
    this.rows.append(...(await Promise.all(next.map((row) => this.#row(row)))));
    this.more.hidden = !this.#left.length;
    this.more.textContent = `Show ${number(Math.min(AT_ONCE, this.#left.length))} of ${number(this.#left.length)} more`;
  }

  async #row({ harness, name, href, mtime }) {
    const inner = await orNothing(list(href));
    const { title, cwd, model } = await this.#facts.of(inner, FACTS);
    const chat = inner.find((row) => row.name === "chat");
    const parts = [
      [element("a", { class: "title", href: chat?.href ?? href }), title || name],
      [element("span", { class: "who" }), `${harness}${cwd ? ` · ${cwd}` : ""}`],
      [element("span", { class: "model" }), model],
    ];
    for (const [part, text] of parts) setShortText(part, text);
    return element("li", {}, ...parts.map(([part]) => part), ageOf(mtime));
  }
}
