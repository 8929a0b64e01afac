// A tool call: its text is the tool's name on a line, then its input as the harness wrote it. Pure.

import { lineDiff, lines } from "./diff.js";

/** What a call says: tool, input (an object, or text), summary (one line), edits ([{path, changes}], or none). */
export function parseCall(text) {
  const end = text.indexOf("\n");
  const tool = end < 0 ? text : text.slice(0, end);
  const input = parsed(end < 0 ? "" : text.slice(end + 1).replace(/\n$/, ""));
  const edits = editsOf(tool, input);
  return { tool, input, summary: edits.length ? named(edits) : summary(input), edits };
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : text;
  } catch {
    return text; // a patch, a command, or JSON that was cut
  }
}

// The arguments that say best what a call is about, the best first.
const TELLING = ["command", "cmd", "file_path", "notebook_path", "pattern", "query", "path", "url", "description", "prompt", "subject", "skill", "message", "text"];

function summary(input) {
  if (typeof input === "string") return firstLine(input);
  const name = TELLING.find((one) => input[one] !== undefined && input[one] !== "");
  if (name === undefined) return firstLine(JSON.stringify(input));
  return firstLine(asText(input[name]));
}

/** An argument as text: words of a command with blanks between them, anything else as JSON. */
export function asText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" ");
  return JSON.stringify(value, null, 2) ?? "";
}

/** The first line of *text* that is not blank. */
export function firstLine(text) {
  return /[^\n]*\S[^\n]*/.exec(text.slice(0, 4096))?.[0].trim().slice(0, 400) ?? "";
}

function named(edits) {
  const [first, ...rest] = edits;
  return rest.length ? `${first.path} and ${rest.length} more` : first.path;
}

// -- edits

const EDITORS = {
  edit: (input) => [replaced(input, [input])],
  multiedit: (input) => [replaced(input, input.edits)],
  write: (input) => [{ path: input.file_path, changes: lines(input.content).map((line) => ["+", line]) }],
};

function editsOf(tool, input) {
  try {
    const patch = patchIn(input);
    if (patch) return parsePatch(patch);
    return typeof input === "object" ? EDITORS[tool.toLowerCase()]?.(input) ?? [] : [];
  } catch (error) {
    if (error instanceof TypeError) return []; // a tool of that name with other arguments
    throw error;
  }
}

function replaced({ file_path: path }, edits) {
  const hunks = edits.map((edit) => lineDiff(edit.old_string, edit.new_string));
  return { path, changes: hunks.flatMap((hunk, at) => (at ? [["@", ""], ...hunk] : hunk)) };
}

/** The patch that is the input itself, one of its arguments, or within a shell command; none: null. */
function patchIn(input) {
  const values = typeof input === "string" ? [input] : Object.values(input).map(asText);
  for (const value of values) {
    const patch = /^\*\*\* Begin Patch\n[^]*?(?:^\*\*\* End Patch|$(?![^]))/m.exec(value);
    if (patch) return patch[0];
    const quoted = /apply_patch[^\n]*(\*\*\* Begin Patch\n[^]*?)(?:^\*\*\* End Patch|$(?![^]))/m.exec(value);
    if (quoted) return quoted[1];
  }
  return null;
}

const FILE = /^\*\*\* (Add|Update|Delete) File: (.*)$/;

/** Read a patch in codex's format. */
export function parsePatch(patch) {
  const edits = [];
  for (const line of lines(patch).slice(1)) {
    const file = FILE.exec(line);
    if (file) {
      const path = file[1] === "Delete" ? `${file[2]} (deleted)` : file[2];
      edits.push({ path, changes: [] });
    } else if (line.startsWith("*** Move to: ") && edits.length) {
      edits.at(-1).path += ` → ${line.slice("*** Move to: ".length)}`;
    } else if (!line.startsWith("*** ") && edits.length) {
      edits.at(-1).changes.push(patchLine(line));
    }
  }
  return edits;
}

function patchLine(line) {
  if (line.startsWith("@@")) return ["@", line.slice(2).trim()];
  return "+- ".includes(line[0] ?? " ") ? [line[0] ?? " ", line.slice(1)] : [" ", line];
}
