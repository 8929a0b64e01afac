// Calls that are about somebody rather than the machine: what is asked of him, a plan, what is to be done.

import { firstLine } from "./call.js";
import { addText, element } from "./elements.js";
import { addMarkdown } from "./markdown.js";

const TOOL_CARDS = {
  askuserquestion: ({ questions, ...left }) => ({ summary: questions[0].question, fill: (body) => body.append(...questions.map(question)), left }),
  exitplanmode: ({ plan, ...left }) => ({ summary: plan, fill: (body) => addMarkdown(body, text(plan)), left }),
  todowrite: ({ todos, ...left }) => ({ summary: steps(todos), fill: (body) => body.append(stepList(todos)), left }),
  update_plan: ({ plan, ...left }) => ({ summary: steps(plan), fill: (body) => body.append(stepList(plan)), left }),
};
TOOL_CARDS.request_user_input = TOOL_CARDS.askuserquestion;

/** What a call tells: summary (one line), fill (body), left (the arguments that are not in it, or null); another call: null. */
export function toolCard(tool, input) {
  const name = tool.toLowerCase();
  if (typeof input !== "object" || !Object.hasOwn(TOOL_CARDS, name)) return null;
  try {
    const told = TOOL_CARDS[name](input);
    const made = document.createDocumentFragment();
    told.fill(made);
    return {
      summary: firstLine(told.summary),
      fill: (body) => body.append(made),
      left: Object.keys(told.left).length ? told.left : null,
    };
  } catch (error) {
    if (error instanceof TypeError) return null; // a tool of that name with other arguments
    throw error;
  }
}

// Text that must be there; a TypeError where it is not.
const text = (value) => value.slice(0).toString();

function question({ header, question: asked, options = [] }) {
  const said = element("div", { class: "question" });
  if (header) said.append(addText(element("p", { class: "faint" }), text(header)));
  said.append(addText(element("p", { class: "asked", dir: "auto" }), text(asked)));
  if (options.length) said.append(element("ul", {}, ...options.map(option)));
  return said;
}

function option({ label, description, preview }) {
  const item = element("li", { dir: "auto" }, addText(element("strong"), text(label)));
  if (description) addText(item, `: ${text(description)}`);
  if (preview) item.append(addText(element("pre", { tabindex: "0" }), text(preview)));
  return item;
}

const MARKS = { completed: "✓", in_progress: "▸", pending: "○" };
const told = ({ content, step }) => text(content ?? step);

function steps(all) {
  const done = all.filter(({ status }) => status === "completed").length;
  const now = all.find(({ status }) => status === "in_progress");
  return `${done} of ${all.length} done${now ? `: ${told(now)}` : ""}`;
}

function stepList(all) {
  return element("ul", { class: "steps" }, ...all.map((one) => {
    const mark = element("span", { class: "mark", role: "img", "aria-label": one.status ?? "" }, MARKS[one.status] ?? "·");
    return addText(element("li", { dir: "auto", "data-status": one.status ?? null }, mark, " "), told(one));
  }));
}
