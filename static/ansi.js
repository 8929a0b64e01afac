// What a program wrote to a terminal: its colours are kept, every other escape is dropped (ECMA-48, xterm's ctlseqs).
// Nothing can be hidden: concealed text shows, what a carriage return would overwrite is a line of its own, and an
// escape that does not end takes nothing with it.

import { css, inkFor, readable } from "./contrast.js";
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

// What each code of a "select graphic rendition" changes; colours with parameters of their own: COLOURS.
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

const COLOURS = { 38: "ink", 48: "paper", 58: "line" }; // that of an underline is not shown

/** The style after the parameters of one sequence; those of one code are parted by colons, or by semicolons as others. */
export function changed(style, parameters) {
  const codes = parameters.split(";").map((code) => code.split(":").map((part) => Number(part) || 0));
  const next = { ...style };
  while (codes.length) {
    const [code, ...own] = codes.shift();
    if (Object.hasOwn(COLOURS, code)) {
      const colour = own.length ? colourOf(own[0], own.slice(1)) : colourAhead(codes);
      if (colour && code !== 58) next[COLOURS[code]] = colour;
    } else {
      Object.assign(next, code === 4 && own[0] === 0 ? CODES[24] : CODES[code]);
    }
  }
  return next;
}

// The colour that the next codes name; they are taken.
function colourAhead(codes) {
  const [form] = codes.shift() ?? [];
  const many = { 5: 1, 2: 3 }[form] ?? 0;
  return colourOf(form, codes.splice(0, many).map(([code]) => code));
}

function colourOf(form, codes) {
  if (form === 5) return fromPalette(codes[0]);
  return form === 2 ? rgb(codes.slice(-3)) : null; // before the three there may be a colour space
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
  return parts.length === 3 && parts.every((part) => part < 256) ? parts : null;
}

function addStyled(parent, text, style) {
  if (!text) return;
  if (style === PLAIN) {
    addText(parent, text);
    return;
  }
  const [ink, paper] = style.inverse ? turned(style) : [style.ink, style.paper];
  const words = ["bold", "faint", "italic", "underline", "strike"].filter((word) => style[word]);
  const span = element("span", { class: words.map((word) => `sgr-${word}`).join(" ") || null });
  colour(span, ink, paper);
  parent.append(addText(span, text));
}

// Ink and paper in each other's place. The papers with names are pale, so that what is on them is in the page's own ink.
function turned({ ink, paper }) {
  if (!ink) return ["paper", "ink"];
  return [paper ?? null, ink];
}

// A colour with a name has a class, so that it suits the dark and the light page; others are as the program chose them
// where they can be read so.
function colour(span, ink, paper) {
  if (Array.isArray(paper)) {
    span.style.backgroundColor = css(paper);
    span.style.color = Array.isArray(ink) ? readable(ink, paper) : inkFor(paper);
    return;
  }
  if (paper) span.classList.add(`paper-${paper}`);
  if (Array.isArray(ink)) span.style.color = readable(ink, paper ? "named" : "plain");
  else if (ink) span.classList.add(`ink-${ink}`);
}
