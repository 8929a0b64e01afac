// Keys, and the dialog that tells them.

import { element } from "./elements.js";

/** Obey *bindings*: rows of [keys, what they do, action]. `?` tells them. Keys typed into a field are the field's. */
export function bindKeys(bindings) {
  const help = helpDialog([...bindings, [["?"], "These keys", () => help.showModal()]]);
  document.body.append(help);
  const actions = new Map(bindings.flatMap(([keys, , action]) => keys.map((key) => [key, action])));
  actions.set("?", () => help.showModal());
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const isTyping = event.target.closest?.("input, textarea, select");
    const action = actions.get(event.key);
    if (!action || (isTyping && event.key !== "Escape")) return;
    if (action(event) !== false) event.preventDefault();
  });
  return () => help.showModal();
}

function helpDialog(bindings) {
  const rows = bindings.map(([keys, does]) => {
    const shown = keys.flatMap((key, at) => [at ? " " : "", element("kbd", {}, key === " " ? "Space" : key)]);
    return element("div", {}, element("dt", {}, ...shown), element("dd", {}, does));
  });
  const close = element("button", { autofocus: true }, "Close");
  const title = element("h2", { id: "keys-title" }, "Keys");
  return element("dialog", { id: "keys", "aria-labelledby": "keys-title" }, element("form", { method: "dialog" }, title, element("dl", {}, ...rows), close));
}
