// The built-in ladder, rule for rule, in AssemblyScript. Change `decide` to make a policy of your own.
import {
  Decision, Ends, Group, Intent, Live, NO_INDEX, Node, Operation, Pauses, Stage, Verb, act, description, hold, plan,
} from "./homeostat";

const RULES: StaticArray<StaticArray<string>> = [
  ["R0", "A desired slot that no node holds gets a fresh attempt."],
  ["R1", "A destroyed node whose slot is not desired is reaped."],
  ["R2", "A destroyed node whose slot is desired restarts, with a fresh attempt and the latest template."],
  ["R3", "A destroyed node whose slot is desired waits until its restart is due."],
  ["R4", "An active node that is not desired, drifted or failed begins to be deleted."],
  ["R5", "A node with a pending operation waits for its result or its deadline."],
  ["R6", "A deleting node with an ambiguous create or bootstrap dispatches that same operation again, to adopt."],
  ["R7", "A deleting node's live bootstrap session is cancelled."],
  ["R8", "A deleting node's live lease is destroyed."],
  ["R9", "A deleting node of which nothing is left is destroyed."],
  ["R10", "A node waits until its next operation or its next look is due."],
  ["R11", "A ready node is steady."],
  ["R12", "A node without a lease creates one."],
  ["R13", "A node with a lease and no endpoint looks it up."],
  ["R14", "A joined node with a live session has converged."],
  ["R15", "A node whose bootstrap runs waits for its observations, until the stage's deadline."],
  ["R16", "A node with a lease and an endpoint and no session starts its bootstrap."],
  ["R17", "A node whose facts contradict each other, or are unknown, waits for a person and is reported."],
  ["R18", "A ready node whose template changed stays as it is while its group's rollout is paused."],
  ["R19", "A ready node whose template changed waits while as many of its group are unavailable as may be."],
  ["R20", "While too many of a group's nodes fail, no ready node is replaced and destroyed ones restart one at a time."],
  ["R21", "Nothing is made in a group while a person or a guard holds that back."],
  ["R22", "Nothing that has not failed is ended in a group while a person or a guard holds that back."],
];

function contradiction(): Decision { return hold(17, Ends.Person); }

function circuitIsOpen(group: Group): bool { return group.hasMaxFailing != 0 && group.failing > group.maxFailing; }

/** Whether the group's budget has a place left for replacing this ready node. */
function hasPlace(node: Node, group: Group): bool {
  if (group.hasMaxUnavailable == 0) return true;
  const needed: u32 = group.count > group.maxUnavailable ? group.count - group.maxUnavailable : 0;
  return group.available > needed && node.turn < group.available - needed;
}

/** The decision for one node: a function of the node, its group and the instant alone. */
function decide(node: Node, now: u64): Decision {
  const stage = node.stage, ambiguous = node.ambiguous, live = node.live;
  const vacant = stage == Stage.Vacant, active = node.intent == Intent.Active, idle = node.pending == Operation.None;
  const known = stage <= Stage.Destroyed && node.intent <= Intent.Deleting && ambiguous <= Operation.DestroyLease &&
    live <= (Live.Lease | Live.Endpoint | Live.Session);
  if (!known || (node.attempt == 0) != vacant) return contradiction();

  const group = node.groupOrNull;
  const pauses: i32 = group !== null ? group.pauses : 0;
  const desired = node.desiredTemplate != NO_INDEX, drifted = desired && node.desiredTemplate != node.template;
  const lease = (live & Live.Lease) != 0, endpoint = (live & Live.Endpoint) != 0, session = (live & Live.Session) != 0;
  // A create or a bootstrap that may have happened has to be adopted before anything is destroyed.
  const createInDoubt = ambiguous == Operation.CreateLease, bootstrapInDoubt = ambiguous == Operation.StartBootstrap;
  const sure = !createInDoubt && !bootstrapInDoubt;

  if (vacant) {
    const empty = active && idle && sure && !lease && !endpoint && !session;
    if (!desired || !empty) return contradiction();
    return pauses & Pauses.Making ? hold(21, Ends.Person) : act(0, Verb.Insert);
  }
  if (stage == Stage.Destroyed) {
    if (!idle || !sure || lease || session) return contradiction();
    if (!desired) return act(1, Verb.Reap);
    if (node.restartAt > now) return hold(3, Ends.Instant, node.restartAt);
    if (pauses & Pauses.Making) return hold(21, Ends.Person);
    // While the circuit is open, one at a time is tried.
    if (group !== null && !drifted && circuitIsOpen(group) && !(node.turn == 0 && group.trying == 0)) {
      return hold(20, Ends.Circuit);
    }
    return act(2, Verb.Restart);
  }

  // What drifted is kept while the rollout is paused: it goes on with the template it has.
  const kept = drifted && (pauses & Pauses.Rollout) != 0, ready = stage == Stage.Dormant || stage == Stage.HandedOff;
  if (active && drifted && ready && group !== null) {
    if (kept) return hold(18, Ends.Person);
    if (circuitIsOpen(group)) return hold(20, Ends.Circuit);
    if (!hasPlace(node, group)) return hold(19, Ends.Budget);
  }
  if (active && stage == Stage.Failed) return act(4, Verb.BeginDelete);
  if (active && (!desired || (drifted && !kept))) {
    return pauses & Pauses.Ending ? hold(22, Ends.Person) : act(4, Verb.BeginDelete);
  }
  if (!idle) return hold(5, Ends.Result, node.pendingDeadline);
  const due = node.nextEffectAt <= now;

  if (!active) {
    if (sure && !lease && !session) return act(9, Verb.MarkDestroyed);
    if (!due) return hold(10, Ends.Instant, node.nextEffectAt);
    if (createInDoubt) return act(6, Verb.CreateLease);
    if (bootstrapInDoubt) return lease && endpoint ? act(6, Verb.StartBootstrap) : contradiction();
    return session ? act(7, Verb.CancelBootstrap) : act(8, Verb.DestroyLease);
  }

  if (!due) return hold(10, Ends.Instant, node.nextEffectAt);
  if (node.probeAt > now) return hold(10, Ends.Instant, node.probeAt);

  switch (stage) {
    case Stage.Dormant:
    case Stage.HandedOff:
      return sure && lease ? hold(11, Ends.Steady) : contradiction();
    case Stage.New:
    case Stage.LeaseRequested:
      if (bootstrapInDoubt || lease || endpoint || session) return contradiction();
      return sure && (pauses & Pauses.Making) != 0 ? hold(21, Ends.Person) : act(12, Verb.CreateLease);
    case Stage.Joined:
      return sure && lease && session ? act(14, Verb.ConvergenceObserved) : contradiction();
    case Stage.BootstrapRunning:
      return sure && lease && session ? hold(15, Ends.Observation, node.stageDeadline) : contradiction();
    case Stage.LeaseCreated:
      if (sure && lease && !endpoint && !session) return act(13, Verb.LookupEndpoint);
    // falls through: with an endpoint it is as good as known
    case Stage.EndpointKnown:
      return !createInDoubt && lease && endpoint && !session ? act(16, Verb.StartBootstrap) : contradiction();
    default:
      return contradiction();
  }
}

export { cabi_realloc } from "./homeostat";
export function describe(): usize { return description("ladder-assemblyscript", "0.1.0", RULES); }
export function reconcile(snapshot: usize): usize { return plan(snapshot, decide); }
