// The address of a chat says what is shown of it: `?show=prompts&q=word#00000413`. curl takes the same one.

import { SHOWS } from "./selection.js";

/** What the address bar asks for: show (of SHOWS), q, target (the id of a message, or null). */
export function asked() {
  const query = new URLSearchParams(location.search);
  const show = query.get("show");
  const id = /^#(\d+)$/.exec(location.hash);
  return {
    show: Object.hasOwn(SHOWS, show ?? "") ? show : "all",
    q: query.get("q") ?? "",
    target: id ? Number(id[1]) : null,
  };
}

/** The address of a part of the chat at *path*. */
export function addressOf(path, { show, q }) {
  const query = new URLSearchParams();
  if (show !== "all") query.set("show", show);
  if (q) query.set("q", q);
  return query.size ? `${path}?${query}` : path;
}

/** The address of one message, in the whole chat. */
export function addressOfMessage(path, id) {
  return `${path}#${String(id).padStart(8, "0")}`;
}
