// The agents that run: by directory, those that wait for somebody first.

import { ageOf, keepAgesTrue, showAge } from "./ages.js";
import { element, setShortText } from "./elements.js";
import { repeat } from "./polling.js";
import { addSessions } from "./sessions.js";
import { code, failurePanel, loading, panel, paragraph, showState } from "./states.js";
import { Facts, list, orNothing } from "./tree.js";
import { count, number } from "./format.js";

const EVERY_MS = 2500;
const FACTS = ["title", "name", "cwd", "status", "waitingfor", "model"];
const LATER_FACTS = ["title", "name", "status", "model"]; // of subagents and threads
const SHOWN_OF_EACH = 5;
const WITHIN = { agents: "subagent", threads: "thread" };

/** Show the agents in *main* for ever. */
export async function showAgents(main) {
  const view = new Agents(main);
  await repeat(EVERY_MS, () => view.look(), (error) => view.failed(error));
}

class Agents {
  #facts = new Facts();
  #within = new Map(); // listings of subagents, by address
  #cards = new Map(); // by address of the agent
  #groups = new Map(); // by directory

  constructor(main) {
    this.title = element("h1", {}, "Agents");
    this.problem = element("div");
    this.groups = element("div", { class: "groups" });
    main.replaceChildren(this.title, this.problem, this.groups);
    this.loaded = loading(main, "the agents");
    addSessions(main);
    keepAgesTrue();
  }

  async look() {
    const harnesses = (await list("/active/")).filter(({ type }) => type === "directory");
    const found = await Promise.all(harnesses.map((harness) => this.#ofHarness(harness)));
    const agents = found.flat().sort(byNeed);
    this.loaded();
    this.#show(agents);
    const waiting = agents.filter(isWaiting).length;
    document.title = waiting ? `(${waiting}) agents9` : "agents9";
    showState("live", [count(agents.length, "agent"), waiting && `${number(waiting)} waiting`].filter(Boolean).join(", "));
  }

  failed(error) {
    this.loaded();
    this.problem.replaceChildren(failurePanel(error, () => this.look().catch((again) => this.failed(again))));
    showState("late", error.status ? `the server said ${error.status}` : "not reached; trying again");
  }

  // -- what there is

  async #ofHarness(harness) {
    const rows = await orNothing(list(harness.href));
    const agents = await Promise.all(rows.filter(({ type }) => type === "directory").map((row) => this.#agent(harness.name, row)));
    return agents.filter(Boolean);
  }

  async #agent(harness, row) {
    const rows = await orNothing(list(row.href));
    if (!rows.length) return null; // it has just ended
    const facts = await this.#facts.of(rows, FACTS);
    const chat = rows.find(({ name }) => name === "chat");
    const within = await Promise.all(rows.filter(({ name }) => WITHIN[name]).map((one) => this.#listWithin(one)));
    return { harness, pid: row.name, href: row.href, chat, within: within.filter(({ all }) => all), ...facts };
  }

  // Its subagents, or its other threads: the newest ones. Listed again only when something there has changed.
  async #listWithin(row) {
    const known = this.#within.get(row.href);
    if (known?.mtime === row.mtime) return known;
    const rows = (await orNothing(list(row.href))).sort(newestFirst);
    const newest = await Promise.all(rows.slice(0, SHOWN_OF_EACH).map(async (one) => {
      const inner = await orNothing(list(one.href));
      return { pid: one.name, href: one.href, chat: inner.find(({ name }) => name === "chat"), ...(await this.#facts.of(inner, LATER_FACTS)) };
    }));
    const listed = { name: row.name, href: row.href, mtime: row.mtime, all: rows.length, newest };
    this.#within.set(row.href, listed);
    return listed;
  }

  // -- how it is shown

  #show(agents) {
    this.problem.replaceChildren(...(agents.length ? [] : [emptyPanel()]));
    const byPlace = grouped(agents);
    keep(this.#groups, byPlace.keys());
    keep(this.#cards, agents.map(({ href }) => href));
    put(this.groups, [...byPlace].map(([cwd, inIt]) => this.#group(cwd, inIt)));
  }

  #group(cwd, agents) {
    if (!this.#groups.has(cwd)) {
      const heading = element("h2", {}, cwd || "directory unknown");
      this.#groups.set(cwd, element("section", { class: "group" }, heading, element("ul")));
    }
    const group = this.#groups.get(cwd);
    put(group.querySelector("ul"), agents.map((agent) => this.#card(agent)));
    return group;
  }

  #card(agent) {
    if (!this.#cards.has(agent.href)) this.#cards.set(agent.href, new Card(agent.href));
    const card = this.#cards.get(agent.href);
    card.show(agent);
    return card.element;
  }
}

function emptyPanel() {
  return panel("empty", "No agent is running",
    paragraph("Start one as this user (", code("claude"), ", ", code("codex"), ", ", code("omp"), ", ", code("pi"), ", ", code("dsh"), " or ", code("hermes"), "): it appears here within seconds."),
    paragraph("One runs and is not here? ", code("agents9 doctor"), " says why."));
}

const isWaiting = ({ status }) => status === "waiting";
const newestFirst = (one, other) => (one.mtime < other.mtime ? 1 : -1);
const RANKS = { waiting: 0, busy: 1 };

function byNeed(one, other) {
  const rank = ({ status }) => RANKS[status] ?? 2;
  const when = ({ chat }) => chat?.mtime ?? "";
  return rank(one) - rank(other) || (when(one) < when(other) ? 1 : -1);
}

function grouped(agents) {
  const groups = new Map();
  for (const agent of agents) groups.set(agent.cwd, [...(groups.get(agent.cwd) ?? []), agent]);
  return groups;
}

function keep(map, keys) {
  const kept = new Set(keys);
  for (const key of map.keys()) if (!kept.has(key)) map.delete(key);
}

/** Make *nodes* the children of *parent*, touching nothing that is in its place. */
function put(parent, nodes) {
  nodes.forEach((node, at) => {
    if (parent.children[at] !== node) parent.insertBefore(node, parent.children[at] ?? null);
  });
  while (parent.children.length > nodes.length) parent.lastElementChild.remove();
}

/** One agent, in the list. Only what has changed is touched. */
class Card {
  constructor(href) {
    this.title = element("a", { class: "title" });
    this.status = element("span", { class: "status" });
    this.who = element("span", { class: "who" });
    this.model = element("span", { class: "model" });
    this.age = ageOf(null);
    this.more = element("a", { class: "files", href, title: "Its files" }, "files");
    this.within = element("ul", { class: "within" });
    this.element = element("li", { class: "agent" }, this.status, this.title, this.who, this.model, this.age, this.more, this.within);
  }

  show(agent) {
    const { status, waitingfor } = agent;
    this.element.dataset.status = status || "unknown";
    setShortText(this.status, status === "waiting" ? `waits for you${waitingfor ? `: ${waitingfor}` : ""}` : status || "–");
    setShortText(this.title, agent.title || agent.name || `${agent.harness} ${agent.pid}`);
    this.title.href = agent.chat?.href ?? agent.href;
    const name = agent.title && agent.name ? ` · ${agent.name}` : "";
    setShortText(this.who, `${agent.harness} ${agent.pid}${name}`);
    setShortText(this.model, agent.model);
    showAge(this.age, agent.chat?.mtime);
    const seen = JSON.stringify(agent.within);
    if (seen !== this.seen) this.within.replaceChildren(...agent.within.flatMap(rowsWithin));
    this.seen = seen;
  }
}

function rowsWithin({ name, href, all, newest }) {
  const rows = newest.map((one) => {
    const title = element("a", { href: one.chat?.href ?? one.href });
    const model = element("span", { class: "model" });
    setShortText(title, one.title || one.name || one.pid);
    setShortText(model, one.model);
    return element("li", {}, element("span", { class: "sort" }, WITHIN[name]), title, model, ageOf(one.chat?.mtime));
  });
  const left = all - newest.length;
  if (left > 0) rows.push(element("li", {}, element("a", { href }, `${count(left, WITHIN[name])} more`)));
  return rows;
}
