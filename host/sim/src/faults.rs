//! The fault menu: every fault has a name, a rate, and a place where it can happen. A run uses a random subset at random
//! intensities (a swarm), and one of them strongly in any case, so that each is forced once in as many seeds as there are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::choices::Choices;

/// Where a fault can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A call of the provider.
    Call,
    /// A new resource.
    Birth,
    /// A bootstrap session.
    Session,
    /// A listing.
    Listing,
    /// A plan.
    Plan,
    /// By itself, at any instant.
    Incident,
}

macro_rules! faults {
    ($($(#[$meta:meta])* $fault:ident = $label:literal, $place:ident, $rate:literal;)+) => {
        /// A fault that can be injected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum FaultKind { $($(#[$meta])* $fault,)+ }

        impl FaultKind {
            /// Every fault, in the order of the menu.
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$fault),+];

            /// Its name, in files and tables.
            pub const fn label(self) -> &'static str { match self { $(FaultKind::$fault => $label,)+ } }

            /// Where it can happen.
            pub const fn place(self) -> Place { match self { $(FaultKind::$fault => Place::$place,)+ } }

            /// Its rate in a thousand opportunities, unless a file says otherwise.
            pub const fn default_rate(self) -> u32 { match self { $(FaultKind::$fault => $rate,)+ } }
        }
    };
}

faults! {
    /// The provider did it; the result never arrives.
    ResultDropped = "result-dropped", Call, 12;
    /// The result arrives twice.
    ResultDuplicated = "result-duplicated", Call, 20;
    /// The result is slow enough for others to overtake it.
    ResultReordered = "result-reordered", Call, 30;
    /// The result arrives after its deadline.
    ResultLate = "result-late", Call, 12;
    /// A time-out; the provider did it.
    TimeoutCommitted = "timeout-committed", Call, 20;
    /// A time-out; the provider will do it later.
    TimeoutCommitsLater = "timeout-commits-later", Call, 20;
    /// A time-out; the provider never does it.
    TimeoutNever = "timeout-never-commits", Call, 20;
    /// A server error; nothing happened.
    ServerError = "server-error", Call, 25;
    /// 429 without Retry-After.
    RateLimited = "rate-limited", Call, 15;
    /// 429 with Retry-After.
    RetryAfter = "retry-after", Call, 15;
    /// A 200 that carries an error body: nothing is known about the effect.
    ErrorInOk = "error-in-ok", Call, 12;
    /// A refusal for good.
    Refused = "refused", Call, 10;
    /// A slow call, within its deadline.
    SlowCall = "slow-call", Call, 20;
    /// A call that never answers and never does anything.
    Hang = "hang", Call, 10;
    /// A destroy that fails twenty times.
    DestroyFailsTwenty = "destroy-fails-twenty", Call, 6;
    /// A destroy that works and is listed all the same for a while.
    DestroyLingers = "destroy-still-listed", Call, 25;
    /// A new resource that nothing shows for a while.
    Invisible = "read-after-create", Birth, 100;
    /// A new resource that gets its endpoint late, or never.
    EndpointLate = "endpoint-late", Birth, 60;
    /// An endpoint that changes.
    EndpointMoves = "endpoint-changes", Birth, 50;
    /// A bootstrap that falls silent.
    BootStalls = "bootstrap-stalls", Session, 40;
    /// A bootstrap that ends early.
    BootEndsEarly = "bootstrap-ends-early", Session, 50;
    /// A bootstrap that fails.
    BootFails = "bootstrap-fails", Session, 50;
    /// A bootstrap that reports after it was cancelled.
    BootReportsLate = "bootstrap-reports-late", Session, 50;
    /// A bootstrap that reports progress and joins after its deadline.
    JoinSlow = "join-slow", Session, 40;
    /// A listing from a while ago.
    ListStale = "listing-stale", Listing, 60;
    /// A listing that lacks something and says so.
    ListPartial = "listing-partial", Listing, 60;
    /// A listing that is empty and claims to be complete.
    ListEmpty = "listing-empty", Listing, 60;
    /// A listing that fails.
    ListFails = "listing-fails", Listing, 60;
    /// The decider traps for one node's input.
    DeciderTrap = "decider-trap", Plan, 4;
    /// The decider runs out of fuel, for every input.
    DeciderFuel = "decider-out-of-fuel", Plan, 4;
    /// The decider's plan is not valid.
    DeciderInvalid = "decider-invalid-plan", Plan, 4;
    /// The decider is slow: things happen during the pass.
    DeciderSlow = "decider-slow", Plan, 30;
    /// Another decider comes into force while a pass runs.
    DeciderSwap = "decider-swap", Plan, 5;
    /// A resource vanishes; nothing says so.
    Vanishes = "resource-vanishes", Incident, 30;
    /// A resource dies, with an exit status.
    Dies = "resource-dies", Incident, 60;
    /// A resource of another run appears, and one that bears no label.
    ForeignAppears = "foreign-appears", Incident, 30;
    /// A resource appears that bears our run and an attempt that nobody authorised.
    OrphanAppears = "orphan-appears", Incident, 30;
    /// The host is killed and started again; what was not synced is lost.
    Crash = "crash", Incident, 60;
    /// The host is killed and its state is lost, but for the fence of attempt ids.
    StateLost = "crash-state-lost", Incident, 15;
    /// The clock jumps a day ahead.
    ClockAhead = "clock-ahead", Incident, 15;
    /// The clock jumps an hour back.
    ClockBack = "clock-back", Incident, 15;
    /// The clock stands still.
    ClockStops = "clock-stops", Incident, 15;
    /// A count goes up.
    CountUp = "count-up", Incident, 80;
    /// A count goes down.
    CountDown = "count-down", Incident, 80;
    /// How a group is rolled out changes; often with its template.
    RolloutChanges = "rollout-changes", Incident, 60;
    /// A template changes.
    TemplateChanges = "template-changes", Incident, 60;
    /// A group is removed, or comes back.
    GroupRemoved = "group-removed", Incident, 50;
    /// A generation is skipped.
    GenerationSkipped = "generation-skipped", Incident, 40;
    /// A shape that must be refused.
    InvalidShape = "invalid-shape", Incident, 50;
    /// A shape at its limit, and one over it.
    AtLimit = "at-limit", Incident, 10;
    /// The operator's settings change.
    PolicyChanges = "policy-changes", Incident, 15;
    /// An operator scales a group, adds a node, or applies a shape.
    OrderScale = "order-scale", Incident, 30;
    /// An operator kills nodes.
    OrderKill = "order-kill", Incident, 40;
    /// An operator destroys nodes, or a group.
    OrderDestroy = "order-destroy", Incident, 20;
    /// An operator pauses.
    OrderPause = "order-pause", Incident, 20;
    /// An operator resumes.
    OrderResume = "order-resume", Incident, 60;
    /// An operator adopts an orphan, or has it destroyed.
    OrderOrphan = "order-orphan", Incident, 120;
    /// An order that must be refused.
    OrderRefused = "order-refused", Incident, 20;
    /// The guards are set, or lifted.
    GuardsChange = "guards-change", Incident, 15;
}

/// How many faults there are.
pub const FAULTS: usize = FaultKind::ALL.len();

/// The rate of each fault, in a thousand opportunities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, i64>", into = "BTreeMap<String, u32>")]
pub struct Rates([u32; FAULTS]);

/// Why rates are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RatesError {
    /// No such fault.
    #[error("there is no fault {name:?}; they are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// A rate is in a thousand.
    #[error("{name}: {rate} is no rate: from 0 to 1000 in a thousand opportunities")]
    NoRate {
        /// The fault.
        name: String,
        /// Its rate.
        rate: i64,
    },
}

impl Default for Rates {
    fn default() -> Self {
        let mut rates = [0; FAULTS];
        for fault in FaultKind::ALL {
            rates[*fault as usize] = fault.default_rate();
        }
        Rates(rates)
    }
}

impl Rates {
    /// No fault at all: nothing is injected, and nobody edits the shape.
    pub fn none() -> Self {
        Rates([0; FAULTS])
    }

    /// The rate of one fault, in a thousand.
    pub fn of(&self, fault: FaultKind) -> u32 {
        self.0[fault as usize]
    }

    /// The same with another rate for one fault.
    #[must_use]
    pub fn with(mut self, fault: FaultKind, rate: u32) -> Self {
        self.0[fault as usize] = rate.min(1_000);
        self
    }
}

impl TryFrom<BTreeMap<String, i64>> for Rates {
    type Error = RatesError;

    /// Faults that are not named keep their rate; 0 switches one off.
    fn try_from(named: BTreeMap<String, i64>) -> Result<Self, RatesError> {
        let mut rates = Rates::default();
        for (name, rate) in named {
            let Some(fault) = FaultKind::ALL.iter().find(|fault| fault.label() == name) else {
                let known: Vec<&str> = FaultKind::ALL.iter().map(|fault| fault.label()).collect();
                return Err(RatesError::Unknown { name, known: known.join(", ") });
            };
            let within = u32::try_from(rate).ok().filter(|rate| *rate <= 1_000);
            let Some(within) = within else { return Err(RatesError::NoRate { name, rate }) };
            rates.0[*fault as usize] = within;
        }
        Ok(rates)
    }
}

impl From<Rates> for BTreeMap<String, u32> {
    fn from(rates: Rates) -> Self {
        FaultKind::ALL.iter().map(|fault| (fault.label().to_string(), rates.of(*fault))).collect()
    }
}

/// The faults of one place, with the weights of one run; the first weight is that of "nothing".
#[derive(Clone, Debug)]
struct Menu {
    faults: Vec<FaultKind>,
    weights: Vec<u32>,
}

/// The faults of one run.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// One a place, in the order of [`Place`].
    menus: Vec<Menu>,
    rates: [u32; FAULTS],
}

impl Swarm {
    /// Draws which faults take part, and how often each.
    pub fn draw(choices: &mut Choices, rates: &Rates, forced: Option<FaultKind>) -> Self {
        let mut drawn = [0; FAULTS];
        for fault in FaultKind::ALL {
            let strength = match forced == Some(*fault) {
                true => choices.given(3),
                false => choices.below(3),
            };
            let rate = rates.of(*fault);
            drawn[*fault as usize] = match strength {
                0 => 0,
                1 => rate,
                2 => rate.saturating_mul(3).min(1_000),
                _ => rate.saturating_mul(6).min(1_000).max(rate.min(1) * 150),
            };
        }
        let mut menus = Vec::new();
        for place in [Place::Call, Place::Birth, Place::Session, Place::Listing, Place::Plan, Place::Incident] {
            let faults: Vec<FaultKind> =
                FaultKind::ALL.iter().copied().filter(|fault| fault.place() == place).collect();
            let mut weights = vec![0];
            weights.extend(faults.iter().map(|fault| drawn[*fault as usize]));
            let sum: u32 = weights.iter().sum();
            // Incidents are drawn when one is due; elsewhere a rate is a share of the opportunities, half of them at most.
            weights[0] = if place == Place::Incident { 0 } else { 1_000u32.saturating_sub(sum).max(sum).max(1) };
            menus.push(Menu { faults, weights });
        }
        Swarm { menus, rates: drawn }
    }

    /// Whether any incident can happen.
    pub fn has_incidents(&self) -> bool {
        self.menus.get(Place::Incident as usize).is_some_and(|menu| menu.weights.iter().any(|weight| *weight > 0))
    }

    /// The fault at one opportunity; `None` when nothing goes wrong.
    pub fn strike(&self, choices: &mut Choices, place: Place) -> Option<FaultKind> {
        let menu = self.menus.get(place as usize)?;
        let hit = choices.weighted(&menu.weights);
        hit.checked_sub(1).and_then(|at| menu.faults.get(at)).copied()
    }

    /// The rate of one fault in this run, in a thousand.
    pub fn rate(&self, fault: FaultKind) -> u32 {
        self.rates[fault as usize]
    }
}
