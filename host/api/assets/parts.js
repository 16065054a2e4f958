// Pieces that the drawer shows of whatever is in it.

import { el, words } from "./dom.js";
import { instant, since, until, whole } from "./clock.js";

/** An instant to come, counting down. */
export function countdown(ms) {
  return [el("span", { data: { until: ms } }, until(ms, true)), el("span", { class: "quiet" }, ` (${instant(ms)})`)];
}

/** An instant that is past, and how long ago that is. */
export function moment(ms) {
  return [el("time", { title: whole(ms) }, instant(ms)), el("span", { class: "quiet" }, " · ", el("span", { data: { since: ms } }, since(ms)), " ago")];
}

/** Terms and what they are; what is empty is left out. */
export function facts(pairs) {
  const rows = pairs.filter(([, known]) => known !== undefined && known !== null && known !== false && known !== "" && known.length !== 0);
  return el("dl", { class: "pairs" }, rows.map(([term, known]) => [
    el("dt", null, term),
    el("dd", { dir: "auto" }, typeof known === "string" || typeof known === "number" ? words(known) : known),
  ]));
}

/** A table that scrolls where it is too wide. */
export function table(heads, rows, kind) {
  return el("div", { class: "scroll" }, el("table", { class: kind },
    el("thead", null, el("tr", null, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", null, rows.map((row) => el("tr", null, row.map((cell, at) => el(at === 0 ? "th" : "td", at === 0 && { scope: "row" }, cell))))),
  ));
}

