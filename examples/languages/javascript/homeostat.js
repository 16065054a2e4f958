// The contract in the hand of a JavaScript author: one node at a time, with words instead of codes.
// `homeostat.d.ts` has the types. Nothing here decides anything.

const STAGES = [
  'vacant', 'new', 'lease-requested', 'lease-created', 'endpoint-known', 'bootstrap-running', 'joined', 'handed-off',
  'dormant', 'failed', 'destroyed',
];
const INTENTS = ['active', 'deleting'];
const OPERATIONS = ['none', 'create-lease', 'lookup-endpoint', 'start-bootstrap', 'cancel-bootstrap', 'destroy-lease'];
const PROGRESS = [
  'none', 'connect', 'boot-check', 'start', 'join', 'converged', 'connect-failed', 'boot-check-failed', 'start-failed',
  'join-failed', 'convergence-failed',
];
const VERBS = [
  'hold', 'insert', 'reap', 'restart', 'begin-delete', 'mark-destroyed', 'convergence-observed', 'create-lease',
  'lookup-endpoint', 'start-bootstrap', 'cancel-bootstrap', 'destroy-lease',
];
const HOLDS = ['none', 'instant', 'result', 'observation', 'steady', 'person', 'budget', 'circuit'];
const NO_INDEX = 0xffffffff;
const [LEASE, ENDPOINT, SESSION] = [1, 2, 4];
const SURGE = 1;
const [MAKING, ENDING, ROLLOUT] = [1, 2, 4];

/**
 * One row of the snapshot's table. The same object is moved from row to row: do not keep it. What nearly every policy reads is
 * a plain field, because a call is the dearest thing in an interpreter; the rest is read when asked for.
 */
class Node {
  constructor(snapshot) {
    this.snapshot = snapshot;
    this.columns = snapshot.nodes;
    this.at = 0;
    this.stage = this.intent = this.pending = this.ambiguous = 'unknown';
    this.desired = this.drifted = this.lease = this.endpoint = this.session = this.liveIsKnown = false;
  }

  get id() { return this.columns.node[this.at]; }
  get attempt() { return this.columns.attempt[this.at]; }
  get group() { return this.snapshot.groups[this.columns.group[this.at]] ?? null; }
  get slot() { return this.columns.slot[this.at]; }
  get template() { return this.snapshot.templates[this.columns.template[this.at]] ?? null; }
  get desiredTemplate() { return this.snapshot.templates[this.columns.desiredTemplate[this.at]] ?? null; }
  get progress() { return PROGRESS[this.columns.progress[this.at]] ?? 'unknown'; }
  get failures() { return this.columns.failures[this.at]; }
  get pendingDeadline() { return this.columns.pendingDeadline[this.at]; }
  get nextEffectAt() { return this.columns.nextEffectAt[this.at]; }
  get probeAt() { return this.columns.probeAt[this.at]; }
  get restartAt() { return this.columns.restartAt[this.at]; }
  get stageDeadline() { return this.columns.stageDeadline[this.at]; }
  get turn() { return this.columns.turn[this.at] === NO_INDEX ? null : this.columns.turn[this.at]; }
  get surge() { return (this.columns.marks[this.at] & SURGE) !== 0; }
}

/** Do this. */
export function act(rule, verb) {
  return { rule, verb: code(VERBS, verb), hold: 0, until: 0n };
}

/** Wait for what `kind` names, at the latest until the instant. */
export function hold(rule, kind, until = 0n) {
  return { rule, verb: 0, hold: code(HOLDS, kind), until };
}

/** What a component has to export, made from a name, a version, the rules, and a decision for one node. */
export function decider({ name, version, contract = '1.1.0', rules, decide }) {
  const ids = Object.keys(rules);
  const indices = new Map(ids.map((id, index) => [id, index]));
  return {
    describe: () => ({ name, version, contract, rules: ids.map((id) => ({ id, sentence: rules[id] })) }),
    reconcile(snapshot) {
      const { nodes } = snapshot;
      const { stage, intent, pending, ambiguous, live, template, desiredTemplate } = nodes;
      const rows = nodes.node.length;
      const rule = new Uint8Array(rows);
      const verb = new Uint8Array(rows);
      const held = new Uint8Array(rows);
      const until = new BigUint64Array(rows);
      for (const group of snapshot.groups) {
        group.makingHeld = (group.pauses & MAKING) !== 0;
        group.endingHeld = (group.pauses & ENDING) !== 0;
        group.rolloutPaused = (group.pauses & ROLLOUT) !== 0;
      }
      const node = new Node(snapshot);
      let wakeAtMs = 0n;
      for (let at = 0; at < rows; at += 1) {
        node.at = at;
        node.stage = STAGES[stage[at]] ?? 'unknown';
        node.intent = INTENTS[intent[at]] ?? 'unknown';
        node.pending = OPERATIONS[pending[at]] ?? 'unknown';
        node.ambiguous = OPERATIONS[ambiguous[at]] ?? 'unknown';
        const wanted = desiredTemplate[at];
        node.desired = wanted !== NO_INDEX;
        node.drifted = node.desired && wanted !== template[at];
        const bits = live[at];
        node.lease = (bits & LEASE) !== 0;
        node.endpoint = (bits & ENDPOINT) !== 0;
        node.session = (bits & SESSION) !== 0;
        node.liveIsKnown = bits < 8;
        const decision = decide(node, snapshot.nowMs, snapshot);
        rule[at] = known(indices.get(decision.rule), decision.rule);
        verb[at] = decision.verb;
        if (decision.hold !== 0) {
          held[at] = decision.hold;
          if (decision.until !== 0n) {
            until[at] = decision.until;
            if (wakeAtMs === 0n || decision.until < wakeAtMs) wakeAtMs = decision.until;
          }
        }
      }
      return { wakeAtMs, decisions: { node: nodes.node, attempt: nodes.attempt, rule, verb, hold: held, until } };
    },
  };
}

function code(words, word) {
  return known(words.indexOf(word) < 0 ? undefined : words.indexOf(word), word);
}

/** A mistake of the policy's author is better a trap, which the host reports, than another decision than was meant. */
function known(value, word) {
  if (value === undefined) throw new Error(`no such word in the contract or in the rules: ${word}`);
  return value;
}
