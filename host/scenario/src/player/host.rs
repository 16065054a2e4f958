//! What happens to the host: it wakes up, is killed, meets failures in a row, gets another decider.

use decider::Snapshot;
use engine::io::{DeciderFailure, Fault, Input};

use super::{Player, Stop, asking};
use crate::command::Decider;
use crate::words::ms;

impl Player<'_> {
    /// The host is killed and starts again.
    pub(super) fn restart(&mut self, fence: Option<u64>) -> Result<(), Stop> {
        self.session()?;
        let Some(before) = self.session.take() else { return Ok(()) };
        self.epoch += 1;
        self.budget = before.budget;
        self.log.borrow_mut().forget();
        let mut session = self.start(fence.unwrap_or(before.driver.state().next_attempt))?;
        session.now_ms = before.now_ms;
        session.violations = before.violations;
        self.session = Some(session);
        Ok(())
    }

    pub(super) fn wake(&mut self) -> Result<(), Stop> {
        let Some(came) = self.session()?.wake() else {
            self.lines.push("nothing to wake up for".into());
            return Ok(());
        };
        let at = ms(self.session()?.now_ms);
        self.lines.push(format!("at {at}"));
        self.print(&came);
        Ok(())
    }

    /// Failure after failure, each at the instant of its retry. What is longer than a few lines is no help.
    pub(super) fn storm(&mut self, who: &str, times: u32) -> Result<(), Stop> {
        let (mut shortest, mut longest) = (u64::MAX, 0);
        for _ in 0..times {
            let id = self.pending(who)?.id;
            let session = self.session()?;
            let failed_ms = session.now_ms;
            session.feed(Input::Completed { id, result: Err(Fault::retryable("503")) });
            // Other things that happen meanwhile do not shorten the wait.
            session.feed(Input::Resync);
            let mut woken = 0;
            while session.pending(id.attempt).is_none() {
                session.wake().ok_or_else(|| Stop::Missed("nothing to wake up for".into()))?;
                woken += 1;
                if woken > 10 {
                    return Err(Stop::Missed("its retry does not come".into()));
                }
            }
            let waited = session.now_ms.saturating_sub(failed_ms);
            (shortest, longest) = (shortest.min(waited), longest.max(waited));
        }
        if times > 0 {
            self.lines.push(format!("waits from {} to {}", ms(shortest), ms(longest)));
        }
        Ok(())
    }

    pub(super) fn set_decider(&mut self, how: &Decider) -> Result<(), Stop> {
        let failure = DeciderFailure { decider: "native".into(), class: "trap".into(), detail: "it trapped".into() };
        let (with, subject) = (self.with, self.subject.clone());
        if let Decider::Changed = how {
            return self.feed(Input::DeciderChanged(subject.identity));
        }
        let session = self.session()?;
        match how {
            Decider::Ok => {
                session.decide = asking(&subject);
                with(session);
            }
            Decider::Broken => session.decide = Box::new(move |_| Err(failure.clone())),
            Decider::BrokenFor(slots) => {
                let state = session.driver.state();
                let poison: Vec<u32> = slots.iter().filter_map(|slot| Some(state.names.get(slot)?.0)).collect();
                session.decide = Box::new(move |snapshot: &Snapshot| {
                    match snapshot.nodes.node.iter().any(|node| poison.contains(node)) {
                        true => Err(failure.clone()),
                        false => (subject.ask)(snapshot),
                    }
                });
            }
            Decider::Changed => {}
        }
        Ok(())
    }
}
