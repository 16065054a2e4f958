//! Pauses (SPEC 10): what an operator, or a guard, holds back below the decider. What is held is decided as ever and not
//! carried out; what is already on its way is folded as ever.

use std::fmt;

use decider::{Intent, OperationKind, Snapshot, Stage, Verb};
use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::guard::Guard;
use crate::id::{Millis, NodeId};
use crate::io::{Notice, Promise};
use crate::mutation::Mutation;

/// Which effects a pause holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// Every effect; what merely records what has happened goes on.
    All,
    /// What makes something new.
    Create,
    /// What ends something: deletions, their clean-up, reaps, destroys of orphans.
    Destroy,
}

impl Only {
    /// Its name in commands.
    pub const fn label(self) -> &'static str {
        match self {
            Only::All => "all",
            Only::Create => "create",
            Only::Destroy => "destroy",
        }
    }

    /// Whether it holds such an effect.
    pub fn covers(self, effect: Effect) -> bool {
        match self {
            Only::All => true,
            Only::Create => effect == Effect::Create,
            Only::Destroy => matches!(effect, Effect::Destroy | Effect::CleanUp),
        }
    }
}

/// What a decision does to the world outside, as far as pauses tell effects apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It makes something new, or begins an attempt that will.
    Create,
    /// It begins to end something.
    Destroy,
    /// It serves a clean-up that has begun.
    CleanUp,
    /// It looks, or boots what is there.
    Other,
}

impl Effect {
    /// Its name.
    pub const fn label(self) -> &'static str {
        match self {
            Effect::Create => "create",
            Effect::Destroy | Effect::CleanUp => "destroy",
            Effect::Other => "operation",
        }
    }
}

/// Who paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A person.
    Operator,
    /// A guard that was breached.
    Guard {
        /// Which.
        guard: Guard,
        /// What it allows.
        limit: u32,
        /// What would have been.
        value: u32,
    },
    /// The host, when it started and found resources of its run that its state had never heard of. Ends by itself when no
    /// orphan is left.
    Start {
        /// How many.
        orphans: u32,
    },
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            By::Operator => f.write_str("an operator"),
            By::Guard { guard, limit, value } => write!(f, "the guard {} ({value} of {limit})", guard.label()),
            By::Start { orphans } => {
                let orphan = if *orphans == 1 { "orphan" } else { "orphans" };
                write!(f, "the start, which found {orphans} {orphan} that its state never heard of")
            }
        }
    }
}

/// Effects are held until a person resumes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The group; `None` for the whole run.
    pub scope: Option<String>,
    /// Which effects.
    pub only: Only,
    /// Since when.
    pub since_ms: Millis,
    /// Who paused.
    pub by: By,
}

impl Pause {
    /// Whether such a resumption ends it, or a part of it: that of everything in the whole run ends whatever is paused; any
    /// other, that effect in exactly that scope.
    pub fn ends_with(&self, group: Option<&str>, only: Only) -> bool {
        let everything = group.is_none() && only == Only::All;
        let effect = only == Only::All || self.only == Only::All || self.only == only;
        everything || (self.scope.as_deref() == group && effect)
    }

    /// Whether it holds such an effect for a group's slots. A guard's lets what has begun end: half a clean-up helps nobody.
    pub fn holds(&self, group: &str, effect: Effect) -> bool {
        let ends = effect == Effect::CleanUp && matches!(self.by, By::Guard { .. });
        self.scope.as_deref().is_none_or(|scope| scope == group) && self.only.covers(effect) && !ends
    }

    /// The command that ends it.
    pub fn resume(&self) -> String {
        let scope = self.scope.as_deref().map(|scope| format!(" {scope}")).unwrap_or_default();
        match self.only {
            Only::All => format!("homeostat resume{scope}"),
            only => format!("homeostat resume{scope} --only {}", only.label()),
        }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = self.scope.as_deref().map(|scope| format!(" of {scope}")).unwrap_or_default();
        write!(f, "paused: {}{scope}, by {}; `{}` ends it", self.only.label(), self.by, self.resume())
    }
}

/// A decision that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What it would have done.
    pub effect: Effect,
    /// What holds it.
    pub by: HeldBy,
    /// Since when.
    pub since_ms: Millis,
}

/// What holds a decision back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldBy {
    /// A pause, until a person resumes.
    Pause(Pause),
    /// As many resources live as may; ends by itself when one goes.
    LiveResources {
        /// How many may.
        limit: u32,
        /// How many do.
        value: u32,
    },
    /// Another resource with the attempt's label is being destroyed; ends with its result (S2).
    Twin,
    /// The fleet file pauses the group's rollout.
    Rollout {
        /// The group.
        group: String,
    },
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            HeldBy::Pause(pause) => write!(f, "{pause}"),
            HeldBy::LiveResources { limit, value } => {
                write!(f, "guard {}: {value} of {limit}", Guard::LiveResources.label())
            }
            HeldBy::Twin => f.write_str("another resource with its label is being destroyed"),
            HeldBy::Rollout { group } => {
                write!(f, "paused: the rollout of {group}, by the fleet file; `rollout.paused = false` there ends it")
            }
        }
    }
}

/// The group in a slot's name.
pub(crate) fn group_of(slot: &str) -> &str {
    slot.rsplit_once('-').map_or(slot, |(group, _)| group)
}

impl Driver {
    /// The first pause that holds such an effect for a group's slots.
    pub(crate) fn pause_on(&self, group: &str, effect: Effect) -> Option<&Pause> {
        if self.mutated(Mutation::PauseIgnored) {
            return None;
        }
        let everything = effect == Effect::CleanUp && self.mutated(Mutation::GuardHoldsCleanUps);
        let effect = if everything { Effect::Destroy } else { effect };
        self.state.pauses.iter().find(|pause| pause.holds(group, effect))
    }

    /// The decider lets a node wait for a person: because of a pause, or because its facts contradict each other.
    pub(crate) fn await_person(&mut self, asked: &Snapshot, node: NodeId, earlier: Option<Held>, reported: bool) {
        if let Some(held) = self.paused_for(node) {
            return self.hold_back(node, earlier, held);
        }
        let Some(slot) = self.state.slot(node) else { return };
        // What was paused when the decider was asked, and is not any more, is decided again by the next pass.
        let paused = asked.groups.iter().any(|group| group.pauses != 0 && group.name == slot.group);
        if !reported && !paused {
            let (node, facts) = (slot.name.clone(), slot.facts_text());
            let rule = slot.decision.as_ref().map(|decision| decision.rule.to_string()).unwrap_or_default();
            self.notice(match rule == crate::view::CONTRADICTION {
                true => Notice::Inconsistent { node, facts },
                false => Notice::AwaitsPerson { node, rule, facts },
            });
        }
    }

    /// What makes a node wait for a person that its facts do not: a pause, of which the decider knows.
    pub(crate) fn paused_for(&self, node: NodeId) -> Option<Held> {
        let slot = self.state.slot(node)?;
        let effect = match &slot.node {
            None => Effect::Create,
            Some(node) if node.stage == Stage::Destroyed || node.lease.is_none() && node.climbs() => Effect::Create,
            Some(_) => Effect::Destroy,
        };
        let shape = self.state.desired.as_ref()?;
        let group = slot.desired.and_then(|desired| shape.groups.get(desired.group as usize));
        // A drifted node without a lease would be ended, not made.
        let drifted = slot
            .desired
            .zip(slot.node.as_ref())
            .is_some_and(|(desired, node)| node.template != desired.template && node.stage != Stage::Destroyed);
        if let Some(group) = group.filter(|group| drifted && group.rollout.paused) {
            let by = HeldBy::Rollout { group: group.id.clone() };
            return Some(Held { effect: Effect::Destroy, since_ms: self.now, by });
        }
        let effect = if drifted || slot.desired.is_none() { Effect::Destroy } else { effect };
        let pause = self.pause_on(&slot.group, effect)?;
        Some(Held { effect, since_ms: pause.since_ms, by: HeldBy::Pause(pause.clone()) })
    }

    /// What a decision would do outside; `None` for bookkeeping, which no pause holds.
    pub(crate) fn effect(&self, node: NodeId, verb: Verb) -> Option<Effect> {
        let held = self.state.slot(node).and_then(|slot| slot.node.as_ref());
        let deleting = held.is_some_and(|held| held.intent == Intent::Deleting);
        // Looking for the label of a create in doubt makes nothing.
        let looks = || {
            let doubt = held.is_some_and(|held| held.doubt() == Some(OperationKind::CreateLease));
            let template = held.and_then(|held| self.state.templates.get(held.template.0 as usize));
            let promise = template.and_then(|template| self.providers.get(&template.provider));
            doubt && matches!(promise, Some(Promise::Windowed { .. }))
        };
        match verb {
            Verb::Hold | Verb::Reap | Verb::MarkDestroyed | Verb::ConvergenceObserved => None,
            Verb::Insert | Verb::Restart => Some(Effect::Create),
            Verb::BeginDelete => Some(Effect::Destroy),
            Verb::CancelBootstrap | Verb::DestroyLease => Some(Effect::CleanUp),
            Verb::LookupEndpoint => Some(Effect::Other),
            Verb::CreateLease if looks() => Some(Effect::Other),
            // R6: the repetition that serves a clean-up is part of it.
            Verb::CreateLease | Verb::StartBootstrap if deleting => Some(Effect::CleanUp),
            Verb::CreateLease => Some(Effect::Create),
            Verb::StartBootstrap => Some(Effect::Other),
        }
    }

    /// An operator pauses.
    pub(crate) fn pause(&mut self, scope: Option<String>, only: Only) {
        let ours = |pause: &Pause| pause.scope == scope && pause.by == By::Operator;
        let covered = |pause: &Pause| ours(pause) && (pause.only == only || pause.only == Only::All);
        if self.state.pauses.iter().any(covered) {
            return;
        }
        if only == Only::All {
            self.state.pauses.retain(|pause| !ours(pause));
        }
        let pause = Pause { scope: scope.clone(), only, since_ms: self.now, by: By::Operator };
        self.state.pauses.push(pause);
        self.notice(Notice::Paused { scope, only });
        // Each node is to say what holds it.
        self.queued = true;
    }

    /// A person lets go on. A pause of everything from which a part is taken leaves the other part. A guard whose pause ends
    /// gives its whole allowance anew.
    pub(crate) fn resume(&mut self, scope: Option<String>, only: Only) {
        let mut ended = Vec::new();
        let mut left = Vec::new();
        for pause in std::mem::take(&mut self.state.pauses) {
            match (pause.ends_with(scope.as_deref(), only), pause.only, only) {
                (false, ..) => left.push(pause),
                (true, Only::All, Only::Create) => left.push(Pause { only: Only::Destroy, ..pause }),
                (true, Only::All, Only::Destroy) => left.push(Pause { only: Only::Create, ..pause }),
                (true, ..) => ended.push(pause),
            }
        }
        self.state.pauses = left;
        for pause in ended {
            if let By::Guard { guard, .. } = pause.by {
                self.allow_anew(guard, pause.scope.as_deref());
            }
        }
        self.notice(Notice::Resumed { scope, only });
        self.queued |= !self.mutated(Mutation::ResumeDoesNotWake);
    }

    /// A decision is not carried out: the slot says why.
    pub(crate) fn hold_back(&mut self, node: NodeId, earlier: Option<Held>, held: Held) {
        let Some(slot) = self.slot_mut(node) else { return };
        let same = |known: &Held| known.effect == held.effect && !matches!(known.by, HeldBy::Pause(_));
        let since_ms = match (&held.by, earlier.filter(same)) {
            (HeldBy::LiveResources { .. } | HeldBy::Twin | HeldBy::Rollout { .. }, Some(known)) => known.since_ms,
            _ => held.since_ms,
        };
        slot.held = Some(Held { since_ms, ..held });
    }
}
