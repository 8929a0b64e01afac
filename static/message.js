// One message as an article: what is said of it, and what it says.

import { addTerminalText, withoutEscapes } from "./ansi.js";
import { COMMANDS, asText, parseCall } from "./call.js";
import { diffBlock, tally } from "./diff.js";
import { addText, element } from "./elements.js";
import { highlight } from "./highlight.js";
import { addMarkdown } from "./markdown.js";
import { isError, parseResult } from "./result.js";
import { toolCard } from "./tool_cards.js";
import { MORE } from "./texts.js";
import { bytes, clock, count, day, number, whole } from "./format.js";

const OPEN_EDIT = 40; // lines of an edit that is shown at once

/** What sort a kind is of: said by the one or the other, or about a tool. */
export function sortOf(kind) {
  if (Object.hasOwn(SORTS, kind)) return kind;
  return kind.endsWith("-result") ? "result" : "call";
}

const SORTS = {
  user: { label: "Prompt", fill: fillPrompt },
  assistant: { label: "Assistant", fill: fillMarkdown },
  thinking: { label: "Thinking", fill: fillMarkdown },
  agent: { label: "Agent", fill: fillFolded },
  system: { label: "System", fill: fillFolded },
  call: { label: "Call", fill: fillCall },
  result: { label: "Result", fill: fillResult },
};

const LINE = 22;
const FOLDED = 31;
const COLUMNS = 88;

/** About how high a message will be, in pixels. */
export function estimate({ kind, size }) {
  const sort = sortOf(kind);
  if (sort === "user") return 44 + LINE * Math.ceil(Math.min(size, 2000) / COLUMNS);
  if (sort === "assistant" || sort === "thinking") return 16 + LINE * Math.ceil(Math.min(size, 12000) / COLUMNS);
  return FOLDED;
}

/** An article for *message*, which is empty until `fill`. *before*: the message above it, if any. */
export function article(message, before, place) {
  const sort = sortOf(message.kind);
  const id = message.name.slice(0, 8);
  const link = element("a", { class: "id", href: `${place.path}#${id}`, title: "This message in the chat" }, `#${message.id}`);
  const time = element("time", { datetime: message.mtime, title: whole(message.mtime) }, clock(message.mtime));
  const raw = element("a", { class: "raw", href: message.href, title: `${message.name}, ${bytes(message.size)}: the file itself` }, "raw");
  const copy = element("button", { type: "button", class: "copy", title: "Copy the link of this message (y)" }, "copy link");
  const label = element("h2", { class: "spoken" }, `${SORTS[sort].label} ${message.id}`);
  const said = element("div", { class: "said" });
  said.style.minHeight = `${estimate(message) - 12}px`;
  const made = element(
    "article",
    { class: "message", "data-sort": sort, "data-kind": message.kind, "data-id": message.id, tabindex: "-1", "aria-setsize": place.of, "aria-posinset": place.row + 1 },
    label,
    element("div", { class: "meta" }, link, time),
    said,
    element("div", { class: "acts" }, copy, raw),
  );
  if (!before || day(before.mtime) !== day(message.mtime)) {
    made.prepend(element("p", { class: "day" }, day(message.mtime)));
    made.classList.add("begins-day");
  }
  return made;
}

/** Fill an article with what was read of its message. *folds* remembers what is open; *readOn* reads more. *q*: what is looked for. */
export function fill(made, text, folds, readOn, q) {
  const said = made.querySelector(".said");
  said.replaceChildren();
  said.style.minHeight = "";
  const { message } = text;
  const context = { message, text, folds, made, readOn, q };
  SORTS[sortOf(message.kind)].fill(said, context);
}

export function fillFailed(made, error) {
  const said = made.querySelector(".said");
  const why = error.status === 404 ? "This message is gone: its agent has ended, or began another transcript." : `Not read: ${error.message}.`;
  said.replaceChildren(element("p", { class: "failed" }, why));
}

// -- the sorts

const LONG_PROMPT = 3000; // characters

function fillPrompt(said, context) {
  const { text, folds, message } = context;
  const isCut = text.text.length > LONG_PROMPT && !folds.get(message.id);
  const whole = slashCommand(text.text) ?? text.text;
  const shown = isCut ? whole.slice(0, LONG_PROMPT).replace(/\n[^\n]*$/, "") : whole;
  said.append(addText(element("div", { class: "plain", dir: "auto" }), shown.trimEnd()));
  if (isCut) {
    said.append(button(`Show all ${bytes(message.size)}`, () => {
      folds.set(message.id, true);
      fill(context.made, text, folds, context.readOn, context.q);
    }));
  } else addMore(said, context);
}

const COMMAND = /^<command-(name|message|args)>([^<]*)<\/command-\1>\s*/;

// A command of claude's own as somebody typed it, `/review src`; null where a text is anything more than that.
function slashCommand(text) {
  const said = {};
  let left = text.trimStart();
  for (let part; (part = COMMAND.exec(left)); left = left.slice(part[0].length)) said[part[1]] = part[2].trim();
  const { name = "", message = "", args = "" } = said;
  if (left || !name) return null;
  const isSame = !message || message === name.replace(/^\//, "");
  return [`${name} ${args}`.trim(), ...(isSame ? [] : [message])].join("\n");
}

function fillMarkdown(said, context) {
  const { text } = context.text;
  if (text.trim()) addMarkdown(said, text);
  else said.append(element("p", { class: "faint" }, "(blank)"));
  addMore(said, context);
}

// What the program said to the model, or one agent to another.
function fillFolded(said, context) {
  const { text } = context;
  const { summary, more } = parseResult(text.text);
  const isBad = context.message.kind === "system" && isError(text.text);
  context.made.classList.toggle("error", isBad);
  const title = [named(SORTS[sortOf(context.message.kind)].label), line(summary, text.text, context.q), lineCount(more, text)];
  said.append(fold(context, title, (body) => {
    body.append(addTerminalText(block("plain"), text.text.trimEnd()));
  }));
}

function fillCall(said, context) {
  const { text } = context;
  const { tool, input, summary, more, edits, left } = parseCall(text.text);
  const told = toolCard(tool, input);
  const size = edits.reduce((sum, edit) => sum + edit.changes.length, 0);
  const title = [named(tool), line(told?.summary ?? summary, text.text, context.q)];
  if (edits.length) title.push(changes(edits));
  if (!told) title.push(lineCount(more, text));
  const isOpen = Boolean(told) || (edits.length > 0 && size <= OPEN_EDIT);
  said.append(fold(context, title, (body) => {
    if (told) told.fill(body);
    for (const edit of edits) body.append(...editBlocks(edit, edits.length > 1 || left === input));
    const rest = told ? told.left : left;
    if (rest !== null) body.append(inputBlock(rest, summary));
  }, isOpen));
}

function changes(edits) {
  const [added, removed] = ["added", "removed"].map((which) => edits.reduce((sum, edit) => sum + tally(edit.changes)[which], 0));
  return element("span", { class: "tally" },
    element("span", { class: "added", title: count(added, "line") + " added" }, `+${number(added)}`), " ",
    element("span", { class: "removed", title: count(removed, "line") + " removed" }, `−${number(removed)}`));
}

function editBlocks(edit, isNamed) {
  const blocks = [edit.changes.length ? diffBlock(edit.changes) : element("p", { class: "faint" }, "(no lines)")];
  return isNamed ? [addText(element("p", { class: "path" }), edit.path), ...blocks] : blocks;
}

function inputBlock(input, summary) {
  if (typeof input === "string") return addTerminalText(block("plain"), input || summary || "(no input)");
  const names = Object.keys(input);
  if (!names.length) return element("p", { class: "faint" }, "(no input)");
  const table = element("dl", { class: "input" });
  for (const name of names) {
    const value = asText(input[name]);
    const shown = COMMANDS.includes(name) ? commandBlock(value) : addText(block("plain"), value);
    table.append(addText(element("dt"), name), element("dd", {}, shown));
  }
  return table;
}

function commandBlock(command) {
  const code = addText(element("code"), command);
  highlight(code, "bash");
  return element("pre", { tabindex: "0" }, code);
}

function fillResult(said, context) {
  const { text, made } = context;
  const { output, summary, more, exit } = parseResult(text.text);
  const isBad = isError(text.text);
  made.classList.toggle("error", isBad);
  const title = [isBad ? element("span", { class: "bad" }, exit ? `exit ${exit}` : "error") : null, line(summary || "(no output)", withoutEscapes(output), context.q), lineCount(more, text)];
  said.append(fold(context, title.filter(Boolean), (body) => {
    body.append(addTerminalText(block("plain"), output.trimEnd() || "(no output)"));
  }));
}

// -- parts of them

function block(name) {
  return element("pre", { class: name, tabindex: "0", dir: "auto" });
}

function named(label) {
  return addText(element("span", { class: "tool" }), label);
}

// The one line that shows of what is folded: the one that holds what is looked for, else *first*.
function line(first, whole = "", q = "") {
  const at = q && !holds(first, q) ? whole.toLowerCase().indexOf(q.toLowerCase()) : -1;
  const shown = at < 0 ? first : around(whole, at, q.length);
  return addText(element("span", { class: "first" }), shown);
}

const holds = (text, q) => text.toLowerCase().includes(q.toLowerCase());

function around(whole, at, length) {
  const from = Math.max(whole.lastIndexOf("\n", at) + 1, at - 80);
  const end = whole.indexOf("\n", at + length);
  return `… ${whole.slice(from, Math.min(end < 0 ? whole.length : end, at + 300)).trim()}`;
}

function lineCount(more, text) {
  if (!text.isWhole) return element("span", { class: "more" }, bytes(text.message.size));
  return more ? element("span", { class: "more" }, `+${count(more, "line")}`) : null;
}

/** A line that unfolds; *addBody* is called when it first does. */
function fold(context, title, addBody, isOpenFirst = false) {
  const { folds, message } = context;
  const body = element("div", { class: "body" });
  const details = element("details", {}, element("summary", {}, ...title.filter(Boolean)), body);
  const open = () => {
    if (!body.hasChildNodes()) {
      addBody(body);
      addMore(body, context);
    }
  };
  if (folds.get(message.id) ?? isOpenFirst) {
    details.open = true;
    open();
  }
  details.addEventListener("toggle", () => {
    if (details.open) open();
    if (details.open !== (folds.get(message.id) ?? isOpenFirst)) folds.set(message.id, details.open);
  });
  return details;
}

function addMore(parent, { text, readOn }) {
  if (text.isWhole) return;
  const left = text.message.size - text.read;
  const shown = element("p", { class: "cut" }, `${bytes(text.read)} of ${bytes(text.message.size)} shown. `);
  shown.append(button(`Show ${bytes(Math.min(left, MORE))} more`, readOn), " ", element("a", { href: text.message.href }, "All of it as a file"));
  parent.append(shown);
}

function button(label, pressed) {
  const made = element("button", { type: "button" }, label);
  made.addEventListener("click", pressed);
  return made;
}
