//! Operators: they give orders (SPEC 10), also twice and also such as must be refused; they set guards, and resume in the end.

use engine::command::Command;
use engine::io::Input;
use engine::pause::Only;
use engine::policy::{Guards, Policy};
use engine::shape::ClusterShape;

use crate::event::{Event, Phase};
use crate::faults::FaultKind;
use crate::run::Sim;

/// How long it takes until somebody comes, once the faults have stopped.
const COMES_MS: u64 = 2_000;

impl Sim<'_> {
    /// One of the operators' incidents; nothing happens where there is nothing to order.
    pub(crate) fn operate(&mut self, fault: FaultKind) {
        if fault == FaultKind::GuardsChange {
            self.count(fault, None);
            return self.set_guards();
        }
        let wrong = fault == FaultKind::OrderRefused;
        let command = match fault {
            FaultKind::OrderScale => self.scaling(),
            FaultKind::OrderKill => self.killing(),
            FaultKind::OrderDestroy => self.destroying(),
            FaultKind::OrderPause => Some(self.pausing()),
            FaultKind::OrderResume => self.resuming(),
            FaultKind::OrderOrphan => self.about_an_orphan(),
            _ => Some(self.mistaken()),
        };
        let Some(command) = command else { return };
        self.count(fault, None);
        self.give(command.clone(), wrong);
        if !wrong && self.up && self.found.is_none() && self.choices.below(4) == 1 {
            // Whoever lost the answer asks again.
            self.give(command, false);
        }
    }

    /// An order is given. What is refused changes nothing.
    fn give(&mut self, command: Command, wrong: bool) {
        let said = self.driver.consequences(&command);
        if wrong && said.is_ok() {
            return self.broken("SPEC 10", format!("{command} is accepted: {said:?}"));
        }
        if said.is_ok()
            && let Command::AdoptOrphan { lease, .. } | Command::DestroyOrphan { lease, .. } = &command
        {
            self.world.released.insert(lease.clone());
        }
        let before = said.is_err().then(|| self.driver.checkpoint().ok());
        self.people.refusal = said.err();
        self.feed(Input::Command(command));
        self.people.refusal = None;
        if let Some(before) = before
            && self.found.is_none()
            && self.up
            && before != self.driver.checkpoint().ok()
        {
            self.broken("SPEC 10", "a refused order changed something".into());
        }
    }

    fn some_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let at = self.choices.below(u32::try_from(all.len()).unwrap_or(0)) as usize;
        all.get(at).cloned()
    }

    fn scaling(&mut self) -> Option<Command> {
        let current = self.people.current();
        let group = self.some_of(&current.groups)?;
        let others = u32::try_from(current.slots()).unwrap_or(u32::MAX).saturating_sub(group.count);
        let most = self.people.policy.limits.max_nodes.saturating_sub(others);
        let count = self.choices.below(5).min(most);
        Some(match self.choices.below(3) {
            0 => Command::Scale { group: group.id, count },
            1 => Command::AddNode { group: group.id },
            _ => {
                let mut shape = (*current).clone();
                shape.groups.iter_mut().filter(|known| known.id == group.id).for_each(|known| known.count = count);
                shape.generation += u64::from(shape.groups != current.groups);
                Command::Apply { shape, policy: None, base_generation: current.generation }
            }
        })
    }

    /// One or two of these.
    fn few(&mut self, all: &[String]) -> Option<Vec<String>> {
        let mut few = vec![self.some_of(all)?];
        if self.choices.below(3) == 2 {
            few.extend(self.some_of(all));
            few.dedup();
        }
        Some(few)
    }

    fn killing(&mut self) -> Option<Command> {
        let slots = self.driver.state().slots.iter().filter(|slot| slot.node.is_some());
        let held: Vec<String> = slots.map(|slot| slot.name.clone()).collect();
        Some(Command::Kill { nodes: self.few(&held)? })
    }

    fn destroying(&mut self) -> Option<Command> {
        let slots = self.driver.state().slots.iter().filter(|slot| slot.desired.is_some());
        let wanted: Vec<String> = slots.map(|slot| slot.name.clone()).collect();
        let nodes = self.few(&wanted)?;
        if self.choices.below(6) != 5 {
            return Some(Command::Destroy { nodes, groups: Vec::new() });
        }
        let group = self.some_of(&self.people.current().groups)?;
        Some(Command::Destroy { nodes: Vec::new(), groups: vec![group.id] })
    }

    fn only(&mut self) -> Only {
        [Only::All, Only::Create, Only::Destroy][self.choices.below(3) as usize % 3]
    }

    fn pausing(&mut self) -> Command {
        let only = self.only();
        let groups = self.people.current().groups.clone();
        let group = self.some_of(&groups).filter(|_| self.choices.below(2) == 1);
        Command::Pause { group: group.map(|group| group.id), only }
    }

    fn resuming(&mut self) -> Option<Command> {
        let pauses = self.driver.state().pauses.clone();
        let pause = self.some_of(&pauses)?;
        Some(match self.choices.below(3) {
            0 => Command::Resume { group: None, only: Only::All },
            1 => Command::Resume { group: pause.scope, only: pause.only },
            _ => Command::Resume { group: pause.scope, only: self.only() },
        })
    }

    fn about_an_orphan(&mut self) -> Option<Command> {
        let orphans: Vec<(String, String)> = self.driver.state().orphans.keys().cloned().collect();
        let (provider, lease) = self.some_of(&orphans)?;
        Some(match self.choices.below(3) {
            0 => Command::AdoptOrphan { provider, lease },
            1 => Command::DestroyOrphan { provider, lease },
            _ => return self.make_way(provider, lease),
        })
    }

    /// The orphan is to take the place of what holds its slot: creates of the group are paused, the slot is killed, the orphan is
    /// adopted once that is cleaned up, and creates go on.
    fn make_way(&mut self, provider: String, lease: String) -> Option<Command> {
        let orphan = self.driver.state().orphans.get(&(provider.clone(), lease.clone()))?;
        let slot = orphan.key.slot.clone();
        let group = slot.rsplit_once('-').map(|(group, _)| group.to_string());
        let only = Only::Create;
        let later = 10_000 + self.choices.span_ms(60_000);
        self.after(1, Event::Orders(vec![Command::Kill { nodes: vec![slot] }]));
        let resume = Command::Resume { group: group.clone(), only };
        self.after(later, Event::Orders(vec![Command::AdoptOrphan { provider, lease }, resume]));
        Some(Command::Pause { group, only })
    }

    /// Orders that were meant to follow.
    pub(crate) fn follow_up(&mut self, orders: Vec<Command>) {
        for order in orders {
            if self.phase == Phase::Faulty && self.up && self.found.is_none() {
                self.give(order, false);
            }
        }
    }

    /// An order that names something which is not there, or asks for too much.
    fn mistaken(&mut self) -> Command {
        let (nowhere, nobody) = (|| "unheard-of".to_string(), || "unheard-of-0".to_string());
        let current = self.people.current();
        let first = current.groups.first().map_or_else(nowhere, |group| group.id.clone());
        match self.choices.below(9) {
            0 => Command::Scale { group: nowhere(), count: 1 },
            1 => Command::Scale { group: first, count: u32::MAX },
            2 => Command::Kill { nodes: vec![nobody()] },
            3 => Command::Destroy { nodes: Vec::new(), groups: Vec::new() },
            4 => {
                // Twice the same name is one node; a slot that is gone for good is none.
                let slots = self.driver.state().slots.iter().filter(|slot| slot.desired.is_none());
                let gone: Vec<String> = slots.map(|slot| slot.name.clone()).collect();
                let name = self.some_of(&gone).unwrap_or_else(nobody);
                Command::Destroy { nodes: vec![name.clone(), name], groups: Vec::new() }
            }
            5 => Command::Pause { group: Some(nowhere()), only: Only::All },
            6 => Command::Resume { group: Some(nowhere()), only: Only::All },
            7 => Command::DestroyOrphan { provider: "cloud".into(), lease: "L0".into() },
            _ => {
                let shape =
                    ClusterShape { generation: current.generation + 1, groups: Vec::new(), ..(*current).clone() };
                Command::Apply { shape, policy: None, base_generation: current.generation + 1 }
            }
        }
    }

    /// Small numbers, so that they are reached.
    fn set_guards(&mut self) {
        let mut draw = |least: u32, sides: u32| {
            let drawn = self.choices.below(sides + 1);
            drawn.checked_sub(1).map(|drawn| least + drawn)
        };
        let mut guards = Guards {
            destroys_per_minute: draw(1, 3),
            creates_per_hour: draw(2, 8),
            live_resources: draw(2, 6),
            destroyed_share_percent: None,
        };
        let shares = [None, Some(1), Some(34), Some(50), Some(100)];
        guards.destroyed_share_percent = shares[self.choices.below(5) as usize % shares.len()];
        self.change_guards(guards);
    }

    fn change_guards(&mut self, guards: Guards) {
        self.people.policy = Policy { guards, ..self.people.policy };
        self.feed(Input::PolicyChanged(self.people.policy));
    }

    /// The faults stop. A limit below what is wanted would hold for ever; the other guards let a person go on.
    pub(crate) fn lift_limit(&mut self) {
        let guards = self.people.policy.guards;
        if guards.live_resources.is_some() {
            self.change_guards(Guards { live_resources: None, ..guards });
        }
    }

    /// Something is paused: somebody will come.
    pub(crate) fn call_person(&mut self) {
        let paused = !self.driver.state().pauses.is_empty() || self.people.pauses_rollout();
        if self.up && !self.person_comes && paused {
            self.person_comes = true;
            self.after(COMES_MS, Event::Person);
        }
    }

    /// Somebody came.
    pub(crate) fn person(&mut self) {
        self.person_comes = false;
        if self.up && self.phase != Phase::Faulty && !self.driver.state().pauses.is_empty() {
            self.give(Command::Resume { group: None, only: Only::All }, false);
        }
        if self.up && self.phase != Phase::Faulty && self.people.pauses_rollout() {
            self.unpause_rollouts();
        }
    }
}
