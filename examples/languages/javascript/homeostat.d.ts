// The contract (`wit/decider.wit`, 1.1) in types, and what `homeostat.js` makes of it.

/** An instant in milliseconds of the host's clock; 0n is "none". */
export type Instant = bigint;

export type Stage =
  | 'vacant' | 'new' | 'lease-requested' | 'lease-created' | 'endpoint-known' | 'bootstrap-running' | 'joined' | 'handed-off'
  | 'dormant' | 'failed' | 'destroyed' | 'unknown';
export type Intent = 'active' | 'deleting' | 'unknown';
export type Operation =
  | 'none' | 'create-lease' | 'lookup-endpoint' | 'start-bootstrap' | 'cancel-bootstrap' | 'destroy-lease' | 'unknown';
export type Progress =
  | 'none' | 'connect' | 'boot-check' | 'start' | 'join' | 'converged' | 'connect-failed' | 'boot-check-failed'
  | 'start-failed' | 'join-failed' | 'convergence-failed' | 'unknown';
export type Verb =
  | 'insert' | 'reap' | 'restart' | 'begin-delete' | 'mark-destroyed' | 'convergence-observed' | 'create-lease'
  | 'lookup-endpoint' | 'start-bootstrap' | 'cancel-bootstrap' | 'destroy-lease';
export type Ends = 'instant' | 'result' | 'observation' | 'steady' | 'person' | 'budget' | 'circuit';

/** A group of the desired shape, with its totals over the whole fleet. */
export interface Group {
  readonly name: string;
  readonly count: number;
  readonly nodes: number;
  readonly ready: number;
  readonly failed: number;
  readonly deleting: number;
  readonly pending: number;
  readonly maxUnavailable?: number;
  readonly maxSurge: number;
  readonly available: number;
  readonly failing: number;
  readonly trying: number;
  readonly maxFailing?: number;
  /** What is held back, as bits; the next three are what they say. */
  readonly pauses: number;
  readonly makingHeld: boolean;
  readonly endingHeld: boolean;
  readonly rolloutPaused: boolean;
  /** What the operator sets for policies, sorted by key. */
  readonly parameters: ReadonlyArray<readonly [string, string]>;
}

export interface Template {
  readonly provider: string;
  readonly role: string;
  readonly labels: ReadonlyArray<readonly [string, string]>;
}

/** One slot, and the node that holds it. Words that the contract does not list are `unknown`: never act destructively on one. */
export interface Node {
  readonly id: number;
  /** 0n when the slot is vacant. */
  readonly attempt: bigint;
  readonly group: Group | null;
  readonly slot: number;
  readonly stage: Stage;
  readonly intent: Intent;
  readonly template: Template | null;
  readonly desiredTemplate: Template | null;
  readonly desired: boolean;
  readonly drifted: boolean;
  readonly lease: boolean;
  readonly endpoint: boolean;
  readonly session: boolean;
  /** Whether the three above are all that is said of what the provider holds. */
  readonly liveIsKnown: boolean;
  readonly progress: Progress;
  readonly pending: Operation;
  readonly pendingDeadline: Instant;
  readonly ambiguous: Operation;
  readonly failures: number;
  readonly nextEffectAt: Instant;
  readonly probeAt: Instant;
  readonly restartAt: Instant;
  readonly stageDeadline: Instant;
  /** Its place among the nodes of its group that wait for the same. */
  readonly turn: number | null;
  readonly surge: boolean;
}

/** The snapshot as it is handed over; its columns are left to `homeostat.js`. */
export interface Snapshot {
  readonly nowMs: Instant;
  readonly run: string;
  readonly generation: bigint;
  readonly settings: {
    readonly backoffInitialMs: bigint;
    readonly backoffCapMs: bigint;
    readonly probeIntervalMs: bigint;
  };
  readonly groups: ReadonlyArray<Group>;
  readonly templates: ReadonlyArray<Template>;
}

/** Made by `act` and `hold`. */
export interface Decision {
  readonly rule: string;
  readonly verb: number;
  readonly hold: number;
  readonly until: Instant;
}

export interface Policy<Rule extends string> {
  name: string;
  version: string;
  contract?: string;
  /** Ids and sentences; at most 255. */
  rules: Record<Rule, string>;
  /** The decision for one node. It may not depend on which other nodes there are, nor on anything outside of its arguments. */
  decide(node: Node, now: Instant, snapshot: Snapshot): Decision;
}

/** What the component has to export, as `policy`. */
export interface Exports {
  describe(): { name: string; version: string; contract: string; rules: { id: string; sentence: string }[] };
  reconcile(snapshot: Snapshot): unknown;
}

export function act(rule: string, verb: Verb): Decision;
export function hold(rule: string, kind: Ends, until?: Instant): Decision;
export function decider<Rule extends string>(policy: Policy<Rule>): Exports;
