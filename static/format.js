// How times, sizes and counts are written.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const DATE = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
const MOMENT = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hour12: false });
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** How long ago *when* (ISO 8601) was, in the largest whole unit. */
export function age(when, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - Date.parse(when)) / 1000));
  if (seconds < 5) return "now";
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
  return count(Math.floor(seconds / DAY), "day");
}

export const clock = (when) => CLOCK.format(new Date(when));
export const day = (when) => DATE.format(new Date(when));
export const moment = (when) => MOMENT.format(new Date(when));
export const whole = (when) => WHOLE.format(new Date(when));

export function bytes(number) {
  if (number < 1000) return `${number} B`;
  if (number < 1e6) return `${(number / 1000).toFixed(number < 1e4 ? 1 : 0)} kB`;
  if (number < 1e9) return `${(number / 1e6).toFixed(1)} MB`;
  return `${(number / 1e9).toFixed(1)} GB`;
}

export const number = (many) => many.toLocaleString("en").replaceAll(",", "\u202f");

export const count = (many, what) => `${number(many)} ${what}${many === 1 ? "" : "s"}`;
