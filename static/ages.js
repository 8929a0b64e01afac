// How long ago something was, kept true.

import { element, setText } from "./elements.js";
import { age, whole } from "./format.js";

const EVERY_MS = 5000;

/** An element that says how long ago *when* was; it shows nothing where that is not known. */
export function ageOf(when) {
  const time = element("time", { class: "age" });
  showAge(time, when);
  return time;
}

export function showAge(time, when) {
  time.hidden = !when;
  if (!when) return;
  time.dateTime = when;
  time.title = whole(when);
  setText(time, age(when));
}

export function keepAgesTrue() {
  setInterval(() => {
    for (const time of document.querySelectorAll("time.age[datetime]")) setText(time, age(time.dateTime));
  }, EVERY_MS);
}
