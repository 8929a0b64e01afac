// Markdown as elements. Raw HTML is text, images are not loaded, and links lead to web pages or mail only.

import MarkdownIt from "./vendor/markdown-it.esm.min.mjs";
import { addText, element } from "./elements.js";
import { highlight } from "./highlight.js";

const SAFE_LINK = /^(?:https?:\/\/|mailto:)/i;

// markdown-it leaves out what is nested deeper; so deep, a phone has no room for a letter.
const DEEPEST = 16;

const markdown = new MarkdownIt({ html: false, linkify: true, maxNesting: DEEPEST });
markdown.validateLink = (href) => SAFE_LINK.test(href.trim());
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

/** Add *text*, which is Markdown, to *parent*; where it is nested too deep, as it stands. */
export function addMarkdown(parent, text) {
  const tokens = markdown.parse(text, {});
  if (tokens.some(({ level }) => level >= DEEPEST - 1)) parent.append(addText(element("div", { class: "plain", dir: "auto" }), text));
  else addTokens(parent, tokens);
  return parent;
}

// Tokens come in pairs, open and close; `content` and `children` are what is between, where there is no pair.
function addTokens(parent, tokens) {
  const path = [parent];
  for (const token of tokens) {
    const here = path.at(-1);
    if (token.hidden) continue;
    if (token.nesting === 1) {
      const made = opened(token);
      here.append(made);
      path.push(made);
    } else if (token.nesting === -1) {
      path.pop();
    } else {
      (LEAVES[token.type] ?? asText)(here, token);
    }
  }
}

const LEAVES = {
  inline: (here, token) => addTokens(here, token.children),
  softbreak: (here) => here.append("\n"),
  hardbreak: (here) => here.append(element("br")),
  hr: (here) => here.append(element("hr")),
  code_inline: (here, token) => here.append(addText(element("code"), token.content)),
  code_block: (here, token) => here.append(codeBlock(token.content, "")),
  fence: (here, token) => here.append(codeBlock(token.content, token.info.trim().split(/\s/)[0])),
  image: (here, token) => here.append(imageMark(token)),
};

function asText(here, token) {
  addText(here, token.content);
}

// The heading of a message is an h2.
const HEADINGS = { h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6", h6: "h6" };

function opened(token) {
  if (token.type === "link_open") return link(token.attrGet("href"));
  const made = element(HEADINGS[token.tag] ?? token.tag);
  const start = token.attrGet("start");
  if (start !== null) made.setAttribute("start", start);
  const align = /text-align:(left|center|right)/.exec(token.attrGet("style") ?? "");
  if (align) made.classList.add(`align-${align[1]}`);
  if (token.block) made.dir = "auto";
  if (token.tag === "table") made.tabIndex = 0; // it scrolls
  return made;
}

function link(href) {
  return element("a", { href, rel: "noopener noreferrer", target: "_blank", title: href });
}

function codeBlock(text, language) {
  const code = addText(element("code"), text.replace(/\n$/, ""));
  if (language) highlight(code, language);
  return element("pre", { tabindex: "0", "data-language": language || null }, code);
}

function imageMark(token) {
  const mark = element("span", { class: "image" }, "[image]");
  if (token.content) addText(mark, ` ${token.content}`);
  return mark;
}
