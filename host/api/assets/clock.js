// The daemon's clock, and how time is said. All instants are the daemon's milliseconds since 1970.

/** What was learnt is forgotten after so long, since clocks are set. */
const MEMORY_MS = 300_000;

let offset = 0;
let lowest = -Infinity;
let lowestAt = 0;
let range = [-Infinity, Infinity];

/** Learns from an instant that the daemon stated: its clock showed at least that. */
export function stated(ms) {
  if (!Number.isFinite(ms) || ms <= 0) return;
  const local = Date.now();
  if (ms - local > lowest || local - lowestAt > MEMORY_MS) {
    lowest = ms - local;
    lowestAt = local;
  }
  settle();
}

/** Learns from the `Date` of an answer to a request that left at `sent`: that is whole seconds, at some time in between. */
export function dated(header, sent) {
  const ms = Date.parse(header ?? "");
  if (!Number.isFinite(ms)) return;
  range = [ms - Date.now(), ms + 1000 - sent];
  settle();
}

function settle() {
  const known = Number.isFinite(lowest) ? lowest : (range[0] + range[1]) / 2;
  const inside = Math.min(Math.max(known, range[0]), range[1]);
  if (Number.isFinite(inside)) offset = inside;
}

/** The daemon's time, as far as it is known here. */
export function now() {
  return Date.now() + offset;
}

/** How far this device's clock is from the daemon's, in ms; positive when the daemon's is ahead. */
export function skew() {
  return offset;
}

const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayFormat = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "2-digit" });
const fullFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Dates end here; what is later is never. */
const LAST_MS = 8.64e15;

function isDate(ms) {
  return Number.isFinite(ms) && Math.abs(ms) <= LAST_MS;
}

/** A time of day; with the date unless that is today. */
export function instant(ms) {
  if (!isDate(ms)) return Number.isFinite(ms) ? "never" : "";
  const date = new Date(ms);
  const time = clockFormat.format(date);
  return new Date(now()).toDateString() === date.toDateString() ? time : `${dayFormat.format(date)} ${time}`;
}

/** All of an instant, for a tooltip. */
export function whole(ms) {
  return isDate(ms) ? `${fullFormat.format(new Date(ms))} (${Math.round(ms)})` : "";
}

/** A length of time, in at most two units. */
export function length(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 100) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How long until an instant. While nothing is heard of the daemon, the instant itself: nobody knows what happened since. */
export function until(ms, live) {
  if (!isDate(ms)) return Number.isFinite(ms) ? "never" : "";
  if (!live) return `at ${instant(ms)}`;
  const left = ms - now();
  if (left >= 500) return `in ${length(left)}`;
  return left > -1500 ? "now" : `${length(-left)} overdue`;
}

/** How long since an instant. */
export function since(ms) {
  return isDate(ms) ? length(now() - ms) : "";
}
