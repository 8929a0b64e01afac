// Looking again and again while the page is seen. A hidden page asks for nothing.

export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Resolve when the page is seen. */
export function whenVisible() {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    look();
  });
}

/** Call *look* every so often for ever; *failed* is told of what it rejects with. */
export async function repeat(everyMs, look, failed) {
  for (;;) {
    await whenVisible();
    try {
      await look();
    } catch (error) {
      failed(error);
    }
    await wait(everyMs);
  }
}
