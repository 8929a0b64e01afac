// A chat: its messages as they were said, of which those that are seen are read; it follows while one is at its end.
//
//   address   ?show=prompts&q=word#00000413: which messages are shown, and which one is pointed at
//   history   each entry also remembers where its window stood

import { element, say } from "./elements.js";
import { follow } from "./follow.js";
import { markFound } from "./found.js";
import { obey } from "./keys.js";
import { article, estimate, fill, fillFailed, sortOf } from "./message.js";
import { ScrollList } from "./scroll.js";
import { SHOWS, Selection } from "./selection.js";
import { link, panel, paragraph, showState } from "./states.js";
import { MORE, Texts } from "./texts.js";
import { count, number } from "./words.js";

const WHOLE_CALL = 1024 * 1024; // bytes: an edit is shown whole
const ROOM = 12; // pixels above a message that one jumps to
const TYPED_MS = 350;
const STOOD_MS = 250;

export class Chat {
  rows = [];
  texts = new Texts();
  transcript = null;
  #folds = new Map();
  #reading = new Map(); // id → what ends its being read
  #selection = null;
  #startAt = null;
  #news = 0;
  #target = null;
  #current = null; // where j and k are
  #timers = {};

  constructor(path, main, bar) {
    this.path = path;
    this.#build(main, bar);
    this.list = new ScrollList(this.messages, {
      make: (id, row) => this.#article(id, row),
      drop: (id) => this.#drop(id),
      estimate: (id) => estimate(this.rows[id]),
      scrolled: () => this.#scrolled(),
      top: () => document.querySelector("header").offsetHeight,
    });
    history.scrollRestoration = "manual";
    addEventListener("popstate", () => this.#goWhereTheAddressSays());
    this.keys = obey(this.#bindings());
  }

  /** Show what the first listing has, and follow. */
  async begin(rows, transcript) {
    this.rows = rows;
    this.transcript = transcript;
    await this.#goWhereTheAddressSays();
    await follow(this);
  }

  // -- what `follow` tells

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
    this.texts.clear();
    this.#folds.clear();
    this.#target = this.#current = null;
    this.#select();
    this.#tellBriefly("The agent has begun another transcript; this is the new one.");
  }

  state(how, words) {
    showState(how, words);
    this.main.dataset.how = how;
    this.ended.hidden = how !== "ended";
  }

  // -- what is shown

  get #asked() {
    const query = new URLSearchParams(location.search);
    const show = query.get("show");
    return { show: Object.hasOwn(SHOWS, show ?? "") ? show : "all", q: query.get("q") ?? "" };
  }

  async #goWhereTheAddressSays() {
    const { show, q } = this.#asked;
    const id = /^#(\d{8})$/.exec(location.hash);
    this.#target = id ? Number(id[1]) : null;
    this.#current = this.#target;
    const stood = history.state?.stood;
    const at = stood ?? (this.#target !== null ? { id: this.#target, into: -ROOM } : null);
    if (this.search.value !== q) this.search.value = q;
    if (this.#selection && this.#selection.name === `${show} ${q}`) {
      this.#point();
      if (at && !at.sticks) this.list.goTo(at.id, at.into);
      else this.list.goToEnd();
    } else {
      await this.#select(at?.sticks ? null : at);
    }
    if (this.#target !== null && !stood) this.list.elementOf(this.#target)?.focus({ preventScroll: true });
  }

  async #select(at = null) {
    const asked = this.#asked;
    this.#selection?.end();
    for (const one of this.filters.children) {
      if (one.dataset.show === asked.show) one.setAttribute("aria-current", "true");
      else one.removeAttribute("aria-current");
    }
    const selection = new Selection(this, asked, (fresh) => this.#changed(selection, fresh));
    selection.name = `${asked.show} ${asked.q}`;
    this.#selection = selection;
    this.#news = 0;
    this.list.show([], at);
    this.#startAt = at;
    await this.#extend(0);
  }

  async #extend(from) {
    const selection = this.#selection;
    try {
      await selection.extend(from);
    } catch (error) {
      if (selection === this.#selection) this.#say(error.status ? `The server said: ${error.message}` : "The server does not answer.");
    }
  }

  #changed(selection, fresh) {
    if (selection !== this.#selection) return;
    if (fresh && this.list.ids.length) {
      if (!this.list.isAtEnd) this.#news += fresh.length;
      this.list.append(fresh);
    } else if (this.list.ids.length !== selection.ids.length) {
      const isFirst = !this.list.ids.length;
      if (isFirst) this.list.show(selection.ids, this.#startAt);
      else this.list.replace(selection.ids);
    }
    this.#tell();
  }

  #tell() {
    const selection = this.#selection;
    this.#say(selection.words || count(this.rows.length, "message"));
    this.empty.replaceChildren();
    if (!selection.ids.length && !selection.isLooking) this.empty.append(this.#emptyPanel());
    this.#scrolled();
    this.#mark();
  }

  #say(words) {
    say(this.counted, words);
  }

  #emptyPanel() {
    const { show, q } = this.#asked;
    if (!this.rows.length) {
      return panel("empty", "Nothing has been said yet", paragraph("What is said to this agent, and what it says, appears here as it comes."));
    }
    const what = show === "all" ? "message" : SHOWS[show].label.toLowerCase();
    const title = q ? `Nothing here holds “${q}”` : show === "errors" ? "No errors" : `No ${what} in this chat`;
    return panel("none", title, paragraph(link(this.path, `Show all ${count(this.rows.length, "message")}`)));
  }

  // -- the messages that are seen

  #article(id, row) {
    const message = this.rows[id];
    const before = row ? this.rows[this.list.ids[row - 1]] : null;
    const made = article(message, before, { path: this.path, row, of: this.list.ids.length });
    made.classList.toggle("target", id === this.#target);
    if (id === this.#target) made.setAttribute("aria-current", "true");
    const known = this.texts.peek(id);
    if (known) this.#fill(made, known);
    else this.#read(made, message);
    return made;
  }

  async #read(made, message) {
    const reading = new AbortController();
    this.#reading.set(message.id, reading);
    try {
      let text = await this.texts.read(message, { signal: reading.signal });
      if (sortOf(message.kind) === "call" && !text.isWhole) text = await this.texts.read(message, { more: WHOLE_CALL });
      if (made.isConnected) this.list.change(() => this.#fill(made, text));
    } catch (error) {
      if (error.name !== "AbortError") this.list.change(() => fillFailed(made, error));
    } finally {
      if (this.#reading.get(message.id) === reading) this.#reading.delete(message.id);
    }
  }

  #fill(made, text) {
    const readOn = async () => {
      try {
        const longer = await this.texts.read(text.message, { more: MORE });
        this.list.change(() => this.#fill(made, longer));
      } catch (error) {
        this.list.change(() => fillFailed(made, error));
      }
    };
    fill(made, text, this.#folds, readOn, this.#asked.q);
    this.#mark();
  }

  #drop(id) {
    this.#reading.get(id)?.abort();
    this.#reading.delete(id);
  }

  #mark() {
    this.#later("mark", 50, () => markFound([...this.messages.querySelectorAll(".said")], this.#asked.q));
  }

  #later(name, ms, act) {
    clearTimeout(this.#timers[name]);
    this.#timers[name] = setTimeout(act, ms);
  }

  #scrolled() {
    if (!this.list) return;
    if (this.list.isEndSeen) this.#news = 0;
    this.news.hidden = this.list.isEndSeen;
    say(this.newsWords, this.#news ? `${number(this.#news)} new` : "End");
    say(this.newsSpoken, this.#news ? `${count(this.#news, "new message")} below` : "");
    this.#later("stood", STOOD_MS, () => {
      const stood = this.list.isAtEnd ? { sticks: true } : this.list.position();
      if (stood) history.replaceState({ stood }, "");
    });
  }

  // -- moving about

  #bindings() {
    return [
      [["j"], "Next message", () => this.#step(1)],
      [["k"], "Message before", () => this.#step(-1)],
      [["g"], "First message", () => this.#goToRow(0)],
      [["G"], "Last message, and follow", () => this.#goToEnd()],
      [["o"], "Fold or unfold the message", () => this.#toggle()],
      [["y"], "Copy the link of the message", () => this.#copy(this.#here())],
      [["/"], "Search in the chat", () => this.search.select()],
      [["Escape"], "Leave the search", () => this.#leaveSearch()],
      [["u"], "All agents", () => location.assign("/")],
    ];
  }

  // The message that keys are about: the one with the focus, as long as it is seen.
  #here() {
    const [first, last] = this.list.seenIds();
    if (this.#current !== null && this.#current >= first && this.#current <= last) return this.#current;
    return this.list.isAtEnd ? last : first;
  }

  #step(by) {
    if (!this.list.ids.length) return;
    const isNew = this.#current !== this.#here();
    const row = this.list.rowOf(this.#here()) + (isNew ? 0 : by);
    this.#goToRow(Math.max(0, Math.min(this.list.ids.length - 1, row)));
  }

  #goToRow(row) {
    const id = this.list.ids[row];
    if (id === undefined) return;
    if (row === this.list.ids.length - 1) this.list.goToEnd();
    else if (row === 0) this.list.goTo(id, -ROOM);
    else this.list.reveal(id);
    this.#current = id;
    this.list.elementOf(id)?.focus({ preventScroll: true });
  }

  #goToEnd() {
    this.list.goToEnd();
    this.#current = this.list.ids.at(-1) ?? null;
  }

  #toggle() {
    const details = this.list.elementOf(this.#here())?.querySelector("details");
    if (!details) return;
    this.list.hold();
    details.open = !details.open;
  }

  // -- the address

  #go(query, { instead = false } = {}) {
    const asked = new URLSearchParams(Object.entries(query).filter(([name, value]) => value && value !== (name === "show" ? "all" : "")));
    const address = asked.size ? `${this.path}?${asked}` : this.path;
    const at = this.list.isAtEnd ? null : this.list.position();
    history[instead ? "replaceState" : "pushState"](null, "", address);
    this.#target = null;
    this.#select(query.q ? null : at);
  }

  #typed() {
    const { show, q } = this.#asked;
    const text = this.search.value.trim();
    if (text !== q) this.#go({ show, q: text }, { instead: Boolean(q) });
  }

  #leaveSearch() {
    this.search.value = "";
    this.#typed();
    this.search.blur();
  }

  #point() {
    for (const one of this.messages.querySelectorAll(".target")) {
      one.classList.remove("target");
      one.removeAttribute("aria-current");
    }
    const made = this.#target === null ? null : this.list.elementOf(this.#target);
    made?.classList.add("target");
    made?.setAttribute("aria-current", "true");
  }

  #address(id) {
    return `${this.path}#${String(id).padStart(8, "0")}`;
  }

  // The whole chat at one message: from a part of it, this is how to see what stands around.
  #goToMessage(id) {
    const isPart = location.search !== "";
    history.pushState(isPart ? null : history.state, "", this.#address(id));
    this.#target = this.#current = id;
    if (isPart) this.#goWhereTheAddressSays();
    else this.#point();
  }

  async #copy(id) {
    const address = new URL(this.#address(id), location.href).href;
    try {
      await navigator.clipboard.writeText(address);
      this.#tellBriefly(`Link to message ${id} copied`);
    } catch {
      this.#goToMessage(id); // no clipboard for this page: the address bar has it
      this.#tellBriefly("The link is in the address bar");
    }
  }

  #tellBriefly(words) {
    say(this.note, words);
    this.#later("note", 4000, () => say(this.note, ""));
  }

  // -- the document

  #build(main, bar) {
    this.main = main;
    this.filters = element("nav", { class: "filters", "aria-label": "Which messages are shown" });
    for (const [show, { label }] of Object.entries(SHOWS)) {
      this.filters.append(element("a", { href: show === "all" ? this.path : `?show=${show}`, "data-show": show }, label));
    }
    this.search = element("input", { type: "search", placeholder: "Search, tool output too", "aria-label": "Search in this chat", "aria-keyshortcuts": "/", maxlength: 1000, spellcheck: "false", autocomplete: "off" });
    this.counted = element("p", { class: "counted", role: "status" });
    const keys = element("button", { type: "button", class: "help", "aria-label": "Keys", title: "Keys (?)" }, "?");
    bar.replaceChildren(this.filters, this.search, this.counted, keys);
    this.empty = element("div");
    this.messages = element("div", { class: "messages", role: "feed", "aria-label": "Messages" });
    this.newsWords = element("span");
    this.newsSpoken = element("span", { class: "spoken", role: "status" });
    this.news = element("button", { type: "button", class: "news", hidden: true }, this.newsWords, element("span", { "aria-hidden": "true" }, " ↓"));
    this.note = element("p", { class: "note", role: "status" });
    this.ended = element("p", { class: "ended", hidden: true }, "This agent has ended. What is not on this page yet cannot be read here any more. ", link("/", "All agents"));
    main.replaceChildren(this.empty, this.messages, this.ended, element("div", { class: "floating" }, this.note, this.newsSpoken, this.news));

    keys.addEventListener("click", () => this.keys());
    this.news.addEventListener("click", () => this.#goToEnd());
    this.search.addEventListener("input", () => this.#later("typed", TYPED_MS, () => this.#typed()));
    this.search.addEventListener("change", () => this.#typed());
    this.filters.addEventListener("click", (event) => this.#onFilter(event));
    this.messages.addEventListener("click", (event) => this.#onMessage(event));
    this.messages.addEventListener("focusin", ({ target }) => {
      const made = target.closest("article");
      if (made) this.#current = Number(made.dataset.id);
    });
  }

  #onFilter(event) {
    const show = event.target.dataset.show;
    if (!show || isForTheBrowser(event)) return;
    event.preventDefault();
    this.#go({ show, q: this.#asked.q });
  }

  #onMessage(event) {
    const made = event.target.closest("article");
    if (!made || isForTheBrowser(event)) return;
    if (event.target.closest("summary, .said button")) this.list.hold();
    const id = Number(made.dataset.id);
    if (event.target.closest("a.id")) {
      event.preventDefault();
      this.#goToMessage(id);
    } else if (event.target.closest("button.copy")) {
      this.#copy(id);
    }
  }
}

function isForTheBrowser(event) {
  return event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
}
