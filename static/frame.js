// The document around the messages of a chat: what is shown of it, the search, how many are new.

import { element } from "./elements.js";
import { SHOWS } from "./selection.js";
import { link } from "./states.js";

/** Build it in *main* and *bar*; returns its parts by name. */
export function frame(main, bar, path) {
  const filters = element("nav", { class: "filters", "aria-label": "Which messages are shown" });
  for (const [show, { label }] of Object.entries(SHOWS)) {
    filters.append(element("a", { href: show === "all" ? path : `?show=${show}`, "data-show": show }, label));
  }
  const parts = {
    filters,
    search: searchField(),
    counted: element("p", { class: "counted", role: "status" }),
    keys: element("button", { type: "button", class: "help", "aria-label": "Keys", title: "Keys (?)" }, "?"),
    empty: element("div"),
    messages: element("div", { class: "messages", role: "feed", "aria-label": "Messages" }),
    ended: element("p", { class: "ended", hidden: true }),
    note: element("p", { class: "note", role: "status" }),
    newsWords: element("span"),
    newsSpoken: element("span", { class: "spoken", role: "status" }),
  };
  const arrow = element("span", { "aria-hidden": "true" }, " ↓");
  parts.news = element("button", { type: "button", class: "news", hidden: true }, parts.newsWords, arrow);
  const floating = element("div", { class: "floating" }, parts.note, parts.newsSpoken, parts.news);
  bar.replaceChildren(filters, parts.search, parts.counted, parts.keys);
  main.replaceChildren(parts.empty, parts.messages, parts.ended, floating);
  return parts;
}

function searchField() {
  return element("input", {
    type: "search", placeholder: "Search, tool output too", "aria-label": "Search in this chat",
    "aria-keyshortcuts": "/", maxlength: 1000, spellcheck: "false", autocomplete: "off",
  });
}

/** Mark the filter that is in force. */
export function showFilter(filters, show) {
  for (const one of filters.children) {
    if (one.dataset.show === show) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
}

/** What is said where an agent has ended; *kept*: where its session's chat is, or null. */
export function endedWords(kept) {
  const all = link("/", "All agents");
  if (kept) return ["This agent has ended. ", link(kept, "Its session is kept"), ". ", all];
  return ["This agent has ended: what is not on this page yet cannot be read here any more. ", all];
}
