// Code in colours. The library comes when the first piece of code is shown; until then, and where it does not know
// the language, code is plain. Colours change no size, so nothing moves when they come.

import { addText, element } from "./elements.js";

const LONGEST = 32 * 1024; // characters
let loading = null;

/** Colour the text of *code*, as soon as that can be done. */
export async function highlight(code, language) {
  const text = code.textContent;
  if (text.length > LONGEST || code.childElementCount) return;
  loading ??= import("./vendor/highlight.min.js");
  const { default: library } = await loading;
  if (!library.getLanguage(language)) return;
  const { _emitter: emitter } = library.highlight(text, { language, ignoreIllegals: true });
  const coloured = document.createDocumentFragment();
  for (const node of emitter.rootNode.children) addNode(coloured, node);
  code.replaceChildren(coloured);
}

// The library's own tree is taken, not its HTML.
function addNode(parent, node) {
  if (typeof node === "string") {
    addText(parent, node);
    return;
  }
  const span = element("span", { class: node.scope && `hl-${node.scope.split(".")[0]}` });
  for (const child of node.children) addNode(span, child);
  parent.append(span);
}
