// The page: the agents, one chat, or any other directory, by the path in the address bar.
//
//   page ── / , /active/        → agents (sessions)
//        ├─ a chat, by its header → heading, chat → selection, scroll, message, follow
//        └─ any other            → directory
//
// It only GETs the tree that it is served from (tree.js). What agents said reaches the document as text (elements.js).

import { Chat } from "./chat.js";
import { showAgents } from "./agents.js";
import { showDirectory } from "./directory.js";
import { element } from "./elements.js";
import { showHeading } from "./heading.js";
import { whenVisible, wait } from "./polling.js";
import { failurePanel, loading, showState } from "./states.js";
import { ask, names } from "./tree.js";

const AGAIN_MS = 3000;

const main = document.getElementById("main");
const path = location.pathname.replace(/\/*$/, "/");

function showTrail() {
  const parts = names(path);
  const links = [element("a", { href: "/" }, "agents9")];
  let href = "/";
  for (const part of parts) {
    href += `${encodeURIComponent(part)}/`;
    links.push(element("a", { href }, part));
  }
  links.at(-1).setAttribute("aria-current", "page");
  document.getElementById("trail").replaceChildren(...links);
  document.title = ["agents9", ...parts].join(" / ");
}

async function show() {
  if (path === "/" || path === "/active/") return showAgents(main);
  const loaded = loading(main, "");
  let response;
  try {
    response = await ask(path, { headers: { Accept: "application/json" } });
  } finally {
    loaded();
  }
  const transcript = response.headers.get("Agents9-Transcript");
  const rows = await response.json();
  if (transcript === null) return showDirectory(main, path, rows);
  document.body.classList.add("has-chat");
  showHeading(document.getElementById("heading"), path);
  return new Chat(path, main, document.getElementById("bar")).begin(rows, transcript);
}

// What fails before anything is shown is tried again, where that may help.
async function start() {
  for (;;) {
    try {
      return await show();
    } catch (error) {
      if (error.status === undefined) throw error; // a fault of the page's own
      let again;
      const pressed = new Promise((resolve) => (again = resolve));
      main.replaceChildren(failurePanel(error, again));
      showState(error.status === 404 ? "ended" : "late", error.status ? `the server said ${error.status}` : "not reached; trying again");
      await (error.status ? pressed : Promise.race([pressed, wait(AGAIN_MS)]));
      await whenVisible();
    }
  }
}

showTrail();
start();
