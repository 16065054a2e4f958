// Deciders: which is in force, what may take its place, and what was found about that.

import { el, name, visible, words } from "./dom.js";
import { instant, until, whole } from "./clock.js";
import { countdown, facts, moment, table } from "./parts.js";

const KINDS = { swap: "Swap", shadow: "Shadow", rollback: "Rollback" };

/** How a stage and a verdict look: as a node of this state. */
const LOOKS = {
  waiting: "vacant", running: "rising", passed: "ready", skipped: "vacant", refused: "failing", failed: "failing", cancelled: "vacant",
  switched: "ready", "rolled-back": "failing", superseded: "vacant",
};
const MARKS = { vacant: "○", rising: "↑", ready: "✓", failing: "✕" };

/** Directions that end or leave something undone come first in the eye. */
const WEIGHTY = new Set(["more-failures", "more-destroys", "fewer-destroys", "more-creates", "fewer-creates"]);

/** A decider, shortly. */
function short(decider) {
  return [name(decider.name || "unnamed"), ` ${visible(decider.version, 40)} `, el("code", { title: visible(decider.digest, 200) }, digits(decider.digest))];
}

function plainly(decider) {
  return `${visible(decider.name, 80)} ${visible(decider.version, 40)} (${digits(decider.digest)})`;
}

function digits(digest) {
  return visible(String(digest ?? "").replace(/^sha256:/, "").slice(0, 12), 40);
}

/** For the timeline: another decider is in force, or something about it changed. */
export function decided(decider) {
  const back = decider.rolled_back;
  if (back) return `${plainly(back.from)} was rolled back by itself: ${back.why}`;
  return `Decider in force: ${plainly(decider)}${decider.watching ? `, watched until ${instant(decider.watching.until_ms)}` : ""}`;
}

/** For the timeline: how a swap came out. */
export function came(swap) {
  return `${KINDS[swap.kind] ?? "Swap"} of ${plainly(swap.decider)}: ${swap.verdict}${swap.text ? `: ${swap.text}` : ""}`;
}

/** How bad that is. */
export function tone(swap) {
  const look = LOOKS[swap.verdict];
  return look === "failing" ? "error" : look === "ready" ? "good" : "info";
}

/** What somebody has to know about deciders, above the fleet. */
export function deciderAlerts(status) {
  const { decider } = status;
  const back = decider.rolled_back;
  const going = (status.swaps ?? []).filter((swap) => !Number.isFinite(swap.ended_ms));
  return [
    back && el("section", { class: "alert", data: { kind: "bad", about: "rollback" } },
      el("h2", null, "A decider was rolled back by itself"),
      el("p", null, short(back.from), " failed while it was watched, and is quarantined; ", short(decider), " is in force again, since ",
        el("time", { title: whole(back.at_ms) }, instant(back.at_ms)), "."),
      el("p", { dir: "auto" }, visible(back.why, 1000)),
      el("p", null, el("a", { href: `#swap/${encodeURIComponent(back.swap)}` }, "What its swap found"))),
    going.map((swap) => el("section", { class: "alert", data: { kind: "busy", about: "swap" } },
      el("h2", null, el("a", { href: `#swap/${encodeURIComponent(swap.id)}` }, `${KINDS[swap.kind] ?? "Swap"} on its way`)),
      el("p", null, short(swap.decider), swap.kind === "swap" && swap.verdict !== "switched" ? [" in the place of ", ...short(swap.from)] : ""),
      stages(swap),
      el("p", null, swap.verdict === "switched" || swap.kind === "rollback"
        ? ["To go back: ", el("code", { class: "command" }, "homeostat decider rollback")]
        : ["To end it: ", el("code", { class: "command" }, swap.kind === "shadow"
          ? "homeostat decider shadow stop"
          : visible(`homeostat decider cancel ${swap.id}`, 120))]))),
  ];
}

function look(word) {
  const state = LOOKS[word] ?? "vacant";
  return { data: { state }, mark: MARKS[state] };
}

function badge(word) {
  const { data, mark } = look(word);
  return el("span", { class: "state", data }, el("span", { class: "mark", "aria-hidden": "true" }, mark), ` ${visible(word, 40)}`);
}

/** The stages as steps, each with what it found. */
function stages(swap) {
  return el("ol", { class: "stages" }, swap.stages.map((stage) => {
    const { data, mark } = look(stage.state);
    const text = stage.text || (stage.tally ? tally(stage.tally) : "");
    const ends = stage.state === "running" && Number.isFinite(stage.until_ms);
    return el("li", { data, "aria-current": stage.state === "running" && "step" },
      el("span", { class: "mark", "aria-hidden": "true" }, mark),
      el("span", null, el("b", null, visible(stage.stage, 20)), ` ${stage.state === "cancelled" && !Number.isFinite(stage.started_ms) ? "not reached" : visible(stage.state, 20)}`,
        text && [": ", el("span", { dir: "auto" }, visible(text, 400))],
        ends && [", ends ", el("span", { data: { until: stage.until_ms } }, until(stage.until_ms, true))]));
  }));
}

/** What was compared. */
function tally(of) {
  const passes = (count) => `${count} ${count === 1 ? "pass" : "passes"}`;
  const parts = [passes(of.passes)];
  if (of.differing === 0 && of.failed === 0) {
    if (of.passes > 0) parts.push("all equal");
  } else {
    parts.push(`${of.equal} equal`);
    if (of.differing > 0) parts.push(`${of.differing} with other plans (${of.differing_decisions} decisions)`);
    if (of.failed > 0) parts.push(`${of.failed} without a plan`);
  }
  if (of.skipped > 0) parts.push(`${of.skipped} not asked, because it was busy`);
  return parts.join(", ");
}

/** The decider in force. */
export function inForce(decider) {
  const { watching, rolled_back: back } = decider;
  return [
    decider.failure && el("pre", { class: "bad", dir: "auto" }, visible(decider.failure)),
    facts([
      ["Name", el("b", null, name(decider.name || "unnamed"))],
      ["Version", decider.version],
      ["Contract", decider.contract],
      ["Digest", el("code", null, visible(decider.digest, 200))],
      ["In force", Number.isFinite(decider.since_ms) && moment(decider.since_ms)],
      ["By", decider.by ? `command ${visible(decider.by, 80)}` : "the start, or a rollback"],
      ["Watched, ends", watching && countdown(watching.until_ms)],
      ["Rolls back at", watching?.failed && `${visible(watching.failed, 20)} more failed nodes`],
      ["Pinned", decider.pinned && "yes: no other one is let in until `homeostat decider unpin`"],
      ["Before it", decider.previous && short(decider.previous)],
      ["Rolled back", back && [...short(back.from), `: ${visible(back.why, 400)}`]],
      ["Quarantined", decider.quarantined > 0 && String(decider.quarantined)],
    ]),
  ];
}

/** Swaps and shadows, newest first. */
export function swapList(swaps) {
  if (swaps.length === 0) return el("p", { class: "quiet" }, "None yet: ", el("code", null, "homeostat decider swap FILE"), " begins one.");
  return el("ul", { class: "swaps" }, swaps.map((swap) => {
    const running = swap.stages.find((stage) => stage.state === "running");
    const text = swap.verdict ? swap.text : (running?.text || (running?.tally && tally(running.tally)) || swap.text);
    return el("li", null,
      el("p", null, badge(swap.verdict ?? running?.stage ?? "waiting"), " ",
        el("a", { href: `#swap/${encodeURIComponent(swap.id)}` }, `${KINDS[swap.kind] ?? "Swap"} ${visible(swap.id, 64)}`)),
      el("p", null, short(swap.decider), " ", el("time", { class: "quiet", title: whole(swap.asked_ms) }, instant(swap.asked_ms))),
      text && el("p", { class: "quiet", dir: "auto" }, visible(text, 400)));
  }));
}

/** All deciders that are kept. */
export function kept(deciders) {
  return table(["Decider", "Contract", "Is"], deciders.map((entry) => {
    const is = [entry.active && "in force", entry.previous && "the one before", entry.pinned && "pinned", entry.shadowing && "in shadow",
      entry.built_in && "built in"].filter(Boolean).join(", ");
    return [
      short(entry),
      visible(entry.contract, 40),
      [is || "kept", entry.quarantine && el("p", { class: "bad", dir: "auto" }, `quarantined: ${visible(entry.quarantine.why, 400)}`)],
    ];
  }), "kept");
}

/** One swap: its stages, its verdict, and what would accept what was refused. */
export function swapHead(swap) {
  const { refusal } = swap;
  const flags = (refusal?.accept ?? []).map((accept) => `--accept-divergence '${accept}'`).join(" ");
  return [
    el("p", { class: "summary" }, swap.verdict ? badge(swap.verdict) : badge("running"), " ", swap.text && el("span", { dir: "auto" }, words(swap.text, 600))),
    flags && el("p", { class: "callout" }, "To accept it: ", el("code", { class: "command" }, visible(flags, 800))),
    stages(swap),
    facts([
      ["Candidate", short(swap.decider)],
      ["Beside", short(swap.from)],
      ["Asked for", moment(swap.asked_ms)],
      ["Ended", Number.isFinite(swap.ended_ms) && moment(swap.ended_ms)],
      ["Accepts", swap.terms.accept.length > 0 && visible(swap.terms.accept.join(", "), 400)],
    ]),
  ];
}

/** What the stages that compare found. */
export function found(reports) {
  if (reports.length === 0) return el("p", { class: "quiet" }, "Nothing was compared.");
  return reports.map((report) => [
    el("p", null, el("b", null, visible(report.stage, 20)), `: ${tally(report.tally)}`),
    report.divergences.length > 0 && table(["Direction", "Active", "Candidate", "Decisions", "Nodes"], report.divergences.map((of) => [
      [el("span", { class: of.refused ? "bad" : WEIGHTY.has(of.direction) ? "weighty" : "quiet" }, of.refused ? `✕ ${of.direction}` : of.direction),
        of.accepted && " (accepted)"],
      step(of.active), step(of.candidate), String(of.decisions), String(of.nodes),
    ]), "divergences"),
    report.divergences.filter((of) => of.example).map(example),
    report.more > 0 && el("p", { class: "quiet" }, `and ${report.more} kinds more`),
  ]);
}

function step(of) {
  return visible([of.rule, of.verb].filter(Boolean).join(" ") || "nothing", 80);
}

function example(of) {
  const { example: first } = of;
  const said = (decision) => `${step(decision)}${decision.reason ? `: ${visible(decision.reason, 300)}` : ""}${
    decision.waits_for ? `; waits for ${visible(decision.waits_for, 200)}` : ""}`;
  return el("details", null, el("summary", null, `The first: ${step(of.active)} → ${step(of.candidate)}`), facts([
    ["When", moment(first.at_ms)],
    ["Node", first.node && el("a", { href: `#node/${encodeURIComponent(first.node)}` }, name(first.node))],
    ["Attempt", first.attempt],
    ["Active", said(first.active)],
    ["Candidate", said(first.candidate)],
    ...first.facts.slice(0, 60).map(([fact, known]) => [visible(fact, 80), visible(known, 200)]),
  ]));
}
