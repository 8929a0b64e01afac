// The page: the agents, one chat as it grows, or any other directory, by the path in the address bar.
// It only GETs the tree it is served from. What agents said reaches the document by textContent alone.

const FACTS = ["title", "name", "cwd", "status", "waitingfor", "model"];
const AGENTS_EVERY_MS = 3000;
const CHAT_EVERY_MS = 1000;
const SHOWN_AT_FIRST = 300;
const SHOWN_OF_ONE = 64 * 1024; // bytes of a message; the rest is behind its link

const main = document.getElementById("main");
const state = document.getElementById("state");

// -- asking the tree

async function ask(path, headers = {}) {
  const response = await fetch(path, { headers });
  if (!response.ok) throw Object.assign(new Error(`${response.status}`), { status: response.status });
  return response;
}

async function list(path) {
  return (await ask(path, { Accept: "application/json" })).json();
}

async function listOrNothing(path) {
  try {
    return await list(path);
  } catch (error) {
    if (error.status) return []; // it has just ended
    throw error;
  }
}

async function fact(row) {
  try {
    return [row.name, (await (await ask(row.href)).text()).trimEnd()];
  } catch (error) {
    if (error.status) return [row.name, ""];
    throw error;
  }
}

// -- building the document

function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function table(titles, rows) {
  const made = element("table");
  const head = made.createTHead().insertRow();
  for (const title of titles) head.append(element("th", title));
  made.createTBody().append(...rows);
  return made;
}

function row(...cells) {
  const made = element("tr");
  made.append(...cells);
  return made;
}

function linked(text, href) {
  const cell = element("td");
  cell.append(element("a", text, { href }));
  return cell;
}

function showTrail(path) {
  const trail = document.getElementById("trail");
  trail.replaceChildren(element("a", "agents9", { href: "/" }));
  let href = "/";
  for (const part of path.split("/").filter(Boolean)) {
    href += `${part}/`;
    trail.append(element("a", decodeURIComponent(part), { href }));
  }
  document.title = `agents9 ${decodeURIComponent(path)}`;
}

// -- the agents

async function agentRow(harness, agent) {
  const rows = await listOrNothing(agent.href);
  const facts = new Map(await Promise.all(rows.filter((one) => FACTS.includes(one.name)).map(fact)));
  const chat = rows.find((one) => one.name === "chat");
  const title = facts.get("title") || facts.get("name") || "(no title)";
  const status = [facts.get("status"), facts.get("waitingfor")].filter(Boolean).join(": ");
  return row(
    element("td", harness.name),
    linked(agent.name, agent.href),
    chat ? linked(title, chat.href) : element("td", title),
    element("td", status, { "data-status": facts.get("status") ?? "" }),
    element("td", facts.get("model")),
    element("td", facts.get("cwd")),
  );
}

async function agentRows() {
  const harnesses = (await listOrNothing("/active/")).filter((one) => one.type === "directory");
  const found = await Promise.all(
    harnesses.map(async (harness) =>
      Promise.all((await listOrNothing(harness.href)).map((agent) => agentRow(harness, agent))),
    ),
  );
  return found.flat();
}

async function showAgents(top) {
  const agents = element("section");
  main.replaceChildren(agents, directoryTable(top));
  await repeat(AGENTS_EVERY_MS, async () => {
    const rows = await agentRows();
    agents.replaceChildren(
      rows.length
        ? table(["harness", "pid", "title", "status", "model", "directory"], rows)
        : element("p", "No agent is running."),
    );
    return `${rows.length} running`;
  });
}

// -- any directory

function directoryTable(rows) {
  return table(
    ["name", "bytes", "changed"],
    rows.map((one) =>
      row(
        linked(one.type === "directory" ? `${one.name}/` : one.name, one.href),
        element("td", one.type === "file" ? one.size : "", { class: "number" }),
        element("td", new Date(one.mtime).toLocaleString()),
      ),
    ),
  );
}

// -- a chat

const bodies = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      bodies.unobserve(target);
      fill(target);
    }
  },
  { rootMargin: "800px" },
);

async function fill(pre) {
  const { href, size } = pre.dataset;
  const long = Number(size) > SHOWN_OF_ONE;
  try {
    const response = await ask(href, long ? { Range: `bytes=0-${SHOWN_OF_ONE - 1}` } : {});
    pre.textContent = (await response.text()) + (long ? "\n[…]" : "");
  } catch (error) {
    pre.textContent = error.status ? "(gone)" : "(not reached)";
  }
}

function article(message) {
  const made = element("article", "", { "data-kind": message.kind, id: message.name });
  const heading = element("h2", message.kind);
  const when = element("time", new Date(message.mtime).toLocaleString(), { datetime: message.mtime });
  heading.append(when, element("a", `#${message.id}, ${message.size} bytes`, { href: message.href }));
  const body = element("pre", "", { "data-href": message.href, "data-size": message.size });
  made.append(heading, body);
  bodies.observe(body);
  return made;
}

class ChatView {
  constructor(path) {
    this.path = path;
    this.messages = element("section");
    this.earlier = element("button", "Show earlier messages", { type: "button" });
    this.earlier.addEventListener("click", () => this.showEarlier());
    main.replaceChildren(this.earlier, this.messages);
    this.reset();
  }

  reset() {
    this.transcript = null;
    this.last = -1;
    this.heard = [];
    this.hidden = [];
    this.messages.replaceChildren();
    this.earlier.hidden = true;
  }

  // What asks for the messages that are not here yet.
  query() {
    return this.last < 0 ? "" : `?after=${this.last}&transcript=${this.transcript}`;
  }

  count() {
    return `${this.last + 1} messages`;
  }

  async refresh() {
    let response;
    try {
      response = await ask(this.path + this.query(), { Accept: "application/json" });
    } catch (error) {
      if (error.status !== 410) throw error;
      this.reset(); // another transcript: /clear, /resume, or a file rewritten
      return "another transcript";
    }
    return this.take(response);
  }

  async take(response) {
    this.transcript = response.headers.get("Agents9-Transcript");
    this.add(await response.json());
    return this.count();
  }

  // Messages that come together are shown together.
  hear(event) {
    if (!this.heard.length) setTimeout(() => this.showHeard());
    this.heard.push(event);
  }

  showHeard() {
    const events = this.heard.splice(0);
    if (!events.length) return;
    this.transcript = events.at(-1).lastEventId.split("/")[0];
    this.add(events.map((event) => JSON.parse(event.data)));
    state.textContent = this.count();
  }

  hearReset(event) {
    this.reset(); // another transcript: /clear, /resume, or a file rewritten
    this.transcript = JSON.parse(event.data).transcript;
    state.textContent = "another transcript";
  }

  add(messages) {
    if (!messages.length) return;
    const atEnd = window.innerHeight + window.scrollY > document.body.scrollHeight - 80;
    const first = this.last < 0;
    this.last = messages.at(-1).id;
    if (first) this.hidden = messages.splice(0, messages.length - SHOWN_AT_FIRST);
    this.earlier.hidden = this.hidden.length === 0;
    this.messages.append(...messages.map(article));
    if (first || atEnd) window.scrollTo(0, document.body.scrollHeight);
  }

  showEarlier() {
    const height = document.body.scrollHeight;
    this.messages.prepend(...this.hidden.splice(-SHOWN_AT_FIRST).map(article));
    this.earlier.hidden = this.hidden.length === 0;
    window.scrollBy(0, document.body.scrollHeight - height);
  }
}

// -- following

// Run *look* again and again while the page is seen; what it returns, or how it fails, is the state shown.
async function repeat(everyMs, look) {
  for (;;) {
    if (!document.hidden) {
      try {
        state.textContent = await look();
      } catch (error) {
        state.textContent = error.status === 404 ? "ended" : `not reached (${error.message})`;
      }
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

// Let the server say what is new while the page is seen. Where it will not (503: too many wait), or the chat has
// ended, ask again and again instead: that also says why.
async function follow(chat) {
  while (await stream(chat)) await seen();
  await repeat(CHAT_EVERY_MS, () => chat.refresh());
}

// Add what the stream says until the page is hidden (true: go on later) or the server refuses (false). A browser keeps
// few connections to one server: a hidden page must not hold one.
function stream(chat) {
  return new Promise((resolve) => {
    const source = new EventSource(chat.path + chat.query());
    const end = (again) => {
      source.close();
      chat.showHeard();
      document.removeEventListener("visibilitychange", whenHidden);
      resolve(again);
    };
    const whenHidden = () => document.hidden && end(true);
    document.addEventListener("visibilitychange", whenHidden);
    source.addEventListener("open", () => (state.textContent = chat.count()));
    source.addEventListener("message", (event) => chat.hear(event));
    source.addEventListener("reset", (event) => chat.hearReset(event));
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) end(false);
      else state.textContent = "not reached; trying again";
    });
    whenHidden();
  });
}

// Wait until the page is seen.
function seen() {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });
}

async function show() {
  const path = location.pathname.replace(/\/*$/, "/");
  showTrail(path);
  const response = await ask(path, { Accept: "application/json" });
  if (response.headers.has("Agents9-Transcript")) {
    const chat = new ChatView(path);
    state.textContent = await chat.take(response);
    await follow(chat);
  }
  const rows = await response.json();
  if (path === "/" || path === "/active/") await showAgents(rows);
  main.replaceChildren(directoryTable(rows));
}

show().catch((error) => {
  state.textContent = `not reached (${error.message})`;
});
