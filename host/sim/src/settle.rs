//! The end of a run: faults stop, and the fleet must settle (L1), keep nothing it should not (L3), and stay so (L2, S11).

use engine::invariants::check_settled;

use crate::decisions::Trouble;
use crate::event::Phase;
use crate::run::{QUIET_MS, Sim};

impl Sim<'_> {
    /// The faults stop. What is in flight stays in flight; nothing new goes wrong.
    pub(crate) fn stop_faults(&mut self) {
        self.trouble = Trouble::None;
        self.dies_after = None;
        self.doomed = None;
        self.world.stubborn.clear();
        if let Some((_, until)) = &mut self.clock.stands {
            *until = (*until).min(self.now);
        }
        self.lift_limit();
        let bound = self.bound();
        self.phase = Phase::Settling { by_ms: self.now + bound.ms, by_step: self.tally.steps + bound.rounds };
        self.say(|| format!("the faults stop; it must settle within {} ms and {} inputs", bound.ms, bound.rounds));
    }

    /// Converged, nothing outstanding, and what exists is what should.
    pub(crate) fn is_settled(&self) -> bool {
        self.up
            && self.driver.is_converged()
            && self.driver.state().reaps.is_empty()
            && self.driver.state().orphans.values().all(|orphan| orphan.destroying.is_none())
            && self.driver.state().pauses.is_empty()
            && !self.effects_outstanding()
            && !self.world.has_ghosts(self.now)
            && self.leaked().is_none()
    }

    /// A resource that is neither held, nor reported, nor a stranger's; or a node without a resource, unless it vanished.
    fn leaked(&self) -> Option<String> {
        let state = self.driver.state();
        let held = |lease: &String| {
            state.slots.iter().any(|slot| slot.node.as_ref().is_some_and(|node| node.lease.as_ref() == Some(lease)))
        };
        for resource in &self.world.live {
            // An orphan's key is in use; once its attempt is retired it is reaped.
            let key_held = resource.key.as_ref().is_some_and(|key| state.holder(key.attempt).is_some());
            let stranger = self.world.strangers.contains(&resource.lease);
            let listed = state.orphans.keys().any(|(_, lease)| *lease == resource.lease);
            let reported = listed && (key_held || stranger);
            let ours = !stranger || self.world.released.contains(&resource.lease);
            if !held(&resource.lease) && !reported && ours {
                let key = resource.key.as_ref().map_or_else(|| "no label".into(), ToString::to_string);
                return Some(format!("{} ({key}) is live and nobody holds it", resource.lease));
            }
        }
        for slot in &state.slots {
            let Some(lease) = slot.node.as_ref().and_then(|node| node.lease.as_ref()) else { continue };
            if self.world.leased(lease).is_none() && !self.world.vanished.contains(lease) {
                return Some(format!("{} holds {lease}, which does not exist", slot.name));
            }
        }
        self.world.strangers.iter().find_map(|stranger| {
            let gone = self.world.leased(stranger).is_none() && !self.world.vanished.contains(stranger);
            (gone && !self.world.released.contains(stranger)).then(|| format!("{stranger} was not ours and is gone"))
        })
    }

    /// Why it has not settled.
    pub(crate) fn unsettled(&self) -> String {
        if !self.up {
            return "the host is down".into();
        }
        let view = self.driver.view();
        let mut waits: Vec<String> = view
            .nodes
            .iter()
            .filter(|node| !(node.ready && node.desired))
            .map(|node| {
                let until = node.until_ms.map_or_else(String::new, |at| format!(" until {at}"));
                let waits_for = if node.waits_for.is_empty() { "nothing" } else { node.waits_for.as_str() };
                format!("{} ({}, waits for {waits_for}{until})", node.node, node.stage)
            })
            .collect();
        waits.extend(view.reaping.iter().map(|reap| format!("{reap} is being reaped")));
        waits.extend(self.leaked());
        if view.generation != view.observed_generation {
            waits.push(format!("generation {} is evaluated, {} is wanted", view.observed_generation, view.generation));
        }
        if self.effects_outstanding() {
            waits.push("calls are in flight".into());
        }
        format!("not settled at {} ms: {}", self.since_begin(), waits.join("; "))
    }

    /// At the end of the quiet time: nothing has changed since it settled.
    pub(crate) fn judge_rest(&mut self) {
        let Some(before) = self.settled_state().cloned() else { return };
        let first = check_settled(&before, self.driver.state(), &[]).into_iter().next();
        if let Some(violation) = first {
            self.found.get_or_insert(violation);
        }
        let asked = self.tally.passes - self.settled_passes;
        if asked > QUIET_MS / 1_000 {
            let seconds = QUIET_MS / 1_000;
            let what =
                format!("it has settled, and is asked {asked} times in {seconds} s: its wake-at-ms is never later");
            self.broken("L2", what);
        }
        if self.found.is_none() && !self.is_settled() {
            let why = self.leaked().unwrap_or_else(|| self.unsettled());
            self.broken("L2", why);
        }
    }
}
