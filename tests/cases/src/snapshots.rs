//! Generated snapshots: the same seed gives the same ones on every machine.

use decider::{Group, NO_INDEX, NodeRow, Nodes, Settings, Snapshot, Stage, Template};
use scenario::typical::{self, GROUPS, KINDS, TEMPLATES};

/// splitmix64: small, fast, and good enough to spread cases.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence of its own for every seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// True once in `times` times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the items, of which there is at least one.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

/// A snapshot that a pass could never see but a decider must bear: every stage, intent, pending and ambiguous operation,
/// drift, unknown codes, and instants at the ends of time and around now.
pub fn wild(random: &mut Random, rows: usize) -> Snapshot {
    let now_ms = match random.below(6) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::MAX - 1,
        _ => random.below(1 << 41),
    };
    let mut nodes = Nodes::with_capacity(rows);
    for node in 0..rows {
        nodes.push(wild_row(random, node as u32, now_ms));
    }
    let mut wild = snapshot(now_ms, random.number(), nodes);
    wild.groups.iter_mut().for_each(|group| limit(random, group));
    wild
}

/// Limits, totals and pauses that need not agree with anything.
fn limit(random: &mut Random, group: &mut Group) {
    let number = |random: &mut Random| if random.once_in(9) { u32::MAX } else { random.below(12) as u32 };
    let some = |random: &mut Random| if random.once_in(2) { None } else { Some(number(random)) };
    group.max_unavailable = some(random);
    group.max_failing = some(random);
    (group.max_surge, group.available) = (number(random), number(random));
    (group.failing, group.trying) = (number(random), random.below(3) as u32);
    group.pauses = if random.once_in(3) { random.number() as u8 } else { 0 };
    if random.once_in(4) {
        group.parameters.push(("key".into(), "value".into()));
    }
}

fn wild_row(random: &mut Random, node: u32, now_ms: u64) -> NodeRow {
    let code = |random: &mut Random, known: u64| -> u8 {
        if random.once_in(24) { random.one_of(&[255, 254, 128, 12, 11, 6]) } else { random.below(known) as u8 }
    };
    let template = |random: &mut Random| {
        if random.once_in(5) { NO_INDEX } else { random.below(u64::from(TEMPLATES)) as u32 }
    };
    let own = template(random);
    NodeRow {
        node: if random.once_in(50) { random.number() as u32 } else { node },
        attempt: if random.once_in(20) { random.number() } else { random.below(100) },
        group: if random.once_in(9) { NO_INDEX } else { random.below(u64::from(GROUPS)) as u32 },
        slot: random.below(10) as u32,
        stage: code(random, Stage::ALL.len() as u64),
        intent: code(random, 2),
        template: own,
        desired_template: if random.once_in(2) { own } else { template(random) },
        live: if random.once_in(24) { random.number() as u8 } else { random.below(8) as u8 },
        progress: code(random, 11),
        pending: if random.once_in(3) { code(random, 6) } else { 0 },
        pending_deadline: instant(random, now_ms),
        ambiguous: if random.once_in(3) { code(random, 6) } else { 0 },
        failures: if random.once_in(9) { u32::MAX } else { random.below(5) as u32 },
        next_effect_at: instant(random, now_ms),
        probe_at: instant(random, now_ms),
        restart_at: instant(random, now_ms),
        stage_deadline: instant(random, now_ms),
        turn: if random.once_in(3) { random.below(5) as u32 } else { NO_INDEX },
        marks: if random.once_in(24) { random.number() as u8 } else { 0 },
    }
}

fn instant(random: &mut Random, now_ms: u64) -> u64 {
    match random.below(8) {
        0..=2 => 0,
        3 => now_ms,
        4 => now_ms.saturating_sub(1),
        5 => now_ms.saturating_add(1),
        6 => u64::MAX,
        _ => random.below(1 << 41),
    }
}

/// A fleet as it looks in the middle of a roll-out: most nodes steady, some on their way up or down, few in trouble.
pub fn plausible(random: &mut Random, rows: usize) -> Snapshot {
    let now_ms = 1_700_000_000_000;
    let mut nodes = Nodes::with_capacity(rows);
    for node in 0..rows as u32 {
        let soon = now_ms + random.below(60_000);
        nodes.push(typical::row(node, random.below(u64::from(KINDS)) as u32, soon));
    }
    snapshot(now_ms, 7, nodes)
}

fn snapshot(now_ms: u64, generation: u64, nodes: Nodes) -> Snapshot {
    let group = |index: u32| Group {
        name: format!("group-{index}"),
        count: 10 * index,
        nodes: nodes.len() as u32,
        ready: index,
        failed: 1,
        deleting: 2,
        pending: 3,
        ..Group::default()
    };
    let template = |index: u32| Template {
        provider: "process".into(),
        role: if index == 0 { String::new() } else { format!("role-{index}") },
        labels: (0..index).map(|label| (format!("key-{label}"), format!("value-{index}"))).collect(),
    };
    Snapshot {
        now_ms,
        run: "generated".into(),
        generation,
        settings: Settings { backoff_initial_ms: 1_000, backoff_cap_ms: 60_000, probe_interval_ms: 1_000 },
        groups: (0..GROUPS).map(group).collect(),
        templates: (0..TEMPLATES).map(template).collect(),
        nodes,
    }
}
