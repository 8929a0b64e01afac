// The result of a tool call: what of it is shown, and whether it tells of an error. Pure.
//
// The tree serves what was said, not the harness's own mark of an error; so an error is known by its words.

import { withoutEscapes } from "./ansi.js";
import { summed } from "./call.js";

const HEAD = 4096;

/** What a result says: output, exit (a number, or null), summary (one line), more (how many lines follow). */
export function parseResult(text) {
  const { output, exit } = unwrapped(text);
  const said = output.slice(headOf(output).length);
  const { summary, more } = summed(withoutEscapes(said.trim() ? said : output));
  return { output, exit, summary, more };
}

// What codex says of a command before its output: some of these lines.
const HEAD_LINES = /^(?:(?:Chunk ID|Wall time|Exit code|Original token count|Total output lines): .*\n|Process .*\n)+Output:\n/;
const EXIT = /^(?:Exit code: |Process exited with code )(\d+)$/m;

const headOf = (output) => HEAD_LINES.exec(output.slice(0, HEAD))?.[0] ?? "";

/** Some of codex's tools answer JSON with the output inside. */
function unwrapped(text) {
  if (text.startsWith('{"output":')) {
    try {
      const { output, metadata } = JSON.parse(text);
      if (typeof output === "string") return { output, exit: metadata?.exit_code ?? null };
    } catch {
      // cut, or of another kind: as it stands
    }
  }
  const code = EXIT.exec(headOf(text));
  return { output: text, exit: code && Number(code[1]) };
}

const TELLING = [
  /^<tool_use_error>/,
  /^(?:Error: )?Exit code [1-9]/m, // claude's Bash
  /^(?:Exit code: |Process exited with code )[1-9]/m, // codex's shell
  /^(?:\w+ )?\w*(?:[Ee]rror|ERROR|Exception|fatal|FATAL|panic)(?:\[\w+\])?: \S/m,
  /^(?:apply_patch verification failed|unsupported (?:custom )?(?:tool )?call|execution error)/m,
  /^Traceback \(most recent call last\):/m,
  /: (?:command not found|No such file or directory|Permission denied)$/m,
  /^The user doesn't want to proceed with this tool use/,
  /^\[Request interrupted by user/,
];

/** Tell whether a result, or what the harness itself said, is about something that went wrong. */
export function isError(text) {
  const { output, exit } = unwrapped(text);
  if (exit !== null) return exit !== 0;
  const head = withoutEscapes(output.slice(0, HEAD));
  return TELLING.some((words) => words.test(head));
}
