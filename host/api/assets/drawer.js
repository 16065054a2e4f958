// One thing, closely: a node, a decision, the decider, or a swap.

import { ask } from "./feed.js";
import { el, name, renderWhen, setText, throttle, visible, words } from "./dom.js";
import { instant, length, now, since, until, whole } from "./clock.js";
import { countdown, facts, moment, table } from "./parts.js";
import { found, inForce, kept, swapHead, swapList } from "./decider.js";
import { RUNGS, STATES, rungOf, stateOf } from "./fleet.js";

const PAGE = 50;

export class Drawer {
  constructor(parts) {
    Object.assign(this, parts);
    this.what = null;
    this.live = true;
    this.wide = window.matchMedia("(min-width: 60rem)");
    this.refresh = throttle(() => this.load(), 700);
    this.closeButton.addEventListener("click", () => this.close());
    this.dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      this.close();
    });
    this.wide.addEventListener("change", () => {
      if (this.dialog.open) this.reopen();
    });
  }

  /** Opens it for a node (`{node}`), a decision (`{decision}`), the deciders (`{deciders}`) or a swap (`{swap}`); closes it for null. */
  show(what) {
    if (what === null) {
      if (this.dialog.open) {
        this.dialog.close();
        this.what = null;
        this.back?.isConnected && this.back.focus();
      }
      return;
    }
    if (!this.dialog.open) this.back = document.activeElement;
    this.what = what;
    this.history = new Map();
    this.exhausted = null;
    this.sections = {};
    this.body.replaceChildren(el("p", { class: "quiet" }, "Reading …"));
    setText(this.title, visible(titleOf(what), 120));
    this.reopen();
    if (what.decision) this.decision(what.decision);
    else this.load();
  }

  /** Beside the fleet where there is room; on top of it elsewhere. */
  reopen() {
    if (this.dialog.open) this.dialog.close();
    if (this.wide.matches) this.dialog.show();
    else this.dialog.showModal();
    this.body.scrollTop = 0;
    this.closeButton.focus();
  }

  close() {
    this.closed();
  }

  /** The node may have changed. */
  touch(names) {
    if (this.what?.node && this.dialog.open && (names === null || names.has(this.what.node))) this.refresh();
  }

  /** A decider or a swap may have changed. */
  touchDeciders() {
    if (this.dialog.open && (this.what?.deciders || this.what?.swap)) this.refresh();
  }

  section(key, title) {
    if (!this.sections[key]) {
      const body = el("div");
      this.sections[key] = { body, whole: el("section", { data: { part: key } }, title && el("h3", null, title), body) };
      if (Object.keys(this.sections).length === 1) this.body.replaceChildren();
      this.body.append(this.sections[key].whole);
    }
    return this.sections[key].body;
  }

  async load() {
    const what = this.what;
    if (what?.deciders || what?.swap) await this.reading(what, () => (what.swap ? this.swap(what) : this.deciders(what)));
    if (!what?.node) return;
    const path = `/v1/nodes/${encodeURIComponent(what.node)}`;
    await this.reading(what, async () => {
      const [detail, explanation] = await Promise.all([ask(path), ask(`${path}/explanation`)]);
      if (this.what === what) this.node(detail, explanation);
    });
  }

  /** Reads and shows; says why where that cannot be. */
  async reading(what, read) {
    try {
      await read();
      if (this.what === what) this.readable();
    } catch (error) {
      if (this.what !== what) return;
      renderWhen(this.section("failed"), [error.message], () => el("p", { class: "bad" }, `Cannot be read: ${visible(error.message, 400)}`));
    }
  }

  readable() {
    this.sections.failed?.body.replaceChildren();
    if (this.sections.failed) this.sections.failed.body.renderedKey = undefined;
  }

  /** The decider in force, swaps, and what else is kept. */
  async deciders(what) {
    const [status, list, swaps] = await Promise.all([ask("/v1/status"), ask("/v1/deciders"), ask("/v1/swaps?limit=50")]);
    if (this.what !== what) return;
    renderWhen(this.section("in-force", "In force"), status.decider, () => inForce(status.decider));
    renderWhen(this.section("swaps", "Swaps and shadows"), swaps.swaps, () => swapList(swaps.swaps));
    renderWhen(this.section("kept", "Kept"), list.deciders, () => kept(list.deciders));
  }

  /** One swap, with all that it found. */
  async swap(what) {
    const detail = await ask(`/v1/swaps/${encodeURIComponent(what.swap)}`);
    if (this.what !== what) return;
    renderWhen(this.section("stages"), detail, () => swapHead(detail));
    renderWhen(this.section("found", "Differences"), detail.reports, () => found(detail.reports));
  }

  node(detail, explanation) {
    const state = stateOf(detail);
    const why = [explanation.summary, explanation.next_step, explanation.ends, detail.held, detail.error, state, explanation.until_ms];
    renderWhen(this.section("why"), why, () => [
      el("p", { class: "state", data: { state } }, el("span", { class: "mark", "aria-hidden": "true" }, STATES[state].mark), ` ${STATES[state].text}`),
      el("p", { class: "summary", dir: "auto" }, words(explanation.summary)),
      detail.held && el("p", { class: "callout", dir: "auto" }, words(detail.held)),
      detail.error && el("pre", { class: "bad", dir: "auto" }, visible(detail.error)),
      facts([
        ["What ends it", explanation.ends],
        ["At the latest", Number.isFinite(explanation.until_ms) && countdown(explanation.until_ms)],
        ["What you can do", explanation.next_step],
      ]),
    ]);
    renderWhen(this.section("ladder", "Ladder"), [detail.stage, state], () => ladder(detail.stage, state));
    const known = [explanation.rule, explanation.facts, explanation.verb, explanation.decided_ms];
    renderWhen(this.section("rule", "Rule"), known, () => rule(explanation));
    const shown = { ...detail, recent: null, now_ms: 0 };
    renderWhen(this.section("facts", "Facts"), shown, () => particulars(detail));
    for (const item of detail.recent) this.history.set(item.seq, item);
    this.past();
  }

  /** What happened to it, newest first. */
  past() {
    const items = [...this.history.values()].sort((a, b) => b.seq - a.seq);
    renderWhen(this.section("history", "History"), [items, this.exhausted], () => [
      items.length === 0 ? el("p", { class: "quiet" }, "Nothing is kept.") : el("ol", { class: "events" }, items.map(event)),
      this.exhausted
        ? el("p", { class: "quiet" }, this.exhausted)
        : el("button", { type: "button", class: "more", onclick: () => this.earlier(items.at(-1)?.seq) }, "Show older"),
    ]);
  }

  async earlier(before) {
    const what = this.what;
    const query = `node=${encodeURIComponent(what.node)}&limit=${PAGE}${before === undefined ? "" : `&before=${before}`}`;
    try {
      const page = await ask(`/v1/history?${query}`);
      if (this.what !== what) return;
      for (const item of page.items) this.history.set(item.seq, item);
      if (!page.more) this.exhausted = `That is all: the journal begins at record ${page.first_kept_seq}.`;
    } catch (error) {
      if (this.what !== what) return;
      this.exhausted = `Older history cannot be read: ${visible(error.message, 400)}`;
    }
    this.past();
  }

  decision(decided) {
    const act = decided.verb !== "hold";
    const body = [
      el("p", { class: "summary", dir: "auto" }, name(decided.node), ": ", el("b", null, visible(decided.verb, 80))),
      facts([
        ["When", moment(decided.at_ms)],
        ["Attempt", decided.attempt],
        ["Rule", decided.rule],
        ["Because", decided.reason],
        ["Holds at the latest until", !act && Number.isFinite(decided.until_ms) && countdown(decided.until_ms)],
      ]),
      el("h3", null, "What it changed"),
      decided.changes.length === 0
        ? el("p", { class: "quiet" }, "Nothing in the node's state.")
        : table(["Field", "Before", "After"], decided.changes.map((change) => [
          visible(change.field, 200),
          el("del", { dir: "auto" }, value(change.from)),
          el("ins", { dir: "auto" }, value(change.to)),
        ]), "diff"),
      el("h3", null, "Facts it rests on"),
      decided.facts.length === 0
        ? el("p", { class: "quiet" }, "None are recorded.")
        : table(["Fact", "Value"], decided.facts.map(([fact, known]) => [visible(fact, 200), visible(known, 400)]), "fact"),
      el("p", null, el("a", { href: `#node/${encodeURIComponent(decided.node)}` }, "Open the node ", name(decided.node))),
    ];
    this.body.replaceChildren(...body);
    this.body.renderedKey = undefined;
  }

  /** Another second passed. */
  tick(live) {
    if (!this.dialog.open) return;
    for (const made of this.body.querySelectorAll("[data-until]")) setText(made, until(Number(made.dataset.until), live));
    for (const made of this.body.querySelectorAll("[data-since]")) setText(made, since(Number(made.dataset.since)));
  }
}

function titleOf(what) {
  if (what.deciders) return "Decider";
  if (what.swap !== undefined) return `Swap ${what.swap}`;
  return what.node ?? `Decision ${what.number}`;
}

function value(text) {
  return text === "" ? "—" : visible(text);
}

function ladder(stage, state) {
  const rung = rungOf(stage);
  const lost = rung < 0 && el("p", { class: "quiet" }, `It is off the ladder (${visible(stage, 60)}); its next attempt begins at the bottom.`);
  return [lost, el("ol", { class: "ladder", data: { state } }, RUNGS.map((known, at) => {
    const here = at + 1 === rung;
    const words = known === "dormant" ? (stage === "handed-off" ? "handed-off: ready" : "dormant: ready") : known;
    return el("li", { class: here ? "here" : at + 1 < rung ? "past" : null, "aria-current": here && "step" }, words);
  }))];
}

function rule(explanation) {
  if (!explanation.rule) return el("p", { class: "quiet" }, "A decision is outstanding.");
  const { id, reason, when } = explanation.rule;
  return [
    el("p", { dir: "auto" }, el("b", null, visible(id, 20)), ` ${visible(reason, 600)}`),
    facts([
      ["Decided", explanation.verb && [visible(explanation.verb, 60), explanation.decided_ms && [" at ", instant(explanation.decided_ms)]].flat().filter(Boolean)],
      ["When", when.length > 0 && el("ul", { class: "plain" }, when.map((condition) => el("li", null, visible(condition, 300))))],
    ]),
    explanation.facts.length > 0 && el("details", { open: true }, el("summary", null, "The facts; bold where the rule asks for it"),
      table(["Fact", "Value"], explanation.facts.map((fact) => [
        fact.matters ? el("b", null, visible(fact.name, 200)) : visible(fact.name, 200),
        fact.matters ? el("b", null, visible(fact.value, 400)) : visible(fact.value, 400),
      ]), "fact")),
  ];
}

function operation(known) {
  return known && [
    el("code", null, visible(`${known.kind} ${known.id}`, 120)), " since ", el("span", { data: { since: known.since_ms } }, length(now() - known.since_ms)),
    Number.isFinite(known.deadline_ms) && [", asked about ", el("span", { data: { until: known.deadline_ms } }, until(known.deadline_ms, true))],
  ].flat().filter(Boolean);
}

function particulars(detail) {
  const due = (ms) => Number.isFinite(ms) && countdown(ms);
  const template = detail.template;
  return [
    facts([
      ["Operation on its way", operation(detail.operation)],
      ["Outcome unknown of", operation(detail.doubt)],
      ["Stage is given up", due(detail.stage_deadline_ms)],
      ["No operation before", due(detail.next_effect_ms)],
      ["Next look at the endpoint", due(detail.probe_ms)],
      ["No new attempt before", due(detail.restart_ms)],
      ["Group", detail.group],
      ["Attempt", detail.attempt],
      ["Failures in a row", detail.failures > 0 && String(detail.failures)],
      ["Progress", detail.progress !== "none" && detail.progress],
      ["Endpoint", detail.endpoint],
      ["Backend", detail.provider],
      ["Lease", detail.lease],
      ["Session", detail.session],
      ["Label of its resources", detail.key],
      ["Desired", !detail.desired && "no: the slot is not desired any more"],
      ["Template", detail.drifted && "differs from what is desired: it is going to be replaced"],
    ]),
    template && el("details", null, el("summary", null, "Made from"), facts([
      ["Role", template.role],
      ["Image", template.image],
      ["Command", template.command.length > 0 && el("code", null, visible(template.command.join(" ")))],
      ["Environment", template.env.join(", ")],
      ["Files", template.files.join(", ")],
      ["Join", template.join],
      ...Object.entries(template.settings).map(([key, known]) => [visible(key, 80), known]),
      ...Object.entries(template.labels).map(([key, known]) => [`label ${visible(key, 80)}`, known]),
    ])),
  ];
}

function event(item) {
  return el("li", { data: { kind: item.kind } },
    el("time", { title: whole(item.at_ms) }, instant(item.at_ms)),
    el("span", { class: "kind" }, visible(item.kind, 30)),
    el("span", { class: "why", dir: "auto" }, visible(item.text, 1000)));
}
