// The fleet as this page knows it: the last list, and every change since.

/** The rungs of the ladder, in order; `handed-off` counts as the last one. */
export const RUNGS = ["new", "lease-requested", "lease-created", "endpoint-known", "bootstrap-running", "joined", "dormant"];

/** What a node is, for people at three in the morning; the worst first. */
export const STATES = {
  failing: { mark: "✕", text: "failing" },
  held: { mark: "‖", text: "held" },
  going: { mark: "↓", text: "going" },
  rising: { mark: "↑", text: "coming up" },
  vacant: { mark: "○", text: "vacant" },
  ready: { mark: "✓", text: "ready" },
};
const ORDER = Object.keys(STATES);

/** Swaps that the daemon lists. */
const SWAPS = 12;

/** Which of them a node is. */
export function stateOf(node) {
  if (node.stage === "failed" || (node.failures > 0 && !node.ready)) return "failing";
  if (node.held && !node.ready) return "held";
  if (node.deleting || !node.desired) return "going";
  if (node.ready) return node.held ? "held" : "ready";
  return node.attempt === null || node.attempt === undefined || node.stage === "vacant" ? "vacant" : "rising";
}

/** How far up the ladder it is: 0 to 7; -1 where that is not known any more. */
export function rungOf(stage) {
  if (stage === "handed-off") return RUNGS.length;
  if (stage === "vacant" || stage === "") return 0;
  const at = RUNGS.indexOf(stage);
  return at < 0 ? -1 : at + 1;
}

/** The worse one first, then by index. */
export function bySeverity(a, b) {
  return ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || a.node.index - b.node.index;
}

export class Fleet {
  constructor() {
    this.status = null;
    this.nodes = new Map();
    this.order = [];
    this.orphans = new Map();
    this.pauses = new Map();
  }

  /** Everything anew. */
  list(status) {
    this.status = { ...status };
    this.nodes = new Map(status.nodes.map((node) => [node.node, node]));
    this.orphans = new Map(status.orphans.map((orphan) => [orphanKey(orphan), orphan]));
    this.pauses = new Map(status.pauses.map((pause) => [pauseKey(pause), pause]));
    this.around(status);
  }

  /** What the stream does not say. The rest of a status may be older than the stream, which has it in order. */
  around(status) {
    this.status = { ...status, nodes: undefined, orphans: undefined, pauses: undefined };
    this.order = status.groups.map((group) => group.group);
  }

  /** Takes a change. Gives the node's name when it is about one. */
  change(change) {
    const of = change.of ?? {};
    switch (change.kind) {
      case "node":
        this.nodes.set(of.node, of);
        if (!this.order.includes(of.group)) this.order.push(of.group);
        return of.node;
      case "gone":
        this.nodes.delete(of.node);
        return of.node;
      case "generation":
        this.status.generation = of.generation;
        this.status.converged = false;
        return null;
      case "converged":
        this.status.converged = true;
        this.status.observed_generation = of.generation;
        this.status.reason = "";
        return null;
      case "orphan":
        this.orphans.set(orphanKey(of), of);
        return null;
      case "orphan-gone":
        this.orphans.delete(orphanKey(of));
        return null;
      case "paused":
        this.pauses.set(pauseKey(of), of);
        return null;
      case "resumed":
        for (const [key, pause] of this.pauses) {
          const group = (pause.group ?? null) === (of.group ?? null);
          if (group && (of.only === "all" || pause.only === of.only)) this.pauses.delete(key);
        }
        return null;
      case "file-refused":
        this.status.refused_file = of;
        return null;
      case "file-taken":
        this.status.refused_file = null;
        return null;
      case "decider":
        this.status.decider = of;
        return null;
      case "swap": {
        const others = (this.status.swaps ?? []).filter((swap) => swap.id !== of.id);
        this.status.swaps = [of, ...others].sort((a, b) => b.asked_ms - a.asked_ms).slice(0, SWAPS);
        return null;
      }
      default:
        return null;
    }
  }

  /** Whether it has its shape: what the daemon said, unless a node says otherwise since. */
  get converged() {
    if (!this.status || !this.status.converged) return false;
    for (const node of this.nodes.values()) if (!node.ready || node.deleting || !node.desired) return false;
    return true;
  }

  /** How many nodes there are of each state. */
  counts() {
    const counts = Object.fromEntries(ORDER.map((state) => [state, 0]));
    for (const node of this.nodes.values()) counts[stateOf(node)] += 1;
    return counts;
  }
}

export function orphanKey(orphan) {
  return `${orphan.provider}\u0000${orphan.lease}`;
}

function pauseKey(pause) {
  return `${pause.group ?? ""}\u0000${pause.only}\u0000${pause.by}`;
}
