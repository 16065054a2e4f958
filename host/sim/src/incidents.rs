//! What happens by itself: deaths, strangers, crashes of the host, clocks that jump, people.

use engine::id::{AttemptId, ExternalKey};
use engine::io::{Input, Observation};
use engine::shape::slot_name;

use crate::event::Event;
use crate::faults::{FaultKind, Place};
use crate::run::Sim;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const HOUR_MS: i64 = 60 * 60 * 1_000;
const MINUTE_MS: u64 = 60_000;

impl Sim<'_> {
    /// When something happens next.
    pub(crate) fn next_incident(&mut self) {
        const GAPS: [u64; 8] = [1_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000];
        let (which, part) = (self.choices.below(12) as usize, u64::from(self.choices.below(8)));
        let gap = GAPS.get(which).map_or(0, |gap| gap + gap * part / 8);
        if which >= GAPS.len() {
            // At the very instant at which an operation's deadline passes, just before the driver notices.
            let deadline = self.some_deadline().unwrap_or(0);
            return self.after(deadline, Event::Incident);
        }
        self.after(gap, Event::Incident);
    }

    /// How long it is until the deadline of some operation in flight.
    fn some_deadline(&mut self) -> Option<u64> {
        let slots = &self.driver.state().slots;
        let held = slots.iter().filter_map(|slot| slot.node.as_ref()?.pending.as_ref()).map(|held| held.deadline_ms);
        let all: Vec<u64> = held.filter(|_| self.up).collect();
        let at = self.choices.below(u32::try_from(all.len()).unwrap_or(0)) as usize;
        Some(self.clock.when(*all.get(at)?, self.now).saturating_sub(self.now))
    }

    pub(crate) fn incident(&mut self) {
        let Some(fault) = self.strike(Place::Incident) else { return };
        if !self.up {
            return;
        }
        match fault {
            FaultKind::Vanishes => self.vanishes(),
            FaultKind::Dies => self.dies(),
            FaultKind::ForeignAppears => self.foreign(),
            FaultKind::OrphanAppears => self.orphan(),
            FaultKind::Crash | FaultKind::StateLost => {
                self.count(fault, None);
                self.begin_dying(fault == FaultKind::Crash);
            }
            FaultKind::ClockAhead => {
                // One jump is a bounded part of an open window; who sets the clock again and again ends any.
                if !self.window_is_open() || self.now >= self.jumped_ms + MINUTE_MS {
                    self.count(fault, None);
                    self.clock.skew_ms += DAY_MS;
                    self.jumped_ms = self.now;
                }
            }
            FaultKind::ClockBack => {
                self.count(fault, None);
                self.clock.skew_ms -= HOUR_MS;
            }
            FaultKind::ClockStops => {
                self.count(fault, None);
                let span = self.choices.span_ms(600_000);
                let shows = self.clock.shows(self.now);
                self.clock.stands = Some((shows, self.now + span));
                // It goes on from where it stood.
                self.clock.skew_ms = i64::try_from(shows).unwrap_or(0) - i64::try_from(self.now + span).unwrap_or(0);
            }
            FaultKind::OrderScale
            | FaultKind::OrderKill
            | FaultKind::OrderDestroy
            | FaultKind::OrderPause
            | FaultKind::OrderResume
            | FaultKind::OrderOrphan
            | FaultKind::OrderRefused
            | FaultKind::GuardsChange => self.operate(fault),
            people => {
                self.count(people, None);
                self.edit(people);
            }
        }
    }

    fn pick(&mut self, wanted: impl Fn(&crate::world::Resource) -> bool) -> Option<usize> {
        let some: Vec<usize> =
            self.world.live.iter().enumerate().filter(|(_, held)| wanted(held)).map(|(at, _)| at).collect();
        let chosen = self.choices.below(u32::try_from(some.len()).unwrap_or(0)) as usize;
        some.get(chosen).copied()
    }

    fn vanishes(&mut self) {
        let run = self.setup.shape.run.clone();
        let ours = |held: &crate::world::Resource| held.key.as_ref().is_some_and(|key| key.run == run);
        let Some(gone) = self.pick(ours).and_then(|at| self.world.vanish(at)) else { return };
        let slot = gone.key.map(|key| key.slot);
        self.count(FaultKind::Vanishes, slot.as_deref());
        self.say(|| format!("{} vanishes", gone.lease));
        self.take_violations();
    }

    fn dies(&mut self) {
        let Some(at) = self.pick(|held| held.session.as_ref().is_some_and(|session| session.joined)) else { return };
        let resource = &mut self.world.live[at];
        let (Some(key), Some(session)) = (resource.key.clone(), resource.session.take()) else { return };
        self.count(FaultKind::Dies, Some(&key.slot));
        if session.heard_by == self.host {
            // Without a status nothing is known to have died: the connection is gone, or whoever watched.
            let exit = (self.choices.below(4) != 3).then(|| "exit status 137".to_string());
            let observation = Observation::Closed { exit };
            self.feed(Input::Observed { attempt: key.attempt, observation });
        }
    }

    fn foreign(&mut self) {
        self.count(FaultKind::ForeignAppears, None);
        let provider = self.some_provider();
        let slot = self.some_slot();
        let attempt = AttemptId(1 + u64::from(self.choices.below(40)));
        let key = ExternalKey { run: "another-run".into(), slot, attempt };
        let theirs = self.choices.below(2) == 0;
        let lease = self.world.appear(provider, theirs.then_some(key), None, self.now);
        self.world.strangers.push(lease);
        self.take_violations();
    }

    fn orphan(&mut self) {
        self.count(FaultKind::OrphanAppears, None);
        let provider = self.some_provider();
        let slot = self.some_slot();
        // Far above what this run will ever authorise, and far from each other: an adopted one moves what is authorised up.
        let attempt = AttemptId(1_000_000_000 * self.world.next_number());
        let group = slot.rsplit_once('-').map_or("", |(group, _)| group);
        let current = self.people.current();
        let template = current.groups.iter().find(|known| known.id == group).map(|known| known.template.clone());
        let template = template.filter(|_| self.choices.below(2) == 1);
        let key = ExternalKey { run: self.setup.shape.run.clone(), slot, attempt };
        let lease = self.world.appear(provider, Some(key), template, self.now);
        self.world.strangers.push(lease);
        self.take_violations();
    }

    fn some_provider(&mut self) -> usize {
        let count = u32::try_from(self.world.providers.len()).unwrap_or(0);
        self.choices.below(count) as usize
    }

    fn some_slot(&mut self) -> String {
        let groups = &self.setup.shape.groups;
        let at = self.choices.below(u32::try_from(groups.len()).unwrap_or(0)) as usize;
        let group = groups.get(at).map_or("stray", |group| group.id.as_str());
        slot_name(group, self.choices.below(4))
    }
}
