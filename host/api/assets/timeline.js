// What was decided, newest first, and what the daemon had to say in between.

import { el, name, setText, visible } from "./dom.js";
import { instant, whole } from "./clock.js";

const MOST = 400;
const PAGE = 60;

export class Timeline {
  constructor(list, older, note, open) {
    this.list = list;
    this.older = older;
    this.note = note;
    this.open = open;
    this.items = new Map();
    this.shown = PAGE;
    older.addEventListener("click", () => {
      this.shown += PAGE;
      this.lay();
    });
    list.addEventListener("keydown", (event) => this.key(event));
    list.addEventListener("focusin", (event) => this.roam(event.target));
    this.focus = null;
    this.said = 0;
  }

  /** Another start of the daemon: its numbers begin anew. */
  clear() {
    this.items.clear();
    this.lay();
  }

  /** Adds the decisions that are new. */
  add(decisions) {
    for (const decided of decisions) {
      const key = `d${decided.number}`;
      if (!this.items.has(key)) this.items.set(key, { at: decided.at_ms, order: decided.number, decided, item: this.decision(decided) });
    }
    this.lay();
  }

  /** Adds a line that nobody decided: a command, a notice. */
  say(at, level, text) {
    this.said += 1;
    const item = el(
      "li",
      { class: "said", data: { level } },
      el("time", { title: whole(at), datetime: iso(at) }, instant(at)),
      el("span", { class: "why", dir: "auto" }, visible(text, 600)),
    );
    this.items.set(`s${this.said}`, { at, order: 0, item });
    this.lay();
  }

  find(number) {
    return this.items.get(`d${number}`)?.decided;
  }

  decision(decided) {
    const button = el(
      "button",
      {
        type: "button",
        class: "decision",
        tabindex: "-1",
        data: { number: decided.number, verb: decided.verb === "hold" ? "hold" : "act" },
        onclick: () => this.open(decided.number),
      },
      el("time", { title: whole(decided.at_ms), datetime: iso(decided.at_ms) }, instant(decided.at_ms)),
      el("span", { class: "what" }, name(decided.node, { class: "name" }), " ", el("span", { class: "verb" }, visible(decided.verb, 40))),
      el("span", { class: "rule" }, visible(decided.rule, 12)),
      el("span", { class: "why", dir: "auto" }, visible(decided.reason, 300)),
    );
    return el("li", null, button);
  }

  lay() {
    const sorted = [...this.items].sort(([, a], [, b]) => b.at - a.at || b.order - a.order);
    for (const [key] of sorted.splice(MOST)) this.items.delete(key);
    const shown = sorted.slice(0, this.shown).map(([, entry]) => entry.item);
    const old = new Set(this.list.children);
    const before = this.list.getBoundingClientRect().top < 0 ? document.documentElement.scrollHeight : null;
    for (const child of old) if (!shown.includes(child)) child.remove();
    let at = this.list.firstElementChild;
    for (const child of shown) {
      if (child === at) at = at.nextElementSibling;
      else this.list.insertBefore(child, at);
    }
    // Somebody reads further down: what they read stays where it is.
    if (before !== null && this.list.contains(document.activeElement)) {
      window.scrollBy(0, document.documentElement.scrollHeight - before);
    }
    this.older.hidden = sorted.length <= this.shown;
    setText(this.note, sorted.length === 0 ? "none yet" : "newest first");
    if (!this.focus?.isConnected) this.roam(this.list.querySelector("button"));
  }

  roam(button) {
    if (this.focus && this.focus !== button) this.focus.tabIndex = -1;
    this.focus = button;
    if (button) button.tabIndex = 0;
  }

  key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const buttons = [...this.list.querySelectorAll("button")];
    const at = buttons.indexOf(event.target);
    buttons[Math.min(Math.max(at + steps[event.key], 0), buttons.length - 1)]?.focus();
  }
}

function iso(ms) {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
