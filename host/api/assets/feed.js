// The connection: the list of the fleet and what changes, with resume. It goes on trying by itself.

import { dated, stated } from "./clock.js";

/** The daemon sends something every 15 s; silence for longer means that nobody is there. */
const SILENCE_MS = 40_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/** Why a request was not answered. */
export class Refused extends Error {
  constructor(status, text, retryAfter) {
    super(text);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** An answer in JSON. */
export async function ask(path) {
  const sent = Date.now();
  const answer = await fetch(path, { headers: { Accept: "application/json" }, cache: "no-store", credentials: "same-origin" });
  if (!answer.ok) throw await refusal(answer);
  dated(answer.headers.get("Date"), sent);
  const body = await answer.json();
  stated(body?.now_ms);
  return body;
}

async function refusal(answer) {
  let text = `${answer.status} ${answer.statusText}`;
  try {
    const problem = await answer.json();
    if (problem && problem.detail) text = problem.detail;
  } catch { /* it is no problem document; the status has to do */ }
  return new Refused(answer.status, text, Number(answer.headers.get("Retry-After")) || 0);
}

/** Follows the fleet. `on` has `list(status)`, `change(change)` and `link(state)`; the latter is `{live, since, tryAt, why, locked}`. */
export class Feed {
  constructor(on) {
    this.on = on;
    this.revision = null;
    this.heardAt = null;
    this.wait = FIRST_WAIT_MS;
    this.live = false;
    this.stop = null;
    this.wake = null;
  }

  /** Never ends. */
  async run() {
    for (;;) {
      let why = "the connection ended";
      let pause = 0;
      let locked = false;
      try {
        why = (await this.follow()) || why;
      } catch (error) {
        if (error instanceof Refused) {
          why = error.message;
          pause = error.retryAfter * 1000;
          locked = error.status === 401;
          // A revision that is refused is not asked for again.
          if (error.status >= 400 && error.status < 500 && error.status !== 429 && !locked) this.revision = null;
        } else why = error.name === "AbortError" ? "nothing was heard for too long" : "the daemon cannot be reached";
      }
      this.live = false;
      const wait = Math.max(pause, locked ? LONGEST_WAIT_MS : this.wait * (0.75 + Math.random() / 2));
      this.on.link({ live: false, since: this.heardAt, tryAt: Date.now() + wait, why, locked });
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, wait);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = null;
    }
  }

  /** Tries at once, if it waits. */
  hurry() {
    this.wait = FIRST_WAIT_MS;
    if (this.wake) this.wake();
  }

  async follow() {
    const stop = new AbortController();
    let watchdog = setTimeout(() => stop.abort(), SILENCE_MS);
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop.abort(), SILENCE_MS);
      this.heardAt = Date.now();
    };
    try {
      const path = this.revision === null ? "/v1/watch" : `/v1/watch?from=${encodeURIComponent(this.revision)}`;
      const sent = Date.now();
      const answer = await fetch(path, {
        headers: { Accept: "text/event-stream" },
        cache: "no-store",
        credentials: "same-origin",
        signal: stop.signal,
      });
      if (!answer.ok) throw await refusal(answer);
      dated(answer.headers.get("Date"), sent);
      heard();
      // Resumed: what is shown is what there was, and the changes follow.
      if (this.revision !== null) this.alive();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const events = new EventParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return null;
        heard();
        for (const event of events.feed(value)) {
          const end = this.take(event);
          if (end) return end;
        }
      }
    } finally {
      clearTimeout(watchdog);
      stop.abort();
    }
  }

  alive() {
    this.wait = FIRST_WAIT_MS;
    if (this.live) return;
    this.live = true;
    this.on.link({ live: true });
  }

  /** Takes an event; gives a reason when it is the last one. */
  take(event) {
    switch (event.type) {
      case "list": {
        const status = JSON.parse(event.data);
        stated(status.now_ms);
        this.revision = event.id || status.revision;
        this.on.list(status);
        this.alive();
        return null;
      }
      case "change":
      case "message": {
        const change = JSON.parse(event.data);
        this.revision = event.id || change.revision;
        stated(change.at_ms);
        this.on.change(change);
        return null;
      }
      // The whole list follows.
      case "relist":
        this.revision = null;
        return null;
      case "end":
        return stopped(event.data);
      default:
        return null;
    }
  }
}

function stopped(text) {
  try {
    return JSON.parse(text).text || "the daemon was stopped";
  } catch {
    return "the daemon was stopped";
  }
}

/** Reads the format of server-sent events. */
export class EventParser {
  constructor() {
    this.rest = "";
    this.clear();
  }

  clear() {
    this.type = "";
    this.data = [];
    this.id = "";
  }

  /** The events that end in this piece of text. */
  feed(text) {
    this.rest += text;
    const found = [];
    for (;;) {
      const end = this.rest.search(/\r\n|\n|\r(?!$)/);
      if (end < 0) break;
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + (this.rest.startsWith("\r\n", end) ? 2 : 1));
      if (line === "") {
        if (this.data.length > 0 || this.type) {
          found.push({ type: this.type || "message", data: this.data.join("\n"), id: this.id });
        }
        this.clear();
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") this.type = value;
      else if (field === "data") this.data.push(value);
      else if (field === "id") this.id = value;
    }
    return found;
  }
}
