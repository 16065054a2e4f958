// The built-in ladder, rule for rule, in TypeScript. Change `decide` to make a policy of your own.
import { act, decider, hold } from './homeostat.js';
import type { Decision, Group, Instant, Node } from './homeostat.js';

const RULES = {
  R0: 'A desired slot that no node holds gets a fresh attempt.',
  R1: 'A destroyed node whose slot is not desired is reaped.',
  R2: 'A destroyed node whose slot is desired restarts, with a fresh attempt and the latest template.',
  R3: 'A destroyed node whose slot is desired waits until its restart is due.',
  R4: 'An active node that is not desired, drifted or failed begins to be deleted.',
  R5: 'A node with a pending operation waits for its result or its deadline.',
  R6: 'A deleting node with an ambiguous create or bootstrap dispatches that same operation again, to adopt.',
  R7: "A deleting node's live bootstrap session is cancelled.",
  R8: "A deleting node's live lease is destroyed.",
  R9: 'A deleting node of which nothing is left is destroyed.',
  R10: 'A node waits until its next operation or its next look is due.',
  R11: 'A ready node is steady.',
  R12: 'A node without a lease creates one.',
  R13: 'A node with a lease and no endpoint looks it up.',
  R14: 'A joined node with a live session has converged.',
  R15: "A node whose bootstrap runs waits for its observations, until the stage's deadline.",
  R16: 'A node with a lease and an endpoint and no session starts its bootstrap.',
  R17: 'A node whose facts contradict each other, or are unknown, waits for a person and is reported.',
  R18: "A ready node whose template changed stays as it is while its group's rollout is paused.",
  R19: 'A ready node whose template changed waits while as many of its group are unavailable as may be.',
  R20: "While too many of a group's nodes fail, no ready node is replaced and destroyed ones restart one at a time.",
  R21: 'Nothing is made in a group while a person or a guard holds that back.',
  R22: 'Nothing that has not failed is ended in a group while a person or a guard holds that back.',
};

// What does not change from node to node is made once.
const INSERT = act('R0', 'insert');
const REAP = act('R1', 'reap');
const RESTART = act('R2', 'restart');
const BEGIN_DELETE = act('R4', 'begin-delete');
const ADOPT_LEASE = act('R6', 'create-lease');
const ADOPT_BOOTSTRAP = act('R6', 'start-bootstrap');
const CANCEL = act('R7', 'cancel-bootstrap');
const DESTROY = act('R8', 'destroy-lease');
const MARK_DESTROYED = act('R9', 'mark-destroyed');
const STEADY = hold('R11', 'steady');
const CREATE = act('R12', 'create-lease');
const LOOK_UP = act('R13', 'lookup-endpoint');
const CONVERGED = act('R14', 'convergence-observed');
const START = act('R16', 'start-bootstrap');
const CONTRADICTION = hold('R17', 'person');
const ROLLOUT_PAUSED = hold('R18', 'person');
const BUDGET_USED_UP = hold('R19', 'budget');
const CIRCUIT_OPEN = hold('R20', 'circuit');
const MAKING_HELD = hold('R21', 'person');
const ENDING_HELD = hold('R22', 'person');

const circuitIsOpen = (group: Group): boolean => group.maxFailing !== undefined && group.failing > group.maxFailing;

/** Whether the group's budget has a place left for replacing this ready node. */
function hasPlace(node: Node, { maxUnavailable, available, count }: Group): boolean {
  if (maxUnavailable === undefined) return true;
  const spare = available - Math.max(count - maxUnavailable, 0);
  return node.turn !== null && node.turn < spare;
}

/** The decision for one node: a function of the node, its group and the instant alone. */
function decide(node: Node, now: Instant): Decision {
  const { stage, ambiguous } = node;
  const vacant = stage === 'vacant';
  const known = stage !== 'unknown' && node.intent !== 'unknown' && ambiguous !== 'unknown' && node.liveIsKnown;
  if (!known || (node.attempt === 0n) !== vacant) return CONTRADICTION;

  const active = node.intent === 'active';
  const idle = node.pending === 'none';
  const { lease, endpoint, session } = node;
  // A create or a bootstrap that may have happened has to be adopted before anything is destroyed.
  const createInDoubt = ambiguous === 'create-lease';
  const bootstrapInDoubt = ambiguous === 'start-bootstrap';
  const sure = !createInDoubt && !bootstrapInDoubt;

  if (vacant) {
    if (!node.desired || !active || !idle || !sure || lease || endpoint || session) return CONTRADICTION;
    return node.group?.makingHeld ? MAKING_HELD : INSERT;
  }
  if (stage === 'destroyed') {
    if (!idle || !sure || lease || session) return CONTRADICTION;
    if (!node.desired) return REAP;
    if (node.restartAt > now) return hold('R3', 'instant', node.restartAt);
    const { group } = node;
    if (group?.makingHeld) return MAKING_HELD;
    // While the circuit is open, one at a time is tried.
    const tried = group && node.turn === 0 && group.trying === 0;
    if (group && !node.drifted && circuitIsOpen(group) && !tried) return CIRCUIT_OPEN;
    return RESTART;
  }

  if (active && (!node.desired || node.drifted || stage === 'failed')) {
    const { group } = node;
    const kept = node.drifted && group !== null && group.rolloutPaused;
    if (node.drifted && group && (stage === 'dormant' || stage === 'handed-off')) {
      if (kept) return ROLLOUT_PAUSED;
      if (circuitIsOpen(group)) return CIRCUIT_OPEN;
      if (!hasPlace(node, group)) return BUDGET_USED_UP;
    }
    if (stage === 'failed') return BEGIN_DELETE;
    // What is kept goes on with the template it has.
    if (!kept) return group?.endingHeld ? ENDING_HELD : BEGIN_DELETE;
  }
  if (!idle) return hold('R5', 'result', node.pendingDeadline);
  const due = node.nextEffectAt <= now;

  if (!active) {
    if (sure && !lease && !session) return MARK_DESTROYED;
    if (!due) return hold('R10', 'instant', node.nextEffectAt);
    if (createInDoubt) return ADOPT_LEASE;
    if (bootstrapInDoubt) return lease && endpoint ? ADOPT_BOOTSTRAP : CONTRADICTION;
    return session ? CANCEL : DESTROY;
  }

  if (!due) return hold('R10', 'instant', node.nextEffectAt);
  if (node.probeAt > now) return hold('R10', 'instant', node.probeAt);

  switch (stage) {
    case 'dormant':
    case 'handed-off':
      return sure && lease ? STEADY : CONTRADICTION;
    case 'new':
    case 'lease-requested':
      if (bootstrapInDoubt || lease || endpoint || session) return CONTRADICTION;
      return sure && node.group?.makingHeld ? MAKING_HELD : CREATE;
    case 'joined':
      return sure && lease && session ? CONVERGED : CONTRADICTION;
    case 'bootstrap-running':
      return sure && lease && session ? hold('R15', 'observation', node.stageDeadline) : CONTRADICTION;
    case 'lease-created':
      if (sure && lease && !endpoint && !session) return LOOK_UP;
    // falls through: with an endpoint it is as good as known
    case 'endpoint-known':
      return !createInDoubt && lease && endpoint && !session ? START : CONTRADICTION;
    default:
      return CONTRADICTION;
  }
}

export const policy = decider({ name: 'ladder-typescript', version: '0.1.0', rules: RULES, decide });
