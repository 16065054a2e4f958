// The top of the page: whether all is well, and if not, why and what to do.

import { el, name, renderWhen, setText, visible, words } from "./dom.js";
import { bySeverity, stateOf } from "./fleet.js";
import { instant, length, since, skew, whole } from "./clock.js";
import { deciderAlerts } from "./decider.js";

/** Clocks that differ less are called the same. */
const SKEW_MS = 3000;
/** Failing nodes that the verdict names. */
const WORST = 4;

/** In a few words, for the window's title and for those who listen. */
export function headline(fleet, live) {
  const { converged, nodes } = fleet;
  const ready = [...nodes.values()].filter((node) => node.ready && node.desired && !node.deleting).length;
  const desired = [...nodes.values()].filter((node) => node.desired).length;
  const failing = fleet.counts().failing;
  const mark = !live ? "?" : converged ? "✓" : failing || fleet.status.decider.failure ? "✕" : "…";
  const words = converged ? "Converged" : failing ? `Not converged, ${failing} failing` : "Not converged";
  return { title: `${mark} ${ready}/${desired} ${visible(fleet.status.run, 40)}`, spoken: `${words}: ${ready} of ${desired} nodes are ready.`, ready, desired };
}

/** The header, the verdict and the footer. */
export function summary($, fleet, live) {
  const { status } = fleet;
  const { converged } = fleet;
  setText($("run"), visible(status.run, 80));
  const decider = status.decider;
  renderWhen($("facts"), [status.generation, status.observed_generation, decider], () => [
    pair("generation", status.generation === status.observed_generation
      ? String(status.generation)
      : `${status.generation} (evaluated: ${status.observed_generation})`),
    pair("decider", [el("a", { href: "#deciders" }, name(decider.name || "unnamed"), ` ${visible(decider.version, 40)}`), " ",
      el("code", { title: visible(decider.digest, 200) }, visible(digest(decider.digest), 40))]),
    pair("contract", visible(decider.contract, 40)),
  ]);
  const { ready, desired } = headline(fleet, live);
  const failing = fleet.counts().failing > 0 || Boolean(decider.failure);
  const verdict = $("verdict");
  const state = !live ? "unknown" : converged ? "good" : failing ? "bad" : "busy";
  if (verdict.dataset.state !== state) verdict.dataset.state = state;
  setText($("verdict-mark"), { unknown: "?", good: "✓", bad: "✕", busy: "…" }[state]);
  const was = live ? "" : "Was ";
  setText($("verdict-title"), `${converged ? `${was}${live ? "C" : "c"}onverged` : `${was}${live ? "N" : "n"}ot converged`}: ${ready} of ${desired} ready`);
  const reason = converged
    ? `All nodes have the shape of generation ${status.generation}.`
    : status.reason || "Nodes are on their way; nothing is asked of you.";
  renderWhen($("verdict-reason"), reason, () => words(reason, 1200));
  worst($("worst"), fleet);
  const ahead = skew();
  const clocks = Math.abs(ahead) > SKEW_MS
    ? ` This device's clock is ${length(Math.abs(ahead))} ${ahead > 0 ? "behind" : "ahead of"} the daemon's; times are the daemon's.`
    : "";
  setText($("foot"), `homeostat ${visible(status.version, 40)}, ${live ? `up for ${since(status.started_ms)}, ` : ""}started ${instant(status.started_ms)}.${clocks} This page only reads.`);
}

/** The nodes that somebody should look at first. */
function worst(parent, fleet) {
  const failing = [];
  for (const node of fleet.nodes.values()) {
    const state = stateOf(node);
    if (state === "failing") failing.push({ node, state });
  }
  failing.sort((a, b) => b.node.failures - a.node.failures || bySeverity(a, b) || (a.node.node < b.node.node ? -1 : 1));
  const shown = failing.slice(0, WORST);
  renderWhen(parent, [failing.length, shown.map(({ node }) => [node.node, node.error, node.failures])], () => [
    ...shown.map(({ node }) => el("li", null,
      el("a", { href: `#node/${encodeURIComponent(node.node)}` }, name(node.node)),
      node.failures > 1 && ` failed ${node.failures} times in a row`,
      node.error && [": ", el("span", { dir: "auto" }, visible(node.error, 160))])),
    failing.length > WORST && el("li", { class: "quiet" }, `and ${failing.length - WORST} more`),
  ]);
}

function pair(term, known) {
  return el("div", null, el("dt", null, term), el("dd", null, known));
}

function digest(text) {
  const [kind, hex] = text.split(":");
  return hex === undefined ? text.slice(0, 16) : `${kind}:${hex.slice(0, 10)}`;
}

/** What somebody has to know: a failing decider, what is held, orphans, what is being removed. */
export function alerts(parent, fleet) {
  const { status } = fleet;
  const pauses = [...fleet.pauses.values()];
  const orphans = [...fleet.orphans.values()];
  renderWhen(parent, [status.decider, status.swaps, status.refused_file, pauses, orphans, status.reaping], () => [
    deciderAlerts(status),
    status.decider.failure && box("bad", "The decider fails; nothing is decided anew", [
      el("p", { dir: "auto" }, visible(status.decider.failure, 2000)),
    ]),
    status.refused_file && box("held", "The fleet file cannot be taken over", [
      el("p", { dir: "auto" }, visible(status.refused_file.reason, 1000)),
      el("p", { class: "quiet" }, "What was taken over before stays in force, since ",
        el("time", { title: whole(status.refused_file.since_ms) }, instant(status.refused_file.since_ms)),
        ". The file is read again when it changes."),
    ]),
    pauses.length > 0 && box("held", pauses.length === 1 ? "Effects are held" : `Effects are held, ${pauses.length} times`, [
      el("ul", { class: "plain" }, pauses.map(pause)),
    ]),
    orphans.length > 0 && box("held", orphans.length === 1 ? "1 orphan" : `${orphans.length} orphans`, [
      el("p", { class: "quiet" }, "They bear this run's name and were never authorised. Nothing is done about them until somebody says so: ",
        el("code", null, "homeostat orphans"), " shows what can be said."),
      many(orphans, (orphan) => el("li", null,
        el("b", null, visible(orphan.provider, 60)), " ", el("code", null, visible(orphan.lease, 200)),
        ", labelled ", name(orphan.node), ` attempt ${orphan.attempt}, seen since `,
        el("time", { title: whole(orphan.seen_ms) }, instant(orphan.seen_ms)),
        orphan.destroying ? " · is being destroyed" : "")),
    ]),
    status.reaping.length > 0 && el("details", { class: "alert", data: { kind: "busy" } },
      el("summary", null, status.reaping.length === 1 ? "1 leftover is being removed" : `${status.reaping.length} leftovers are being removed`),
      many(status.reaping, (left) => el("li", null,
        el("b", null, visible(left.provider, 60)), " ", el("code", null, visible(left.lease, 200)),
        ", of ", name(left.node), ` attempt ${left.attempt}`,
        left.failures > 0 ? ` · ${left.failures} failures` : "",
        Number.isFinite(left.next_at_ms) ? ` · tried again at ${instant(left.next_at_ms)}` : ""))),
  ]);
}

function pause(held) {
  const guard = held.by !== "operator";
  const only = held.only === "all" ? "All effects" : `Every ${held.only}`;
  return el("li", null,
    el("p", null, el("b", null, guard ? "Guard " : "Paused by ", visible(held.by, 80)), `: ${only} in `,
      held.group ? name(held.group) : "the whole fleet",
      ", since ", el("time", { title: whole(held.since_ms) }, instant(held.since_ms)), "."),
    held.reason && el("p", { dir: "auto" }, words(held.reason, 1000)),
    held.resume && el("p", null, "To go on: ", el("code", { class: "command" }, visible(held.resume, 400))));
}

const SHOWN = 20;

function many(items, line) {
  const first = el("ul", { class: "plain" }, items.slice(0, SHOWN).map(line));
  if (items.length <= SHOWN) return first;
  const rest = el("details", null, el("summary", null, `${items.length - SHOWN} more`));
  rest.addEventListener("toggle", () => {
    if (rest.children.length === 1) rest.append(el("ul", { class: "plain" }, items.slice(SHOWN, 1000).map(line)));
  });
  return [first, rest];
}

function box(kind, title, body) {
  return el("section", { class: "alert", data: { kind } }, el("h2", null, title), body);
}
