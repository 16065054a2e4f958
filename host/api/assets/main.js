// Puts the page together: the feed fills the fleet, the fleet is drawn. Nothing here changes anything at the daemon.

import { ask, Feed } from "./feed.js";
import { Fleet, STATES } from "./fleet.js";
import { List } from "./list.js";
import { Timeline } from "./timeline.js";
import { Drawer } from "./drawer.js";
import { alerts, headline, summary } from "./summary.js";
import { came, decided, tone } from "./decider.js";
import { el, setText, setAttribute, throttle } from "./dom.js";
import { instant, length, skew, until } from "./clock.js";

const $ = (id) => document.getElementById(id);
const STATUS_EVERY_MS = 30_000;

const fleet = new Fleet();
const list = new List($("groups"), $("matches"), (node) => go({ node }));
const timeline = new Timeline($("timeline"), $("older"), $("decisions-note"), (number) => go({ number }));
const drawer = new Drawer({
  dialog: $("drawer"),
  title: $("drawer-title"),
  body: $("drawer-body"),
  closeButton: $("drawer-close"),
  closed: () => go(null),
});

/** The verdict that was said last, of each swap. */
const said = new Map();
let link = { live: false, since: null, tryAt: null, why: "", locked: false };
let started = null;
let dirty = new Set();
let everything = false;
let queued = false;

const feed = new Feed({
  list(status) {
    const before = started;
    started = status.started_ms;
    fleet.list(status);
    if (before !== null && before !== started) timeline.clear();
    everything = true;
    soon();
    readDecisions();
  },
  change(change) {
    const named = fleet.change(change);
    if (named) dirty.add(named);
    if (change.kind === "notice") timeline.say(change.at_ms, change.of.level, change.of.text);
    else if (change.kind === "command") timeline.say(change.at_ms, "command", `Command ${change.of.id}: ${change.of.text}`);
    else if (change.kind === "generation") timeline.say(change.at_ms, "info", `Generation ${change.of.generation} is in force`);
    else if (change.kind === "converged") timeline.say(change.at_ms, "good", `Converged: generation ${change.of.generation}`);
    else if (change.kind === "decider") timeline.say(change.at_ms, change.of.rolled_back ? "error" : "info", decided(change.of));
    else if (change.kind === "swap" && change.of.verdict) {
      const verdict = `${change.of.verdict}\u0000${change.of.ended_ms}`;
      if (said.get(change.of.id) !== verdict) timeline.say(change.at_ms, tone(change.of), came(change.of));
      said.set(change.of.id, verdict);
    }
    else if (change.kind === "file-refused") timeline.say(change.at_ms, "warning", `The fleet file is refused: ${change.of.reason}`);
    else if (change.kind === "file-taken") timeline.say(change.at_ms, "info", `The fleet file was taken over: ${change.of.file}`);
    else if (change.kind === "paused") timeline.say(change.at_ms, "warning", `${change.of.by} holds: ${change.of.reason}`);
    if (change.kind === "decider" || change.kind === "swap") drawer.touchDeciders();
    soon();
    readStatus();
    readDecisions();
  },
  link(state) {
    const was = link.live;
    link = { ...link, ...state };
    if (was !== link.live) {
      announce(link.live ? "Live again." : "The connection to the daemon is lost. What is shown is old.");
      if (link.live) readStatus();
      everything = true;
    }
    showLink();
    // In one step with the banner: no frame says "not live" beside a verdict that is no longer known.
    draw();
  },
});

/** What the stream does not say: why it has not converged, the decider, what is being removed. */
const readStatus = throttle(async () => {
  if (!link.live || document.hidden) return;
  try {
    fleet.around(await ask("/v1/status"));
    soon();
  } catch { /* the feed notices when the daemon is gone; the next change asks again */ }
}, 1500, 300);

const readDecisions = throttle(async () => {
  if (document.hidden) return;
  try {
    timeline.add((await ask("/v1/decisions?limit=200")).decisions);
    route();
  } catch { /* as above */ }
}, 1000, 100);

/** Draws before the next frame, however many changes came. */
function soon() {
  if (queued) return;
  queued = true;
  if (document.hidden) setTimeout(draw, 500);
  else requestAnimationFrame(draw);
}

let announced = null;

function draw() {
  queued = false;
  if (!fleet.status) return;
  const names = everything ? null : dirty;
  list.draw(fleet, names, link.live);
  drawer.touch(names);
  dirty = new Set();
  everything = false;
  summary($, fleet, link.live);
  alerts($("alerts"), fleet);
  drawStates();
  const now = headline(fleet, link.live);
  document.title = now.title;
  if (announced !== null && announced !== now.spoken && link.live) announce(now.spoken);
  announced = now.spoken;
}

// Filters.

const chosen = new Set();
const chips = Object.fromEntries(Object.entries(STATES).map(([state, { mark, text }]) => {
  const count = el("b");
  const chip = el(
    "button",
    { type: "button", "aria-pressed": "false", data: { state }, onclick: () => choose(state) },
    el("span", { class: "mark", "aria-hidden": "true" }, mark),
    count,
    ` ${text}`,
  );
  return [state, { chip, count }];
}));
$("states").append(...Object.values(chips).map(({ chip }) => chip));

function drawStates() {
  const counts = fleet.counts();
  for (const [state, { chip, count }] of Object.entries(chips)) {
    setText(count, String(counts[state]));
    chip.hidden = counts[state] === 0 && !chosen.has(state);
  }
}

function choose(state) {
  if (!chosen.delete(state)) chosen.add(state);
  setAttribute(chips[state].chip, "aria-pressed", String(chosen.has(state)));
  list.filter($("filter").value, chosen);
}

$("filter").addEventListener("input", () => list.filter($("filter").value, chosen));
$("filter").addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") {
    event.preventDefault();
    list.visible()[0]?.focus();
  } else if (event.key === "Escape" && $("filter").value !== "") {
    event.preventDefault();
    event.stopPropagation();
    $("filter").value = "";
    list.filter("", chosen);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "/" && !event.target.matches("input, textarea")) {
    event.preventDefault();
    $("filter").focus();
  } else if (event.key === "Escape" && $("drawer").open) {
    event.preventDefault();
    go(null);
  }
});

// What is open is in the address, so that it can be sent to somebody.

let opened = "";

function go(what) {
  const hash = what === null ? "" : what.swap !== undefined ? `#swap/${encodeURIComponent(what.swap)}` : what.node !== undefined ? `#node/${encodeURIComponent(what.node)}` : `#decision/${what.number}`;
  if (location.hash === hash) return;
  if (hash === "") history.replaceState(null, "", location.pathname);
  else history.pushState(null, "", hash);
  route();
}

function route() {
  const [, kind, rest] = /^#(node|decision|swap)\/(.+)$/.exec(location.hash) ?? /^#(deciders)()$/.exec(location.hash) ?? [];
  if (kind === undefined) {
    opened = "";
    drawer.show(null);
  } else if (opened !== location.hash) {
    let what = null;
    try {
      what = kind === "deciders" ? { deciders: true } : kind === "node" || kind === "swap" ? { [kind]: decodeURIComponent(rest) } : { number: Number(rest), decision: timeline.find(Number(rest)) };
    } catch { /* an address that nobody here made */ }
    if (what && (what.number === undefined || what.decision)) {
      opened = location.hash;
      drawer.show(what);
    }
  }
}

window.addEventListener("popstate", route);
window.addEventListener("hashchange", route);

// The connection.

function showLink() {
  document.body.classList.toggle("stale", !link.live);
  $("link").dataset.state = link.live ? "live" : link.since ? "stale" : "connecting";
  setText($("link-text"), link.live ? "live" : link.since ? "not live" : "connecting");
  if (link.live) {
    $("banner").hidden = true;
    return;
  }
  if (link.tryAt === null) return;
  if (link.locked) {
    setText($("banner-text"), "You are logged out. Reload the page to log in; what is shown is old.");
    setText($("retry"), "Reload");
  } else {
    setText($("retry"), "Try now");
    setText($("banner-text"), bannerText());
  }
  $("banner").hidden = false;
}

/** No running seconds in here but rounded ones: it is read aloud when it changes. */
function bannerText() {
  const heard = link.since
    ? `What is shown is from ${instant(link.since + skew())}, ${length(Math.floor((Date.now() - link.since) / 5000) * 5000)} ago`
    : "Nothing was heard yet";
  return `Not live: ${link.why}. ${heard}. It tries again by itself.`;
}

$("retry").addEventListener("click", () => (link.locked ? location.reload() : feed.hurry()));
window.addEventListener("online", () => feed.hurry());
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  if (!link.live) feed.hurry();
  readStatus();
  readDecisions();
});

function announce(text) {
  setText($("announce"), text);
}

setInterval(() => {
  if (document.hidden) return;
  list.tick(link.live);
  drawer.tick(link.live);
  for (const made of $("alerts").querySelectorAll("[data-until]")) setText(made, until(Number(made.dataset.until), link.live));
  if (!link.live) showLink();
  if (fleet.status) summary($, fleet, link.live);
}, 1000);
setInterval(readStatus, STATUS_EVERY_MS);

showLink();
feed.run();
