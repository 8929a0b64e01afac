// Any other directory: its files, and of an agent's what its facts say.

import { element } from "./elements.js";
import { showState } from "./states.js";
import { Facts, names } from "./tree.js";
import { bytes, moment, number, whole } from "./format.js";

const LONGEST_FACT = 4200; // bytes
const NO_FACT = new Set(["transcript", "chat.md"]);

export async function showDirectory(main, path, rows) {
  const isAgents = rows.some(({ name }) => name === "chat" || name === "via");
  const facts = rows.filter(({ name, type, size }) => type === "file" && size < LONGEST_FACT && !NO_FACT.has(name)).map(({ name }) => name);
  const said = isAgents ? await new Facts().of(rows, facts) : {};
  const body = element("tbody", {}, ...rows.map((row) => tableRow(row, said[row.name])));
  const head = element("thead", {}, element("tr", {}, ...["Name", "", "Size", "Changed"].map((title) => (title ? element("th", { scope: "col" }, title) : element("td")))));
  main.replaceChildren(element("h1", {}, names(path).at(-1) ?? "agents9"), rows.length ? element("table", { class: "directory" }, head, body) : element("p", { class: "faint" }, "Nothing is in this directory."));
  showState("live", `${number(rows.length)} in this directory`);
}

function tableRow({ name, type, size, mtime, href }, said) {
  const isDirectory = type === "directory";
  return element("tr", {},
    element("th", { scope: "row" }, element("a", { href }, isDirectory ? `${name}/` : name)),
    element("td", { class: "fact" }, said ?? ""),
    element("td", { class: "number" }, isDirectory ? "" : bytes(size)),
    element("td", { class: "number" }, element("time", { datetime: mtime, title: whole(mtime) }, moment(mtime))));
}
