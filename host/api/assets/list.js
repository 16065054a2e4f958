// The groups and their nodes. A change touches the rows of the nodes that changed, and nothing else.

import { el, name, setText, setAttribute, visible, arrange } from "./dom.js";
import { until, whole } from "./clock.js";
import { RUNGS, STATES, rungOf, stateOf, bySeverity } from "./fleet.js";

/** Larger groups show what is not ready, until somebody asks for the rest. */
const OPEN_AT_MOST = 60;
/** Rows that a group shows at once. */
const PAGE = 300;
const NOTABLE = 25;

/** The track of the ladder, with where the node stands. */
export function track(stage, state) {
  const made = el("span", { class: "track", "aria-hidden": "true" }, RUNGS.map(() => el("i")));
  drawTrack(made, stage, state);
  return made;
}

function drawTrack(made, stage, state) {
  const rung = rungOf(stage);
  const key = `${rung} ${state}`;
  if (made.dataset.at === key) return;
  made.dataset.at = key;
  [...made.children].forEach((step, at) => {
    step.className = rung < 0 ? "lost" : at + 1 < rung ? "past" : at + 1 === rung ? "here" : "";
  });
}

/** A node's row. */
class Row {
  constructor(open) {
    this.mark = el("span", { class: "mark", "aria-hidden": "true" });
    this.title = el("bdi", { class: "name" });
    this.track = track("", "");
    this.stage = el("span", { class: "stage" });
    this.why = el("span", { class: "why" });
    this.meta = el("span", { class: "meta" });
    this.until = el("span", { class: "until" });
    this.button = el(
      "button",
      { type: "button", class: "node", tabindex: "-1", onclick: () => open(this.node.node) },
      el("span", { class: "who" }, this.mark, this.title),
      el("span", { class: "where" }, this.track, this.stage),
      this.why,
      this.meta,
      this.until,
    );
    this.item = el("li", null, this.button);
  }

  show(node, live) {
    this.node = node;
    this.state = stateOf(node);
    const { mark, text } = STATES[this.state];
    this.button.dataset.state = this.state;
    this.button.dataset.node = node.node;
    setText(this.mark, mark);
    setText(this.title, visible(node.node, 200));
    drawTrack(this.track, node.stage, this.state);
    setText(this.stage, stageText(node, text));
    setText(this.why, visible(whyOf(node), 400));
    this.why.classList.toggle("bad", Boolean(node.error) && this.state === "failing");
    setText(this.meta, metaOf(node));
    this.tick(live);
    this.search = [node.node, node.group, node.stage, node.endpoint, node.rule, node.error, node.waits_for, node.held, text]
      .join("\n").toLowerCase();
  }

  /** Another second passed. */
  tick(live) {
    const at = this.node.until_ms;
    const waits = Number.isFinite(at) && this.state !== "ready";
    setText(this.until, waits ? until(at, live) : "");
    setAttribute(this.until, "title", waits ? whole(at) : null);
    return waits;
  }
}

function stageText(node, state) {
  const stage = node.stage || "vacant";
  if (node.deleting) return `${stage}, going`;
  return stage === "dormant" || stage === "handed-off" ? `${state} (${stage})` : stage;
}

/** In a line: who holds it, what went wrong, what it waits for. */
export function whyOf(node) {
  const parts = [];
  if (node.held) parts.push(node.held);
  if (node.error) parts.push(node.error);
  if (node.waits_for) parts.push(`waits: ${node.waits_for}`);
  else if (!node.ready && node.progress && node.progress !== "none") parts.push(node.progress);
  if (parts.length === 0 && node.ready && node.endpoint) parts.push(node.endpoint);
  return parts.join(" · ");
}

function metaOf(node) {
  const parts = [];
  if (node.attempt !== null && node.attempt !== undefined) parts.push(`attempt ${node.attempt}`);
  if (node.failures > 0) parts.push(node.failures === 1 ? "1 failure" : `${node.failures} failures`);
  if (node.rule) parts.push(node.rule);
  return parts.join(" · ");
}

/** A group and its rows. */
class Group {
  constructor(group, toggled) {
    this.group = group;
    this.rows = new Map();
    this.whole = null;
    this.pages = 1;
    this.dirty = true;
    this.ready = el("span", { class: "ready" });
    this.note = el("span", { class: "note" });
    this.bars = Object.keys(STATES).map((state) => el("i", { data: { state } }));
    this.button = el(
      "button",
      { type: "button", class: "group-head", "aria-expanded": "false", onclick: () => this.toggle(toggled) },
      el("span", { class: "arrow", "aria-hidden": "true" }),
      name(group, { class: "name" }),
      this.ready,
      this.note,
      el("span", { class: "mix", "aria-hidden": "true" }, this.bars),
    );
    this.list = el("ul", { class: "rows" });
    this.more = el("button", { type: "button", class: "more", onclick: () => this.showMore(toggled) });
    this.section = el("section", { class: "group" }, el("h3", null, this.button), this.list, this.more);
  }

  toggle(toggled) {
    this.whole = !this.isWhole();
    this.pages = 1;
    this.dirty = true;
    toggled();
  }

  showMore(toggled) {
    if (this.isWhole()) this.pages += 1;
    else this.whole = true;
    this.dirty = true;
    toggled();
  }

  isWhole() {
    return this.whole ?? this.rows.size <= OPEN_AT_MOST;
  }

  /** The group's line. */
  head(desired) {
    const counts = Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));
    let ready = 0;
    for (const row of this.rows.values()) {
      counts[row.state] += 1;
      if (row.node.ready && row.node.desired && !row.node.deleting) ready += 1;
    }
    setText(this.ready, `${ready}/${desired} ready`);
    const words = Object.entries(STATES).filter(([state]) => state !== "ready" && counts[state] > 0);
    setText(this.note, words.map(([state, { text }]) => `${counts[state]} ${text}`).join(", "));
    for (const bar of this.bars) bar.style.flexGrow = counts[bar.dataset.state];
    this.button.dataset.state = counts.failing ? "failing" : counts.held ? "held" : ready < desired ? "rising" : "ready";
  }

  /** Puts the right rows in the right order. */
  lay(matches, filtered) {
    this.dirty = false;
    let rows = [...this.rows.values()];
    const all = rows.length;
    const whole = this.isWhole() || filtered;
    if (filtered) rows = rows.filter(matches);
    else if (!whole) rows = rows.filter((row) => row.state !== "ready");
    rows.sort(whole ? (a, b) => a.node.index - b.node.index : bySeverity);
    const limit = whole ? PAGE * this.pages : NOTABLE;
    const shown = rows.slice(0, limit);
    arrange(this.list, shown.map((row) => row.item));
    setAttribute(this.button, "aria-expanded", String(whole));
    const left = (filtered ? rows.length : all) - shown.length;
    this.more.hidden = left === 0;
    setText(this.more, whole ? `Show ${Math.min(left, PAGE)} more of ${left}` : `Show the other ${left}`);
    this.section.hidden = filtered && rows.length === 0;
    return rows.length;
  }
}

export class List {
  constructor(parent, matchesLine, open) {
    this.parent = parent;
    this.matchesLine = matchesLine;
    this.open = open;
    this.groups = new Map();
    this.text = "";
    this.states = new Set();
    this.focus = null;
    parent.addEventListener("keydown", (event) => this.key(event));
    parent.addEventListener("focusin", (event) => {
      if (event.target.dataset?.node !== undefined) this.roam(event.target);
    });
  }

  /** Draws the nodes of these names; all of them when `names` is null. */
  draw(fleet, names, live) {
    const changed = names ?? new Set(fleet.nodes.keys());
    if (names === null) {
      for (const group of this.groups.values()) {
        for (const known of group.rows.keys()) if (fleet.nodes.get(known)?.group !== group.group) this.drop(group, known);
      }
    }
    const touched = new Set();
    for (const known of changed) {
      const node = fleet.nodes.get(known);
      if (!node) {
        for (const group of this.groups.values()) {
          if (group.rows.has(known)) {
            this.drop(group, known);
            touched.add(group);
          }
        }
        continue;
      }
      const group = this.group(node.group);
      touched.add(group);
      let row = group.rows.get(known);
      const before = row?.state;
      if (!row) {
        row = new Row((opened) => this.open(opened));
        group.rows.set(known, row);
      }
      row.show(node, live);
      if (before !== row.state) group.dirty = true;
      if (this.filtered()) group.dirty = true;
    }
    for (const known of fleet.order) touched.add(this.group(known));
    for (const [known, group] of this.groups) {
      if (group.rows.size === 0 && !fleet.order.includes(known)) {
        group.section.remove();
        this.groups.delete(known);
        touched.delete(group);
      }
    }
    for (const group of touched) {
      const desired = [...group.rows.values()].filter((row) => row.node.desired).length;
      group.head(desired);
    }
    const order = [...fleet.order, ...[...this.groups.keys()].filter((known) => !fleet.order.includes(known))];
    arrange(this.parent, order.map((known) => this.groups.get(known).section));
    this.lay();
  }

  group(known) {
    let group = this.groups.get(known);
    if (!group) {
      group = new Group(known, () => this.lay());
      this.groups.set(known, group);
    }
    return group;
  }

  drop(group, known) {
    const row = group.rows.get(known);
    if (row.button === document.activeElement) this.step(1, row.button) || this.step(-1, row.button);
    group.rows.delete(known);
    row.item.remove();
    group.dirty = true;
  }

  filtered() {
    return this.text !== "" || this.states.size > 0;
  }

  /** Shows only what fits. */
  filter(text, states) {
    this.text = text.trim().toLowerCase();
    this.states = states;
    for (const group of this.groups.values()) group.dirty = true;
    this.lay();
  }

  lay() {
    const words = this.text.split(/\s+/).filter(Boolean);
    const filtered = this.filtered();
    const matches = (row) =>
      (this.states.size === 0 || this.states.has(row.state)) && words.every((word) => row.search.includes(word));
    let found = 0;
    let all = 0;
    for (const group of this.groups.values()) {
      if (group.dirty) group.found = group.lay(matches, filtered);
      found += group.found;
      all += group.rows.size;
    }
    this.matchesLine.hidden = !filtered;
    if (filtered) setText(this.matchesLine, `${found} of ${all} nodes fit`);
    const rows = this.visible();
    if (!rows.includes(this.focus)) this.roam(rows[0]);
  }

  /** Another second passed. */
  tick(live) {
    for (const group of this.groups.values()) {
      if (group.section.hidden) continue;
      for (const row of group.rows.values()) if (row.node.until_ms && row.item.isConnected) row.tick(live);
    }
  }

  visible() {
    return [...this.parent.querySelectorAll("section:not([hidden]) button.node")];
  }

  /** Makes this row the one that Tab leads to. */
  roam(button) {
    if (this.focus && this.focus !== button) this.focus.tabIndex = -1;
    this.focus = button ?? null;
    if (button) button.tabIndex = 0;
  }

  step(by, from) {
    const rows = this.visible();
    const at = rows.indexOf(from);
    const to = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (!to || to === from) return false;
    to.focus();
    return true;
  }

  key(event) {
    const row = event.target.closest?.("button.node");
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    this.step(steps[event.key], row);
  }
}
