//! One input, all its outputs, and the judgement of the step: what the host's loop does, without a host.

use std::collections::VecDeque;

use decider::Plan;
use engine::driver::DriverError;
use engine::io::{Input, Notice, OperationStatus, Output};
use engine::record::Record;

use crate::run::Sim;

impl Sim<'_> {
    /// Feeds one input, and all that follows from it at once. Every step is judged.
    pub fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            if !self.up {
                return;
            }
            self.fold(input, &mut inputs);
            if self.found.is_some() {
                return;
            }
        }
    }

    fn fold(&mut self, input: Input, inputs: &mut VecDeque<Input>) {
        self.tally.steps += 1;
        let shown = self.clock.shows(self.now);
        let at_ms = self.since_begin();
        if let Some(trace) = &mut self.trace {
            trace.input(&input, at_ms, shown);
        }
        self.remember(&input, shown);
        self.audit.before(&input, self.driver.state());
        // Nothing is judged by a plan's content here; not copying it saves as much time as a pass takes.
        let judged = match &input {
            Input::Decided { call, .. } => Input::Decided { call: *call, result: Ok(Plan::default()) },
            input => input.clone(),
        };
        let (passes, stale) = (self.driver.stats().passes, self.driver.stats().stale_plans);
        let recorded = self.tape.as_ref().map(|_| input.clone());
        let kept = self.doomed.as_ref().map(|_| input.clone());
        let folded = self.driver.handle(input, shown);
        self.tally.passes += self.driver.stats().passes - passes;
        let mut outputs = Vec::new();
        while let Some(output) = self.driver.poll_output() {
            outputs.push(output);
        }
        if let Some(input) = kept {
            self.keep_input(input, folded.as_ref().err(), shown);
        }
        if let (Some(tape), Some(input)) = (&mut self.tape, recorded) {
            tape.folded(input, folded.as_ref().err(), &outputs, shown);
        }
        if let Some(trace) = &mut self.trace {
            trace.folded(!outputs.is_empty() || folded.is_err());
        }
        if let Some(violation) = self.watch.step(&judged, &outputs, self.driver.state()).into_iter().next() {
            self.found.get_or_insert(violation);
        }
        if let Some(violation) = self.audit.folded(&judged, folded.is_ok(), &self.driver, &outputs) {
            self.found.get_or_insert(violation);
        }
        if matches!(judged, Input::Command(_)) && folded.is_ok() {
            self.people.ordered(self.driver.state().desired.as_ref());
        }
        if let Input::Decided { call, .. } = &judged
            && *call == self.asked.0
            && self.asked.1 != self.renumbered
            && self.driver.stats().stale_plans == stale
        {
            self.broken("SPEC 11", "a plan of the decider before the swap is applied under the one after it".into());
        }
        if let Err(error) = folded {
            self.refused(&judged, &error);
        } else if let Some(why) = self.people.must_be_refused(&judged) {
            self.broken(why.0, why.1);
        }
        for output in outputs {
            if let Some(left) = &mut self.dies_after {
                if *left == 0 {
                    return self.crash();
                }
                *left -= 1;
            }
            self.keep_output(&output, shown);
            if self.found.is_some() {
                return;
            }
            self.act(output, inputs);
        }
        if self.doomed.is_some() {
            self.keep_rest(shown);
        }
        if inputs.is_empty() {
            self.judge_orders();
        }
    }

    fn refused(&mut self, input: &Input, error: &DriverError) {
        match error {
            DriverError::Shape(_) if self.people.may_be_refused(input) => {}
            DriverError::Command(error) if self.people.refusal() == Some(error) => {}
            DriverError::NeverBlocks { .. } => self.broken("L4", error.to_string()),
            _ => self.broken("L4", format!("an input that is right is refused: {error}")),
        }
    }

    fn act(&mut self, output: Output, inputs: &mut VecDeque<Input>) {
        match output {
            Output::Record(Record::AttemptsReserved { below }) => self.fence = self.fence.max(below.0),
            Output::Record(_) => {}
            Output::Submit(operation) => self.submit(operation),
            Output::Ask(id) => {
                let status = match self.promised.contains(&id) {
                    true => OperationStatus::Completed,
                    false => OperationStatus::Ambiguous,
                };
                if status == OperationStatus::Ambiguous {
                    self.landed(id);
                }
                inputs.push_back(Input::Answered { id, status });
            }
            Output::Decide { call, snapshot } => {
                self.pass_asked = true;
                self.decide_on(call, snapshot, inputs);
            }
            Output::Notice(Notice::Inconsistent { node, facts }) => {
                self.broken(
                    "L4",
                    format!("the facts of {node} contradict each other and nothing will end that: {facts}"),
                );
            }
            Output::Notice(Notice::AwaitsPerson { node, rule, facts }) => {
                self.broken("L4", format!("{node} waits for a person by {rule}, and nothing will end that: {facts}"));
            }
            Output::Notice(notice) => {
                let tracing = self.trace.is_some();
                if tracing {
                    self.say(|| format!("notice: {notice:?}"));
                }
            }
        }
    }
}
