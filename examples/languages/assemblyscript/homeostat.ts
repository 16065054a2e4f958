// The contract in the hand of an AssemblyScript author: one node at a time, with names instead of codes. `wit/decider.wit` says
// what they mean. The compiler knows no components: this file reads and writes the canonical ABI itself. Nothing here decides.

export const CONTRACT = "1.1.0";
export const NO_INDEX: u32 = u32.MAX_VALUE;

export const enum Stage { Vacant, New, LeaseRequested, LeaseCreated, EndpointKnown, BootstrapRunning, Joined, HandedOff, Dormant, Failed, Destroyed }
export const enum Intent { Active, Deleting }
export const enum Operation { None, CreateLease, LookupEndpoint, StartBootstrap, CancelBootstrap, DestroyLease }
export const enum Live { Lease = 1, Endpoint = 2, Session = 4 }
export const enum Pauses { Making = 1, Ending = 2, Rollout = 4 }
export const enum Verb {
  Hold, Insert, Reap, Restart, BeginDelete, MarkDestroyed, ConvergenceObserved, CreateLease, LookupEndpoint, StartBootstrap,
  CancelBootstrap, DestroyLease,
}
export const enum Ends { NotAHold, Instant, Result, Observation, Steady, Person, Budget, Circuit }

/** The snapshot as it lies in memory: a list is its address and its length. */
@unmanaged
export class Snapshot {
  nowMs: u64;
  run: usize; runLength: usize;
  generation: u64;
  backoffInitialMs: u64; backoffCapMs: u64; probeIntervalMs: u64;
  groups: usize; groupsLength: usize;
  templates: usize; templatesLength: usize;
  node: usize; nodeLength: usize;
  attempt: usize; attemptLength: usize;
  group: usize; groupLength: usize;
  slot: usize; slotLength: usize;
  stage: usize; stageLength: usize;
  intent: usize; intentLength: usize;
  template: usize; templateLength: usize;
  desiredTemplate: usize; desiredTemplateLength: usize;
  live: usize; liveLength: usize;
  progress: usize; progressLength: usize;
  pending: usize; pendingLength: usize;
  pendingDeadline: usize; pendingDeadlineLength: usize;
  ambiguous: usize; ambiguousLength: usize;
  failures: usize; failuresLength: usize;
  nextEffectAt: usize; nextEffectAtLength: usize;
  probeAt: usize; probeAtLength: usize;
  restartAt: usize; restartAtLength: usize;
  stageDeadline: usize; stageDeadlineLength: usize;
  turn: usize; turnLength: usize;
  marks: usize; marksLength: usize;
}

/** A group of the desired shape, as it lies in memory. What may be missing has a flag before it. */
@unmanaged
export class Group {
  name: usize; nameLength: usize;
  count: u32; nodes: u32; ready: u32; failed: u32; deleting: u32; pending: u32;
  hasMaxUnavailable: u8; maxUnavailable: u32;
  maxSurge: u32; available: u32; failing: u32; trying: u32;
  hasMaxFailing: u8; maxFailing: u32;
  pauses: u8;
  parameters: usize; parametersLength: usize;
}

/** One row of the snapshot's table. The same object is moved from row to row: do not keep it. */
export class Node {
  at: usize = 0;
  constructor(public snapshot: Snapshot) {}

  get node(): u32 { return load<u32>(this.snapshot.node + this.at * 4); }
  get attempt(): u64 { return load<u64>(this.snapshot.attempt + this.at * 8); }
  get group(): u32 { return load<u32>(this.snapshot.group + this.at * 4); }
  /** Its group; null when it is gone from the shape. */
  get groupOrNull(): Group | null {
    const index = this.group;
    if (<usize>index >= this.snapshot.groupsLength) return null;
    return changetype<Group>(this.snapshot.groups + index * offsetof<Group>());
  }
  get slot(): u32 { return load<u32>(this.snapshot.slot + this.at * 4); }
  get stage(): i32 { return load<u8>(this.snapshot.stage + this.at); }
  get intent(): i32 { return load<u8>(this.snapshot.intent + this.at); }
  get template(): u32 { return load<u32>(this.snapshot.template + this.at * 4); }
  get desiredTemplate(): u32 { return load<u32>(this.snapshot.desiredTemplate + this.at * 4); }
  get live(): i32 { return load<u8>(this.snapshot.live + this.at); }
  get progress(): i32 { return load<u8>(this.snapshot.progress + this.at); }
  get pending(): i32 { return load<u8>(this.snapshot.pending + this.at); }
  get pendingDeadline(): u64 { return load<u64>(this.snapshot.pendingDeadline + this.at * 8); }
  get ambiguous(): i32 { return load<u8>(this.snapshot.ambiguous + this.at); }
  get failures(): u32 { return load<u32>(this.snapshot.failures + this.at * 4); }
  get nextEffectAt(): u64 { return load<u64>(this.snapshot.nextEffectAt + this.at * 8); }
  get probeAt(): u64 { return load<u64>(this.snapshot.probeAt + this.at * 8); }
  get restartAt(): u64 { return load<u64>(this.snapshot.restartAt + this.at * 8); }
  get stageDeadline(): u64 { return load<u64>(this.snapshot.stageDeadline + this.at * 8); }
  get turn(): u32 { return load<u32>(this.snapshot.turn + this.at * 4); }
  get marks(): i32 { return load<u8>(this.snapshot.marks + this.at); }
}

/** What is decided for a node, and the number of the rule that it follows from. */
export class Decision {
  rule: u8; verb: u8; ends: u8; until: u64;
}

// One object for all: what is decided is written down before the next node is asked about.
const decision = new Decision();

/** Do this. */
export function act(rule: u8, verb: Verb): Decision {
  decision.rule = rule;
  decision.verb = <u8>verb;
  decision.ends = <u8>Ends.NotAHold;
  decision.until = 0;
  return decision;
}

/** Wait for what `ends` names, at the latest until the instant. */
export function hold(rule: u8, ends: Ends, until: u64 = 0): Decision {
  decision.rule = rule;
  decision.verb = <u8>Verb.Hold;
  decision.ends = <u8>ends;
  decision.until = until;
  return decision;
}

/** The answer to `describe`. Each rule is an id and a sentence. */
export function description(name: string, version: string, rules: StaticArray<StaticArray<string>>): usize {
  const out = heap.alloc(32);
  text(out, name);
  text(out + 8, version);
  text(out + 16, CONTRACT);
  const list = heap.alloc(rules.length * 16);
  for (let at = 0; at < rules.length; at++) {
    text(list + at * 16, rules[at][0]);
    text(list + at * 16 + 8, rules[at][1]);
  }
  store<usize>(out + 24, list);
  store<usize>(out + 28, rules.length);
  return out;
}

/** The answer to `reconcile`: `decide` for every node. */
export function plan(address: usize, decide: (node: Node, now: u64) => Decision): usize {
  const snapshot = changetype<Snapshot>(address);
  const node = new Node(snapshot);
  const rows = snapshot.nodeLength;
  const rule = heap.alloc(rows), verb = heap.alloc(rows), ends = heap.alloc(rows), until = heap.alloc(rows * 8);
  let wakeAtMs: u64 = 0;
  for (let at: usize = 0; at < rows; at++) {
    node.at = at;
    const decided = decide(node, snapshot.nowMs);
    store<u8>(rule + at, decided.rule);
    store<u8>(verb + at, decided.verb);
    store<u8>(ends + at, decided.ends);
    store<u64>(until + at * 8, decided.until);
    if (decided.until != 0 && (wakeAtMs == 0 || decided.until < wakeAtMs)) wakeAtMs = decided.until;
  }
  const out = heap.alloc(56);
  store<u64>(out, wakeAtMs);
  column(out + 8, snapshot.node, rows);
  column(out + 16, snapshot.attempt, rows);
  column(out + 24, rule, rows);
  column(out + 32, verb, rows);
  column(out + 40, ends, rows);
  column(out + 48, until, rows);
  return out;
}

function column(out: usize, address: usize, length: usize): void {
  store<usize>(out, address);
  store<usize>(out + 4, length);
}

function text(out: usize, value: string): void {
  const bytes = String.UTF8.encode(value);
  column(out, changetype<usize>(bytes), bytes.byteLength);
}

/** How the host asks for room for what it hands over. Nothing is freed: an instance lives for one call. */
export function cabi_realloc(old: usize, oldSize: usize, align: usize, size: usize): usize {
  const block = heap.alloc(size);
  if (old != 0) memory.copy(block, old, min(oldSize, size));
  return block;
}
