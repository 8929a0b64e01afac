// What a chat is of: the facts of its agent above it, kept true while it is seen.

import { element, setText, setShortText } from "./elements.js";
import { repeat } from "./polling.js";
import { Facts, list, names } from "./tree.js";

const EVERY_MS = 3000;
const FACTS = ["title", "name", "cwd", "status", "waitingfor", "model"];

/** Show in *place* whose chat is at *path*, for ever. */
export async function showHeading(place, path) {
  const agent = path.replace(/chat\/$/, "");
  const facts = new Facts();
  const title = element("h1", {}, names(agent).slice(-2).join(" "));
  const status = element("span", { class: "status", role: "status" });
  const model = element("span", { class: "model" });
  const cwd = element("span", { class: "cwd" });
  const files = element("a", { href: agent }, "files");
  const text = element("a", { href: `${agent}chat.md` }, "chat.md");
  place.replaceChildren(title, status, cwd, model, element("span", { class: "links" }, files, " ", text));
  const look = async () => {
    const found = await facts.of(await list(agent), FACTS);
    const shown = found.title || found.name || names(agent).slice(-2).join(" ");
    setShortText(title, shown);
    document.title = `${found.status === "waiting" ? "(!) " : ""}${shown} – agents9`;
    place.dataset.status = found.status || "unknown";
    status.hidden = !found.status;
    setShortText(status, found.status === "waiting" ? `waits for you${found.waitingfor ? `: ${found.waitingfor}` : ""}` : found.status);
    setShortText(cwd, found.cwd);
    setShortText(model, found.model);
  };
  const failed = (error) => {
    place.dataset.status = "unknown"; // `follow` says what is wrong
    if (error.status === 404) status.hidden = true;
  };
  await repeat(EVERY_MS, look, failed);
}
