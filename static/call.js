// A tool call: its text is the tool's name on a line, then its input as the harness wrote it. Pure.

import { lineDiff, lines } from "./diff.js";

/**
 * What a call says: tool, input (an object, or text), summary (one line), more (how many lines of what that sums up
 * follow), edits ([{path, changes}], or none), left (what of the input the edits do not show, or null).
 */
export function parseCall(text) {
  const end = text.indexOf("\n");
  const tool = end < 0 ? text : text.slice(0, end);
  const input = parsed(end < 0 ? "" : text.slice(end + 1).replace(/\n$/, ""));
  const { edits, left } = editsOf(tool.toLowerCase(), input) ?? { edits: [], left: input };
  const isShell = left === input;
  return { tool, input, edits, left, ...(edits.length && !isShell ? { summary: named(edits), more: 0 } : summed(telling(input))) };
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : text;
  } catch {
    return text; // a patch, a command, or JSON that was cut
  }
}

/** The arguments that are a command of a shell. */
export const COMMANDS = ["command", "cmd", "script"];

// The arguments that say best what a call is about, the best first.
const TELLING = ["command", "cmd", "file_path", "notebook_path", "pattern", "query", "path", "url", "description", "prompt", "subject", "skill", "message", "text"];

// What of an input says best what it is about.
function telling(input) {
  if (typeof input === "string") return input;
  const name = TELLING.find((one) => input[one] !== undefined && input[one] !== "");
  return name === undefined ? JSON.stringify(input) : asText(input[name]);
}

/** The first line of a text, and how many more there are. */
export function summed(text) {
  const { length } = lines(text.trim());
  return { summary: firstLine(text), more: Math.max(0, length - 1) };
}

/** An argument as text: words of a command with blanks between them, anything else as JSON. */
export function asText(value) {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" ");
  return JSON.stringify(value, null, 2) ?? "";
}

const LONGEST_LINE = 400;

/** The first line of *text* that is not blank; … where it was cut. */
export function firstLine(text) {
  const line = /[^\n]*\S[^\n]*/.exec(text.slice(0, 4096))?.[0].trim() ?? "";
  return line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line;
}

function named(edits) {
  const [first, ...rest] = edits;
  return rest.length ? `${first.path} and ${rest.length} more` : first.path;
}

// -- edits

// Each tool's own arguments say what it changes; whatever else is in them, as a patch in a file's text, does not.
const EDITORS = {
  edit: ({ old_string, new_string, replace_all, file_path, ...left }) => ({ edits: [replaced(file_path, [{ old_string, new_string, replace_all }])], left }),
  multiedit: ({ edits, file_path, ...left }) => ({ edits: [replaced(file_path, edits)], left }),
  write: ({ file_path, content, ...left }) => ({ edits: [{ path: file_path, changes: lines(content).map((line) => ["+", line]) }], left }),
};
const SHELLS = new Set(["bash", "shell", "exec", "exec_command", "local_shell", "shell_command", "container.exec", "terminal"]);

// What a tool changes, and what of its input that does not show; null: nothing that is known.
function editsOf(tool, input) {
  try {
    if (tool === "apply_patch") return patched(input);
    if (SHELLS.has(tool)) return patchedWithin(input);
    return typeof input === "object" && Object.hasOwn(EDITORS, tool) ? withLeft(EDITORS[tool](input)) : null;
  } catch (error) {
    if (error instanceof TypeError) return null; // a tool of that name with other arguments
    throw error;
  }
}

const withLeft = ({ edits, left }) => ({ edits, left: Object.keys(left).length ? left : null });

function replaced(path, edits) {
  const changes = edits.flatMap((edit, at) => {
    const { old_string: before, new_string: after, replace_all: isEverywhere } = edit;
    const title = isEverywhere ? "everywhere" : "";
    return [...(at || title ? [["@", title]] : []), ...lineDiff(before, after), ...lastNewline(before, after)];
  });
  return { path, changes };
}

// A diff of lines does not tell whether the last one ends.
function lastNewline(before, after) {
  if (!before || !after || before.endsWith("\n") === after.endsWith("\n")) return [];
  return [["@", after.endsWith("\n") ? "a newline at the end is new" : "the newline at the end has gone"]];
}

const PATCH_WITHIN = /\bapply_patch\b[^\n]*\n?(\*\*\* Begin Patch\n[^]*?)(?:^\*\*\* End Patch|$(?![^]))/m;

// The input of apply_patch is a patch, or has it as its one argument.
function patched(input) {
  const [patch, ...others] = typeof input === "string" ? [input] : Object.values(input);
  if (others.length || !patch.trimStart().startsWith("*** Begin Patch\n")) return null;
  const edits = parsePatch(patch.trim());
  return edits.length ? { edits, left: null } : null;
}

// A shell command may apply a patch, and do anything else besides: all of it is shown too.
function patchedWithin(input) {
  const values = typeof input === "string" ? [input] : COMMANDS.filter((name) => input[name] !== undefined).map((name) => asText(input[name]));
  const patch = values.map((value) => PATCH_WITHIN.exec(value)?.[1]).find(Boolean);
  return patch ? { edits: parsePatch(patch), left: input } : null;
}

const FILE = /^\*\*\* (Add|Update|Delete) File: (.*)$/;

const MARKS = new Set(["*** End Patch", "*** End of File"]);

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
    } else if (edits.length && !MARKS.has(line.trim())) {
      edits.at(-1).changes.push(patchLine(line));
    }
  }
  return edits;
}

function patchLine(line) {
  if (line.startsWith("@@")) return ["@", line.slice(2).trim()];
  return "+- ".includes(line[0] ?? " ") ? [line[0] ?? " ", line.slice(1)] : [" ", line];
}
