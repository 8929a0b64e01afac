// Elements of the document. Whatever an agent said comes in through textContent, or as a text node: never as markup.

/** An element. *attributes* with the value false or null are left out. *children*: nodes and strings. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Set the text of *node* only where it differs, so that a screen reader is not told the same again. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The same where *node* may be cut with an ellipsis: to point at it tells the whole. */
export function setShortText(node, text) {
  setText(node, text);
  if (node.title !== text) node.title = text;
}

// Characters that would show nothing, or turn the text around: C0 and C1 but tab and newline, bidi controls, those
// without width (not the joiners, which shape letters and pictures) and tags.
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/u;

const NAMES = {
  "\u061c": "ALM", "\u200e": "LRM", "\u200f": "RLM", "\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF",
  "\u202d": "LRO", "\u202e": "RLO", "\u2066": "LRI", "\u2067": "RLI", "\u2068": "FSI", "\u2069": "PDI",
  "\xad": "SHY", "\u200b": "ZWSP", "\u2060": "WJ", "\ufeff": "BOM",
};

/** Add *text* to *parent*, with a visible mark for each character that is unseen. */
export function addText(parent, text) {
  if (!UNSEEN.test(text)) {
    parent.append(text);
    return parent;
  }
  for (const part of text.split(new RegExp(`(${UNSEEN.source})`, "u"))) {
    if (part) parent.append(UNSEEN.test(part) ? mark(part) : part);
  }
  return parent;
}

function mark(character) {
  const code = character.codePointAt(0);
  const hex = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const shown = code < 0x20 ? String.fromCharCode(0x2400 + code) : NAMES[character] ?? hex;
  return element("span", { class: "unseen", title: hex }, shown);
}
