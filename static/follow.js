// Following a chat: the server says what is new (EventSource). Where it will not, as when too many wait (503), the
// page asks again and again for a while, which also tells why.

import { ask } from "./tree.js";
import { whenVisible, wait } from "./polling.js";

const POLL_MS = 1000;
const POLLS = 30; // then streaming is tried again

/**
 * Tell *chat* what comes, for ever: add(messages, transcript), reset(transcript), and state(how, words).
 * `chat.query()` says what the page has already.
 */
export async function follow(chat) {
  for (;;) {
    await whenVisible();
    if (!(await stream(chat))) await poll(chat);
  }
}

// Resolve when the page is hidden (true), for a browser keeps few connections to a server, or when the server refuses.
function stream(chat) {
  return new Promise((resolve) => {
    const source = new EventSource(chat.path + chat.query());
    let heard = [];
    const tell = () => {
      if (!heard.length) return;
      const events = heard;
      heard = [];
      chat.add(events.map((event) => JSON.parse(event.data)), events.at(-1).lastEventId.split("/")[0]);
    };
    const end = (again) => {
      source.close();
      tell();
      document.removeEventListener("visibilitychange", whenHidden);
      resolve(again);
    };
    const whenHidden = () => document.hidden && end(true);
    document.addEventListener("visibilitychange", whenHidden);
    source.addEventListener("open", () => chat.state("live", "live"));
    source.addEventListener("message", (event) => {
      if (!heard.length) setTimeout(tell); // what comes together is shown together
      heard.push(event);
    });
    source.addEventListener("reset", (event) => {
      heard = [];
      chat.reset(JSON.parse(event.data).transcript);
    });
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) end(false);
      else chat.state("late", "not reached; trying again");
    });
  });
}

async function poll(chat) {
  for (let tries = 0; tries < POLLS && !document.hidden; tries++) {
    try {
      const response = await ask(chat.path + chat.query(), { headers: { Accept: "application/json" } });
      chat.add(await response.json(), response.headers.get("Agents9-Transcript"));
      chat.state("live", "live, asking every second");
    } catch (error) {
      if (error.status === 410) chat.reset(null);
      else if (error.status === 404) chat.state("ended", "ended");
      else chat.state("late", error.status ? `the server said ${error.status}; trying again` : "not reached; trying again");
    }
    await wait(POLL_MS);
  }
}
