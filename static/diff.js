// Edits as lines that went, lines that came and lines around them. What is one: call.js.

import { addText, element } from "./elements.js";

const MOST_CELLS = 1_000_000; // of the table of common lines; beyond, all of one goes and all of the other comes

/** The lines of *before* and *after* as [sign, text]; sign is "-", "+" or " ". Pure. */
export function lineDiff(before, after) {
  const [old, fresh] = [lines(before), lines(after)];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head++;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++;
  const middle = common(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail));
  const same = (text) => [" ", text];
  return [...old.slice(0, head).map(same), ...middle, ...old.slice(old.length - tail).map(same)];
}

/** The lines of a text; a newline at its end begins none. */
export function lines(text) {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

// The longest common subsequence, by its table: small inputs only.
function common(old, fresh) {
  const width = fresh.length + 1;
  const gone = (text) => ["-", text];
  const come = (text) => ["+", text];
  if (!old.length || !fresh.length || old.length * fresh.length > MOST_CELLS) {
    return [...old.map(gone), ...fresh.map(come)];
  }
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = fresh.length - 1; j >= 0; j--) {
      longest[i * width + j] =
        old[i] === fresh[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < fresh.length) {
    if (old[i] === fresh[j]) found.push([" ", old[i++]]), j++;
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) found.push(gone(old[i++]));
    else found.push(come(fresh[j++]));
  }
  return [...found, ...old.slice(i).map(gone), ...fresh.slice(j).map(come)];
}

/** How many lines came and went. */
export function tally(changes) {
  const many = (sign) => changes.filter(([one]) => one === sign).length;
  return { added: many("+"), removed: many("-") };
}

const CLASSES = { "+": "added", "-": "removed", " ": "same", "@": "hunk" };
const SPOKEN = { "+": "added: ", "-": "removed: " };

/** Lines as one block; each says in words, for who does not see colours, what became of it. */
export function diffBlock(changes) {
  const block = element("div", { class: "diff", role: "group", "aria-label": "Changed lines", tabindex: "0" });
  for (const [sign, text] of changes) {
    const row = element("div", { class: CLASSES[sign] }, element("span", { class: "sign", "aria-hidden": "true" }, sign === "@" ? "" : sign));
    if (SPOKEN[sign]) row.append(element("span", { class: "spoken" }, SPOKEN[sign]));
    row.append(addText(element("span", { class: "line" }), text || "\n"));
    block.append(row);
  }
  return block;
}
