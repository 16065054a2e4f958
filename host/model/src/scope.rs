//! The scope: what a search covers, and how long things take in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use engine::driver::DriverConfig;
use engine::io::{DeciderIdentity, Promise};
use engine::policy::{Guards, OperationDeadlines, Policy, StageDeadlines};
use engine::shape::{Boot, ClusterShape, GroupShape, Join, Probe, ShapeLimits, Template};

/// Time passes in steps of this length.
pub const UNIT_MS: u64 = 1_000;
/// How long a lost create of the windowed provider may still take effect, from when it was sent.
pub const WINDOW_MS: u64 = 3 * UNIT_MS;
/// The provider's name.
pub const PROVIDER: &str = "model";
/// The group's id.
pub const GROUP: &str = "node";
/// More nodes than this have more interleavings than anybody waits for.
pub const MAX_NODES: u32 = 4;

/// What the provider can promise (SPEC 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A create under a taken key returns the same resource.
    Keyed,
    /// No such key: a lost create may still materialise.
    Windowed,
}

impl Kind {
    /// Both.
    pub const ALL: [Kind; 2] = [Kind::Keyed, Kind::Windowed];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Keyed => "keyed",
            Kind::Windowed => "windowed",
        })
    }
}

/// A rule that is weakened on purpose, to see what it is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weaken {
    /// The engine is told that nothing can appear late: a windowed create in doubt is looked for once, and made anew when
    /// it is absent.
    WindowedSettle,
    /// Nobody lists the provider: what appears for a retired attempt is not found.
    Sweep,
}

/// What a search covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Slots.
    pub nodes: u32,
    /// Faults in one execution, at most.
    pub faults: u8,
    /// Crashes of the host in one execution, at most.
    pub crashes: u8,
    /// The template changes once, at any time.
    pub replacement: bool,
    /// The count goes down by one at any time, and up again at any later time.
    pub scaling: bool,
    /// What the provider promises.
    pub kind: Kind,
    /// The rule that is weakened.
    pub weaken: Option<Weaken>,
}

impl Default for Scope {
    fn default() -> Self {
        Scope { nodes: 2, faults: 1, crashes: 1, replacement: true, scaling: true, kind: Kind::Keyed, weaken: None }
    }
}

/// What people have done to the shape so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edits {
    /// The template has changed.
    pub template: bool,
    /// The count has gone down.
    pub down: bool,
    /// And up again.
    pub up: bool,
}

impl Edits {
    pub(crate) fn of(code: u8) -> Self {
        Edits { template: code & 1 != 0, down: code & 2 != 0, up: code & 4 != 0 }
    }

    pub(crate) fn code(self) -> u8 {
        u8::from(self.template) | u8::from(self.down) << 1 | u8::from(self.up) << 2
    }
}

impl Scope {
    /// The settings: no jitter, the longest delay after the first failure, every length of time a few units.
    pub fn policy(&self) -> Policy {
        Policy {
            backoff_initial_ms: UNIT_MS,
            backoff_cap_ms: UNIT_MS,
            backoff_jitter_percent: 0,
            probe_interval_ms: UNIT_MS,
            deadlines: OperationDeadlines {
                create_lease_ms: 2 * UNIT_MS,
                lookup_endpoint_ms: 2 * UNIT_MS,
                start_bootstrap_ms: 2 * UNIT_MS,
                cancel_bootstrap_ms: 2 * UNIT_MS,
                destroy_lease_ms: 2 * UNIT_MS,
            },
            stages: StageDeadlines {
                endpoint_ms: 3 * UNIT_MS,
                bootstrap_ms: 2 * UNIT_MS,
                join_ms: 2 * UNIT_MS,
                growth_cap: 1,
            },
            limits: ShapeLimits::default(),
            guards: Guards::default(),
        }
    }

    /// What the engine believes of the provider.
    pub fn promise(&self) -> Promise {
        match (self.kind, self.weaken) {
            (Kind::Keyed, _) => Promise::Keyed,
            (Kind::Windowed, Some(Weaken::WindowedSettle)) => Promise::Windowed { window_ms: 0, listings: 1 },
            (Kind::Windowed, _) => Promise::Windowed { window_ms: WINDOW_MS, listings: 2 },
        }
    }

    /// How the driver is made.
    pub fn config(&self, decider: DeciderIdentity) -> DriverConfig {
        DriverConfig {
            run: "run".into(),
            policy: self.policy(),
            providers: BTreeMap::from([(PROVIDER.to_string(), self.promise())]),
            decider,
            next_attempt: 1,
            epoch: 0,
        }
    }

    /// The shape after some edits.
    pub fn shape(&self, edits: Edits) -> ClusterShape {
        let generation = 1 + u64::from(edits.template) + u64::from(edits.down) + u64::from(edits.up);
        let count = self.nodes - u32::from(edits.down && !edits.up);
        let template = Arc::new(Template {
            provider: PROVIDER.into(),
            settings: BTreeMap::new(),
            image: Some(if edits.template { "v2" } else { "v1" }.into()),
            role: String::new(),
            boot: Boot { command: vec!["run".into()], env: BTreeMap::new(), files: BTreeMap::new() },
            join: Join { probe: Probe::Tcp("{endpoint}".into()), interval_ms: UNIT_MS, timeout_ms: UNIT_MS },
            labels: BTreeMap::new(),
        });
        ClusterShape { run: "run".into(), generation, groups: vec![GroupShape::new(GROUP, count, template)] }
    }
}
