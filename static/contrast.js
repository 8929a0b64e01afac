// Colours that a program chose, made readable: WCAG's contrast, in the light page and in the dark one. Pure.

const LEAST = 4.5;
const [BLACK, WHITE] = [[0, 0, 0], [255, 255, 255]];

// What text stands on where the program chose nothing (--panel), or a colour with a name (the one nearest to text).
const PAPERS = { plain: [[245, 246, 248], [27, 31, 36]], named: [[205, 222, 214], [84, 84, 94]] };

/** How *one* and *other*, each [red, green, blue], differ: from 1, not at all, to 21. */
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function luminance(colour) {
  const [red, green, blue] = colour.map((part) => {
    const level = part / 255;
    return level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** *ink* as a colour of CSS that can be read on *paper*: [red, green, blue], "named" or "plain". */
export function readable(ink, paper) {
  const [light, dark] = (PAPERS[paper] ?? [paper, paper]).map((one) => css(moved(ink, one)));
  return light === dark ? light : `light-dark(${light}, ${dark})`;
}

/** Black or white, whichever is read better on *paper*. */
export const inkFor = (paper) => css(opposite(paper));

const opposite = (paper) => (contrast(BLACK, paper) > contrast(WHITE, paper) ? BLACK : WHITE);

// *ink* moved towards black or white until it can be read.
function moved(ink, paper) {
  const towards = opposite(paper);
  for (let step = 0; step < 20; step++) {
    const mixed = ink.map((part, at) => Math.round(part + ((towards[at] - part) * step) / 20));
    if (contrast(mixed, paper) >= LEAST) return mixed;
  }
  return towards;
}

export const css = (colour) => `rgb(${colour.join(", ")})`;
