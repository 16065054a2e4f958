//! S13, as a question at some instants of a run: would it make a difference if two results in flight came in the other
//! order? Both orders are played on copies of the driver; nothing of it reaches the run, nor takes a choice.

use decider::OperationKind;
use engine::driver::Driver;
use engine::id::OperationId;
use engine::invariants::check_same_place;
use engine::io::{Done, Fault, Input, Output, Request};

use crate::decisions::Trouble;
use crate::run::Sim;

/// Between two such questions, in inputs.
const EVERY: u64 = 48;
/// No copy is asked about more plans than this.
const MOST_PLANS: u32 = 64;

/// A result that may be on its way.
type Coming = (OperationId, Result<Done, Fault>);

impl Sim<'_> {
    /// Asks, now and then.
    pub(crate) fn judge_orders(&mut self) {
        let steps = self.tally.steps;
        if self.setup.scrutiny == 0 || !steps.is_multiple_of(EVERY) || self.pass_asked || self.found.is_some() {
            return;
        }
        if self.trouble != Trouble::None || !self.up {
            return;
        }
        // Whom a guard lets through is whoever comes first.
        if !self.driver.policy().guards.is_off() {
            return;
        }
        let nodes = self.driver.state().slots.iter().filter_map(|slot| slot.node.as_ref());
        let requests: Vec<(OperationId, &Request)> = nodes
            .filter_map(|node| node.pending.as_ref())
            .map(|pending| (pending.operation.id, &pending.operation.request))
            .collect();
        if requests.len() < 2 {
            return;
        }
        let turn = usize::try_from(steps / EVERY).unwrap_or(0);
        let coming = |at: usize, fails: bool| {
            let (id, request) = requests[at % requests.len()];
            (id, if fails { Err(Fault::retryable("503")) } else { Ok(answer(request, id)) })
        };
        let (one, other) = (coming(turn, turn % 5 == 3), coming(turn + 1, turn % 7 == 3));
        let first = self.play([one.clone(), other.clone()]);
        let second = self.play([other, one]);
        if let (Some(first), Some(second)) = (first, second)
            && let Some(violation) = check_same_place(first.state(), second.state()).into_iter().next()
        {
            self.found.get_or_insert(violation);
        }
    }

    /// A copy of the driver to which two results came; `None` where it refused or never came to rest.
    fn play(&mut self, results: [Coming; 2]) -> Option<Driver> {
        let mut driver = self.driver.clone();
        let now = self.clock.shows(self.now);
        for (id, result) in results {
            let mut input = Some(Input::Completed { id, result });
            let mut plans = 0;
            while let Some(next) = input.take() {
                driver.handle(next, now).ok()?;
                while let Some(output) = driver.poll_output() {
                    if let Output::Decide { call, snapshot } = output {
                        plans += 1;
                        let result = (self.decide)(&snapshot);
                        let result = result.map(|plan| if self.renumbered { self.renumber(plan) } else { plan });
                        input = (plans < MOST_PLANS).then_some(Input::Decided { call, result });
                    }
                }
            }
        }
        Some(driver)
    }
}

/// How the operation would end well.
fn answer(request: &Request, id: OperationId) -> Done {
    match request {
        Request::SettleCreate(_) => Done::Absent,
        request => match request.kind() {
            OperationKind::CreateLease => Done::Leased { lease: format!("order-{id}"), adopted: false },
            OperationKind::LookupEndpoint => Done::Found { endpoint: "10.0.0.1:80".into() },
            OperationKind::StartBootstrap => Done::Started { session: format!("order-{id}"), adopted: false },
            OperationKind::CancelBootstrap => Done::Cancelled,
            OperationKind::DestroyLease => Done::Destroyed,
        },
    }
}
