// What is shown where there is nothing else to show: what is so, and what to do.

import { element, setText } from "./elements.js";

/** A panel: *title* says what is so, the rest what to do. */
export function panel(name, title, ...todo) {
  return element("section", { class: "panel", "data-state": name }, element("h2", {}, title), ...todo);
}

export const paragraph = (...parts) => element("p", {}, ...parts);
export const code = (text) => element("code", {}, text);
export const link = (href, text) => element("a", { href }, text);

/** What a failed asking means. *again* is called by the button that tries again. */
export function failurePanel(error, again) {
  const retry = element("button", { type: "button" }, "Try again");
  retry.addEventListener("click", again);
  const all = link("/", "All agents");
  switch (error.status) {
    case 0:
      return panel("unreachable", "The server does not answer", paragraph("Does ", code("agents9 serve"), " still run? This page goes on trying by itself."), retry);
    case 401:
    case 403:
      return panel("refused", "You may not read this",
        paragraph("The server shows what its own user's agents say to that user, and to who has a password. It said: ", code(error.message)),
        paragraph("Open this page as that user, or ask who runs the server for ", code("agents9 passwd"), "."), retry);
    case 404:
    case 410:
      return panel("gone", "There is nothing here now", paragraph("The agent has ended, or never was here."), paragraph(all));
    default:
      return panel("failed", "The server could not answer", paragraph(`It said ${error.status}: `, code(error.message)), retry, paragraph(all));
  }
}

/** Show *node* in *parent* if it takes longer than one would notice; returns what ends that. */
export function loading(parent, what) {
  const shown = element("p", { class: "loading" }, `Loading ${what}…`);
  const timer = setTimeout(() => parent.append(shown), 250);
  return () => {
    clearTimeout(timer);
    shown.remove();
  };
}

// -- the line at the top of the page that says how things are: live, trying again, ended

const LIGHT = document.getElementById("light");
const STATE = document.getElementById("state");

/** *how*: live, late or ended, for the light beside the words. */
export function showState(how, words) {
  LIGHT.dataset.how = how;
  setText(STATE, words);
}
