// A chat: its messages as they were said; it follows while one is at its end.
//
//   follow ── more → rows → Selection: which are shown → ScrollList: which are seen → Reading: what they say
//   address bar ── asked → Selection, and where the window stands (each entry of the history remembers that)

import { addressOf, addressOfMessage, asked } from "./address.js";
import { Cursor } from "./cursor.js";
import { setText } from "./elements.js";
import { follow } from "./follow.js";
import { endedWords, frame, showFilter } from "./frame.js";
import { bindKeys } from "./keys.js";
import { estimate } from "./message.js";
import { Loader } from "./loader.js";
import { ScrollList } from "./scroll.js";
import { SHOWS, Selection } from "./selection.js";
import { link, panel, paragraph, showState } from "./states.js";
import { Texts } from "./texts.js";
import { ask, list, names, orNothing } from "./tree.js";
import { count, number } from "./format.js";

const TYPED_MS = 350;
const STOOD_MS = 250;
const NOTED_MS = 4000;

export class Chat {
  rows = [];
  texts = new Texts();
  transcript = null;
  #asked = asked();
  #selection = null;
  #startAt = null;
  #news = 0;
  #timers = {};

  constructor(path, main, bar) {
    this.path = path;
    this.parts = frame(main, bar, path);
    this.loader = new Loader(this.texts, (act) => this.list.change(act));
    this.list = new ScrollList(this.parts.messages, {
      make: (id, row) => this.#article(id, row),
      drop: (id) => this.loader.drop(id),
      estimate: (id) => estimate(this.rows[id]),
      scrolled: () => this.#scrolled(),
      top: () => document.querySelector("header").offsetHeight,
    });
    this.cursor = new Cursor(this.list);
    history.scrollRestoration = "manual";
    addEventListener("popstate", () => this.#goWhereTheAddressSays());
    for (const leaving of ["pagehide", "click"]) addEventListener(leaving, () => this.#remember(), { capture: true });
    this.#listen(bindKeys(this.#bindings()));
  }

  /** Show what the first listing has, and follow. */
  async begin(rows, transcript) {
    this.rows = rows;
    this.transcript = transcript;
    this.#readSession();
    await this.#goWhereTheAddressSays();
    await follow(this);
  }

  // -- what `follow` asks and tells

  query() {
    return this.rows.length ? `?after=${this.rows.length - 1}&transcript=${this.transcript}` : "";
  }

  add(rows, transcript) {
    this.transcript = transcript;
    const from = this.rows.length;
    const fresh = rows.filter((row) => row.id >= from);
    if (!fresh.length) return;
    this.rows.push(...fresh);
    this.#extend(from);
  }

  reset(transcript) {
    this.transcript = transcript;
    this.rows = [];
    this.loader.forget();
    this.#asked.target = this.cursor.id = null;
    this.#readSession();
    this.#select();
    this.#note("The agent has begun another transcript; this is the new one.");
  }

  state(how, words) {
    showState(how, words);
    const isNews = this.parts.ended.hidden === (how === "ended");
    this.parts.ended.hidden = how !== "ended";
    if (isNews && how === "ended") this.#tellWhereItIsKept();
  }

  // -- what is shown

  async #goWhereTheAddressSays() {
    const before = this.#asked;
    this.#asked = asked();
    const { show, q } = this.#asked;
    const target = this.#knownTarget();
    this.cursor.id = target;
    this.parts.search.value = q;
    const stood = history.state?.stood;
    const at = stood ?? (target === null ? null : Cursor.at(target));
    if (this.#selection && before.show === show && before.q === q) {
      this.#point();
      if (at && !at.sticks) this.list.goTo(at.id, at.into);
      else this.list.goToEnd();
    } else {
      await this.#select(at?.sticks ? null : at);
    }
    if (target !== null && !stood) this.cursor.focus();
  }

  #knownTarget() {
    const { target } = this.#asked;
    if (target === null || target < this.rows.length) return target;
    this.#note(`No message ${target} is in this chat; this is its end.`);
    return (this.#asked.target = null);
  }

  async #select(at = null) {
    const { show, q } = this.#asked;
    this.#selection?.end();
    showFilter(this.parts.filters, show);
    const selection = new Selection(this, { show, q }, (fresh) => this.#changed(selection, fresh));
    this.#selection = selection;
    this.#startAt = at;
    this.#news = 0;
    this.loader.q = q;
    this.list.show([], at);
    await this.#extend(0);
  }

  async #extend(from) {
    const selection = this.#selection;
    try {
      await selection.extend(from);
    } catch (error) {
      if (error.status === undefined) throw error;
      if (selection === this.#selection) setText(this.parts.counted, `The server said: ${error.message}`);
    }
  }

  // *fresh*: what came at the end; null where it may be anywhere.
  #changed(selection, fresh) {
    if (selection !== this.#selection) return;
    if (fresh && this.list.ids.length) {
      if (!this.list.isAtEnd) this.#news += fresh.length;
      this.list.append(fresh);
    } else if (!this.list.ids.length) {
      this.list.show(selection.ids, this.#startAt);
    } else if (this.list.ids.length !== selection.ids.length) {
      this.list.replace(selection.ids);
    }
    const isEmpty = !selection.ids.length && !selection.isLooking;
    this.parts.empty.replaceChildren(...(isEmpty ? [this.#emptyPanel()] : []));
    const all = count(this.rows.length, "message");
    setText(this.parts.counted, selection.words || (selection.isAll ? all : `${number(selection.ids.length)} of ${all}`));
    this.loader.mark();
  }

  #emptyPanel() {
    const { show, q } = this.#asked;
    if (!this.rows.length) {
      const todo = paragraph("What is said to this agent, and what it says, appears here as it comes.");
      return panel("empty", "Nothing has been said yet", todo);
    }
    const title = q ? `Nothing here holds “${q}”` : SHOWS[show].none;
    return panel("none", title, paragraph(link(this.path, `Show all ${count(this.rows.length, "message")}`)));
  }

  #article(id, row) {
    const before = row ? this.rows[this.list.ids[row - 1]] : null;
    const made = this.loader.show(this.rows[id], before, { path: this.path, row, of: this.list.ids.length });
    if (id === this.#asked.target) pointAt(made);
    return made;
  }

  #scrolled() {
    if (!this.list) return;
    if (this.list.isEndSeen) this.#news = 0;
    this.parts.news.hidden = this.list.isEndSeen;
    setText(this.parts.newsWords, this.#news ? `${number(this.#news)} new` : "End");
    setText(this.parts.newsSpoken, this.#news ? `${count(this.#news, "new message")} below` : "");
    this.#timers.stood ??= setTimeout(() => this.#remember(), STOOD_MS);
  }

  // Keep in the history where the window stands: soon after it moved, and before anything can lead away.
  #remember() {
    clearTimeout(this.#timers.stood);
    this.#timers.stood = null;
    const at = this.list.position();
    if (at) history.replaceState({ stood: this.list.isAtEnd ? { sticks: true } : at }, "");
  }

  #later(name, ms, act) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(act, ms);
  }

  #note(words) {
    setText(this.parts.note, words);
    this.#later("note", NOTED_MS, () => setText(this.parts.note, ""));
  }

  // -- what somebody does

  #bindings() {
    const { cursor } = this;
    return [
      [["j"], "Next message", () => cursor.step(1)],
      [["k"], "Message before", () => cursor.step(-1)],
      [["g", "Home"], "First message", (event) => isOfABox(event) ? false : cursor.goToRow(0)],
      [["G", "End"], "Last message, and follow", (event) => isOfABox(event) ? false : cursor.goToEnd()],
      [["o"], "Fold or unfold the message", () => this.#toggle()],
      [["y"], "Copy the link of the message", () => this.#copy(cursor.here)],
      [["/"], "Search in the chat", () => this.parts.search.select()],
      [["Escape"], "Leave the search", () => this.#leaveSearch()],
      [["u"], "All agents", () => location.assign("/")],
    ];
  }

  #listen(showKeys) {
    const { keys, news, search, filters, messages } = this.parts;
    keys.addEventListener("click", showKeys);
    news.addEventListener("click", () => this.cursor.goToEnd());
    search.addEventListener("input", () => this.#later("typed", TYPED_MS, () => this.#typed()));
    search.addEventListener("change", () => this.#typed());
    filters.addEventListener("click", (event) => this.#onFilter(event));
    messages.addEventListener("click", (event) => this.#onMessage(event));
    messages.addEventListener("focusin", ({ target }) => {
      const made = target.closest("article");
      if (made) this.cursor.id = Number(made.dataset.id);
    });
  }

  #onFilter(event) {
    const { show } = event.target.dataset;
    if (!show || isForTheBrowser(event)) return;
    event.preventDefault();
    this.#ask({ show, q: this.#asked.q });
  }

  #onMessage(event) {
    const made = event.target.closest("article");
    if (!made || isForTheBrowser(event)) return;
    const id = Number(made.dataset.id);
    if (event.target.closest("summary, .said button")) {
      this.list.hold();
    } else if (event.target.closest("a.id")) {
      event.preventDefault();
      this.#goToMessage(id);
    } else if (event.target.closest("button.copy")) {
      this.#copy(id);
    }
  }

  #toggle() {
    const details = this.list.elementOf(this.cursor.here)?.querySelector("details");
    if (!details) return;
    this.list.hold();
    details.open = !details.open;
  }

  #typed() {
    const { show, q } = this.#asked;
    const text = this.parts.search.value.trim();
    if (text !== q) this.#ask({ show, q: text }, q ? "replaceState" : "pushState");
  }

  #leaveSearch() {
    this.parts.search.value = "";
    this.#typed();
    this.parts.search.blur();
  }

  // Show another part of the chat, from the same place where it has that.
  #ask(query, change = "pushState") {
    const at = query.q || this.list.isAtEnd ? null : this.list.position();
    history[change](null, "", addressOf(this.path, query));
    this.#asked = asked();
    this.#select(at);
  }

  // The whole chat at one message: from a part of it, this is how to see what stands around.
  #goToMessage(id) {
    const isPart = location.search !== "";
    history.pushState(isPart ? null : history.state, "", addressOfMessage(this.path, id));
    if (isPart) {
      this.#goWhereTheAddressSays();
    } else {
      this.#asked.target = this.cursor.id = id;
      this.#point();
    }
  }

  #point() {
    for (const one of this.parts.messages.querySelectorAll(".target")) {
      one.classList.remove("target");
      one.removeAttribute("aria-current");
    }
    const made = this.#asked.target === null ? null : this.list.elementOf(this.#asked.target);
    if (made) pointAt(made);
  }

  async #copy(id) {
    try {
      await navigator.clipboard.writeText(new URL(addressOfMessage(this.path, id), location.href).href);
      this.#note(`Link to message ${id} copied`);
    } catch {
      this.#goToMessage(id); // no clipboard for this page: the address bar has it
      this.#note("The link is in the address bar");
    }
  }

  // -- what becomes of it when its agent ends

  // The session of an agent that runs; a chat elsewhere in the tree does not end with a process.
  async #readSession() {
    const [top, harness, , leaf] = names(this.path);
    this.kept = null;
    if (top !== "active" || leaf !== "chat") return;
    const id = await ask(this.path.replace(/chat\/$/, "session")).then((answer) => answer.text(), () => "");
    if (id) this.kept = `/sessions/${harness}/${encodeURIComponent(id.trimEnd())}/`;
  }

  async #tellWhereItIsKept() {
    this.parts.ended.replaceChildren(...endedWords(null));
    const kept = this.kept ? await orNothing(list(this.kept)).catch(() => []) : [];
    const chat = kept.find(({ name }) => name === "chat");
    if (chat) this.parts.ended.replaceChildren(...endedWords(chat.href));
  }
}

function pointAt(made) {
  made.classList.add("target");
  made.setAttribute("aria-current", "true");
}

// Home and End scroll what has the focus, where that scrolls by itself.
function isOfABox({ key, target }) {
  return key.length > 1 && target.closest("pre, .diff, table") !== null;
}

function isForTheBrowser(event) {
  return event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
}
