//! A node as a few small closed enums. All comparison with time lives here.
//!
//! Each value of each fact is one bit of a [`Facts`], so that a row of the ladder is one mask.

use crate::{Group, Intent, NO_INDEX, NodeRow, OperationKind, Snapshot, Stage, live, pauses};

macro_rules! facts {
    (@offset) => { 0 };
    ($($(#[$meta:meta])* $fact:ident { $($(#[$vmeta:meta])* $value:ident = $label:literal,)+ })+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[repr(u8)]
            pub enum $fact { $($(#[$vmeta])* $value,)+ }

            impl $fact {
                /// Every value.
                pub const ALL: &'static [$fact] = &[$($fact::$value),+];

                /// The word in the table.
                pub const fn label(self) -> &'static str { match self { $($fact::$value => $label,)+ } }

                /// The value's bit.
                #[inline]
                pub const fn bit(self) -> u64 { 1 << (Column::$fact.offset() + self as u32) }
            }
        )+

        /// The facts, in the order of the table's columns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Column { $(#[doc = "See the enum of the same name."] $fact,)+ }

        impl Column {
            /// Every column, in order.
            pub const ALL: &'static [Column] = &[$(Column::$fact),+];
            const WIDTHS: &'static [u32] = &[$($fact::ALL.len() as u32),+];

            const fn offset(self) -> u32 {
                let (mut column, mut offset) = (0, 0);
                while column < self as usize {
                    offset += Self::WIDTHS[column];
                    column += 1;
                }
                offset
            }

            /// The bits of all its values.
            pub const fn mask(self) -> u64 { ((1 << Self::WIDTHS[self as usize]) - 1) << self.offset() }

            /// The column's heading.
            pub const fn label(self) -> &'static str { match self { $(Column::$fact => stringify!($fact),)+ } }

            /// The words and bits of its values.
            pub fn values(self) -> alloc::vec::Vec<(&'static str, u64)> {
                match self { $(Column::$fact => $fact::ALL.iter().map(|value| (value.label(), value.bit())).collect(),)+ }
            }
        }
    };
}

facts! {
    /// Is the slot desired, and with the template the attempt has?
    Wanted {
        /// The slot is not desired.
        No = "no",
        /// Desired, with exactly this template; or vacant and desired.
        Same = "same",
        /// Desired, with another template.
        Drifted = "drifted",
        /// Desired, with another template, and kept as it is while the group's rollout is paused.
        Kept = "kept",
    }
    /// The stage, as far as the ladder distinguishes it.
    Standing {
        /// No node.
        Vacant = "vacant",
        /// `new` or `lease-requested`.
        New = "new",
        /// `lease-created`.
        Leased = "leased",
        /// `endpoint-known`.
        Addressed = "addressed",
        /// `bootstrap-running`.
        Booting = "booting",
        /// `joined`.
        Joined = "joined",
        /// `handed-off` or `dormant`.
        Ready = "ready",
        /// `failed`.
        Failed = "failed",
        /// `destroyed`.
        Destroyed = "destroyed",
        /// A code the contract does not list, or an attempt without a stage, or the reverse.
        Unknown = "?",
    }
    /// The intent.
    Aim {
        /// Keep it.
        Active = "active",
        /// Clean it up.
        Deleting = "deleting",
        /// A code the contract does not list.
        Unknown = "?",
    }
    /// Is an operation in flight?
    Flight {
        /// None.
        Idle = "idle",
        /// One, of whatever kind.
        Pending = "pending",
    }
    /// Which operation's outcome has to be settled?
    Doubt {
        /// None.
        Clear = "clear",
        /// A create.
        Create = "create",
        /// A bootstrap.
        Bootstrap = "boot",
        /// One that can simply be repeated: its facts are all kept.
        Other = "other",
        /// A code the contract does not list.
        Unknown = "?",
    }
    /// Is the lease live?
    Lease {
        /// No.
        None = "none",
        /// Yes.
        Live = "live",
        /// The bits say something the contract does not list.
        Unknown = "?",
    }
    /// Is the endpoint known?
    Address {
        /// No.
        None = "none",
        /// Yes.
        Known = "known",
    }
    /// Is the bootstrap session live?
    Session {
        /// No.
        None = "none",
        /// Yes.
        Live = "live",
    }
    /// Is `restart-at` due?
    Restart {
        /// Yes, or there is none.
        Due = "due",
        /// Not yet.
        Waits = "waits",
    }
    /// Is `next-effect-at` due?
    Effect {
        /// Yes, or there is none.
        Due = "due",
        /// Not yet.
        Waits = "waits",
    }
    /// Is `probe-at` due?
    Look {
        /// Yes, or there is none.
        Due = "due",
        /// Not yet.
        Waits = "waits",
    }
    /// Does the group's rollout leave room to replace it, or to try it again?
    Room {
        /// Yes, or nothing is limited.
        Free = "free",
        /// Drifted and ready, and as many of the group are unavailable as may be.
        Full = "full",
        /// Too many of the group fail: drifted and ready; or destroyed and undrifted, and not the one whose turn it is.
        Open = "open",
    }
    /// Does somebody hold back what would be made in the group?
    Making {
        /// No.
        Free = "free",
        /// Yes.
        Held = "held",
    }
    /// Does somebody hold back what would be ended in the group?
    Ending {
        /// No.
        Free = "free",
        /// Yes.
        Held = "held",
    }
}

/// The facts of one node: exactly one bit set in each column's mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts(pub u64);

impl Facts {
    /// The facts of a row of a snapshot at an instant, with the group that it belongs to; `None` when its group is gone.
    #[inline]
    pub fn of(row: &NodeRow, group: Option<&Group>, now_ms: u64) -> Facts {
        let waits = |at: u64| u64::from(at > now_ms);
        let wanted = wanted(row);
        let paused = group.map_or(0, |group| group.pauses);
        // Most groups limit nothing, and most nodes are as they should be.
        let (wanted, room) = match (group, wanted) {
            (None, _) | (_, Wanted::No) => (wanted, Room::Free),
            (Some(group), _) => match limited(row, wanted, group) {
                true => {
                    (if paused & pauses::ROLLOUT != 0 { kept(row, wanted) } else { wanted }, room(row, wanted, group))
                }
                false => (wanted, Room::Free),
            },
        };
        Facts(
            wanted.bit()
                | standing(row).bit()
                | aim(row.intent).bit()
                | Flight::Idle.bit() << u64::from(row.pending != 0)
                | doubt(row.ambiguous).bit()
                | lease(row.live).bit()
                | Address::None.bit() << u64::from(row.live & live::ENDPOINT != 0)
                | Session::None.bit() << u64::from(row.live & live::SESSION != 0)
                | Restart::Due.bit() << waits(row.restart_at)
                | Effect::Due.bit() << waits(row.next_effect_at)
                | Look::Due.bit() << waits(row.probe_at)
                | room.bit()
                | Making::Free.bit() << u64::from(paused & pauses::CREATES != 0)
                | Ending::Free.bit() << u64::from(paused & pauses::DESTROYS != 0),
        )
    }

    /// The facts of a row of this snapshot.
    #[inline]
    pub fn in_snapshot(row: &NodeRow, snapshot: &Snapshot) -> Facts {
        Facts::of(row, snapshot.group_of(row), snapshot.now_ms)
    }

    /// The words of the facts, in the order of the columns.
    pub fn words(self) -> impl Iterator<Item = (Column, &'static str)> {
        Column::ALL.iter().flat_map(move |column| {
            let hit = column.values().into_iter().find(|(_, bit)| self.0 & bit != 0);
            hit.map(|(word, _)| (*column, word))
        })
    }
}

#[inline]
fn wanted(row: &NodeRow) -> Wanted {
    if row.desired_template == NO_INDEX {
        Wanted::No
    } else if row.desired_template == row.template || row.stage == Stage::Vacant.code() {
        Wanted::Same
    } else {
        Wanted::Drifted
    }
}

/// Whether anything of a rollout could concern it.
#[inline]
fn limited(row: &NodeRow, wanted: Wanted, group: &Group) -> bool {
    wanted == Wanted::Drifted || (row.stage == Stage::Destroyed.code() && group.max_failing.is_some())
}

/// What drifted is kept while the rollout is paused: it goes on with the template it has. Nothing is left to keep of what is
/// destroyed.
#[cold]
fn kept(row: &NodeRow, wanted: Wanted) -> Wanted {
    if wanted == Wanted::Drifted && row.stage != Stage::Destroyed.code() { Wanted::Kept } else { wanted }
}

/// The room that the group's limits leave for it.
#[cold]
fn room(row: &NodeRow, wanted: Wanted, group: &Group) -> Room {
    let open = group.max_failing.is_some_and(|most| group.failing > most);
    if row.stage == Stage::Destroyed.code() {
        // Half-open: one at a time is tried, so that the circuit closes when whatever it was is over.
        let tried = row.turn == 0 && group.trying == 0;
        return if wanted == Wanted::Same && open && !tried { Room::Open } else { Room::Free };
    }
    let ready = Stage::from_code(row.stage).is_some_and(Stage::is_ready);
    if wanted != Wanted::Drifted || !ready || row.intent != Intent::Active.code() {
        return Room::Free;
    }
    if open {
        return Room::Open;
    }
    let Some(most) = group.max_unavailable else { return Room::Free };
    let spare = group.available.saturating_sub(group.count.saturating_sub(most));
    if row.turn < spare { Room::Free } else { Room::Full }
}

#[inline]
fn standing(row: &NodeRow) -> Standing {
    // A node has an attempt, a vacant slot has none.
    if (row.attempt == 0) != (row.stage == Stage::Vacant.code()) {
        return Standing::Unknown;
    }
    match Stage::from_code(row.stage) {
        Some(Stage::Vacant) => Standing::Vacant,
        Some(Stage::New | Stage::LeaseRequested) => Standing::New,
        Some(Stage::LeaseCreated) => Standing::Leased,
        Some(Stage::EndpointKnown) => Standing::Addressed,
        Some(Stage::BootstrapRunning) => Standing::Booting,
        Some(Stage::Joined) => Standing::Joined,
        Some(Stage::HandedOff | Stage::Dormant) => Standing::Ready,
        Some(Stage::Failed) => Standing::Failed,
        Some(Stage::Destroyed) => Standing::Destroyed,
        None => Standing::Unknown,
    }
}

#[inline]
fn aim(code: u8) -> Aim {
    match Intent::from_code(code) {
        Some(Intent::Active) => Aim::Active,
        Some(Intent::Deleting) => Aim::Deleting,
        None => Aim::Unknown,
    }
}

#[inline]
fn doubt(code: u8) -> Doubt {
    if code == 0 {
        return Doubt::Clear;
    }
    match OperationKind::from_code(code) {
        Some(OperationKind::CreateLease) => Doubt::Create,
        Some(OperationKind::StartBootstrap) => Doubt::Bootstrap,
        Some(OperationKind::LookupEndpoint | OperationKind::CancelBootstrap | OperationKind::DestroyLease) => {
            Doubt::Other
        }
        None => Doubt::Unknown,
    }
}

#[inline]
fn lease(bits: u8) -> Lease {
    if bits & !(live::LEASE | live::ENDPOINT | live::SESSION) != 0 {
        Lease::Unknown
    } else if bits & live::LEASE != 0 {
        Lease::Live
    } else {
        Lease::None
    }
}
