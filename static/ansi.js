// What a program wrote to a terminal: its colours are kept, every other escape is dropped (ECMA-48, xterm's ctlseqs).
// Nothing can be hidden: concealed text shows, what a carriage return would overwrite is a line of its own, and an
// escape that does not end takes nothing with it.

import { addText, element } from "./elements.js";

const ESCAPES = new RegExp(
  [
    "(?:\\x1b\\[|\\x9b)([0-?]*)[ -/]*([@-~])", // a control sequence: its parameters, and what it is
    "(?:\\x1b[\\]PX^_]|[\\x9d\\x90\\x98\\x9e\\x9f])[^\\x07\\x1b\\x9c\\n]*(?:\\x07|\\x1b\\\\|\\x9c)", // a whole string: title, link
    "\\x1b(?![\\[\\]PX^_])[ -/]*[0-~]", // anything else
  ].join("|"),
  "g",
);

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const PLAIN = { ink: null, paper: null, bold: false, faint: false, italic: false, underline: false, strike: false, inverse: false };

// What each code of a "select graphic rendition" changes; colours with parameters of their own are 38 and 48.
const CODES = {
  0: PLAIN, 1: { bold: true }, 2: { faint: true }, 3: { italic: true }, 4: { underline: true }, 7: { inverse: true },
  9: { strike: true }, 22: { bold: false, faint: false }, 23: { italic: false }, 24: { underline: false },
  27: { inverse: false }, 29: { strike: false }, 39: { ink: null }, 49: { paper: null },
};
NAMES.forEach((name, number) => {
  CODES[30 + number] = { ink: name };
  CODES[40 + number] = { paper: name };
  CODES[90 + number] = { ink: `bright-${name}` };
  CODES[100 + number] = { paper: `bright-${name}` };
});

/** Add *text* to *parent*, in its colours. */
export function addTerminalText(parent, text) {
  const lines = text.replace(/\r+\n/g, "\n").replace(/\r/g, "\n");
  let style = PLAIN;
  let from = 0;
  for (const escape of lines.matchAll(ESCAPES)) {
    addStyled(parent, lines.slice(from, escape.index), style);
    if (escape[2] === "m") style = changed(style, escape[1]);
    from = escape.index + escape[0].length;
  }
  addStyled(parent, lines.slice(from), style);
  return parent;
}

/** *text* without any escape. */
export function withoutEscapes(text) {
  return text.replace(ESCAPES, "");
}

/** The style after the parameters of one sequence. */
export function changed(style, parameters) {
  const codes = parameters.split(/[;:]/).map((code) => Number(code) || 0);
  const next = { ...style };
  for (let at = 0; at < codes.length; at++) {
    if (codes[at] === 38 || codes[at] === 48) {
      const [colour, taken] = colourOf(codes.slice(at + 1));
      if (colour) next[codes[at] === 38 ? "ink" : "paper"] = colour;
      at += taken;
    } else {
      Object.assign(next, CODES[codes[at]]);
    }
  }
  return next;
}

/** The colour that codes after 38 or 48 name, and how many of them do so. */
function colourOf([form, ...codes]) {
  if (form === 5) return [fromPalette(codes[0]), 2];
  if (form === 2) return [rgb(codes.slice(0, 3)), 4];
  return [null, 1];
}

function fromPalette(number) {
  if (!(number >= 0 && number < 256)) return null;
  if (number < 16) return number < 8 ? NAMES[number] : `bright-${NAMES[number - 8]}`;
  if (number >= 232) return rgb(Array(3).fill(8 + 10 * (number - 232)));
  const level = (step) => (step ? 55 + 40 * step : 0);
  const cube = number - 16;
  return rgb([level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)]);
}

function rgb(parts) {
  return parts.length === 3 && parts.every((part) => part < 256) ? `rgb(${parts.join(", ")})` : null;
}

function addStyled(parent, text, style) {
  if (!text) return;
  if (style === PLAIN) {
    addText(parent, text);
    return;
  }
  const [ink, paper] = style.inverse ? [style.paper ?? "paper", style.ink ?? "ink"] : [style.ink, style.paper];
  const words = ["bold", "faint", "italic", "underline", "strike"].filter((word) => style[word]);
  const span = element("span", { class: words.map((word) => `sgr-${word}`).join(" ") || null });
  colour(span, "color", "ink", ink);
  colour(span, "backgroundColor", "paper", paper);
  parent.append(addText(span, text));
}

// A colour with a name has a class, so that it suits the dark and the light page; others are as the program chose them.
function colour(span, property, prefix, value) {
  if (!value) return;
  if (value.startsWith("rgb")) span.style[property] = value;
  else span.classList.add(`${prefix}-${value}`);
}
