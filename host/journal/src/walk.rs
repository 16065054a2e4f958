//! Walks a journal: a driver of this program is given what was recorded, and has to do what was recorded.

use std::collections::VecDeque;
use std::sync::Arc;

use decider::{Plan, Rule, Snapshot};
use engine::driver::Driver;
use engine::io::{DeciderFailure, DeciderIdentity, Input, Output};

use crate::digest::snapshot_digest;
use crate::entry::{Answer, Entry};
use crate::error::Mismatch;
use crate::line::Line;
use crate::recorder::Recorder;

/// A driver that follows a journal. A copy is a place to come back to.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    driver: Option<Driver>,
    recorder: Option<Recorder>,
    /// What the driver put out and the journal has not said yet.
    expected: VecDeque<Entry>,
    /// All that the driver put out at the last record.
    outputs: Vec<Output>,
    asked: Option<PassAsked>,
    ended: bool,
    rules: Arc<Vec<Rule>>,
    /// Who is asked too.
    also: Vec<DeciderIdentity>,
}

/// A question to the decider.
#[derive(Clone, Debug)]
pub struct PassAsked {
    /// The number of the call.
    pub call: u64,
    /// The digest of the decider that is asked.
    pub decider: String,
    /// The version of the contract that it speaks.
    pub contract: String,
    /// The rules it may cite.
    pub rules: Arc<Vec<Rule>>,
    /// What it is asked with.
    pub snapshot: Arc<Snapshot>,
    /// The same for deciders whose contract shows more or less; see [`PassAsked::shown_to`].
    pub(crate) otherwise: Option<Arc<Snapshot>>,
}

impl PassAsked {
    /// What another decider would have been asked in its place, in its own contract: from the same facts, at the same instant.
    /// `None` for one that [`Walk::also_show`] was not told of.
    pub fn shown_to(&self, other: &DeciderIdentity) -> Option<&Arc<Snapshot>> {
        let asked = DeciderIdentity { contract: self.contract.clone(), ..DeciderIdentity::default() };
        match other.sees_rollouts() == asked.sees_rollouts() {
            true => Some(&self.snapshot),
            false => self.otherwise.as_ref(),
        }
    }
}

/// What a record was, apart from what it did to the driver.
#[derive(Clone, Debug)]
pub enum Step {
    /// A driver begins.
    Started,
    /// Nothing to judge.
    Followed,
    /// A decider answered; `asked` is what it was asked, `None` for an answer to no call in flight.
    Answered {
        /// The question.
        asked: Option<Box<PassAsked>>,
        /// The recorded answer.
        answer: Result<Plan, DeciderFailure>,
    },
}

impl Walk {
    /// Before the first record.
    pub fn new() -> Self {
        Walk::default()
    }

    /// Goes on from a driver that was written down between two passes (`Driver::checkpoint`): the next record is the one
    /// after it.
    pub fn after(driver: Driver) -> Self {
        let rules = Arc::new(driver.decider().rules.clone());
        let recorder = Some(Recorder::resume(driver.decider()));
        Walk { driver: Some(driver), recorder, rules, ..Walk::default() }
    }

    /// From now on questions are also put as these would have been asked: [`PassAsked::shown_to`].
    pub fn also_show(&mut self, others: Vec<DeciderIdentity>) {
        self.also = others;
    }

    /// The driver and its recorder, to go on with; `None` before the first record. What the journal has not recorded of the
    /// last batch never left.
    pub fn into_parts(self) -> Option<(Driver, Recorder)> {
        self.driver.zip(self.recorder)
    }

    /// The driver, as it stands after the last record; `None` before the first.
    pub fn driver(&self) -> Option<&Driver> {
        self.driver.as_ref()
    }

    /// All that the driver put out when it was given the last record, notices included; nothing where that folded nothing.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Outputs of the driver that the journal has not recorded (yet): none, except where a journal ends in the middle of a
    /// batch, because the host was killed there or is writing it.
    pub fn unrecorded(&self) -> usize {
        self.expected.len()
    }

    /// Follows one record.
    ///
    /// # Errors
    ///
    /// The driver does something else than what was recorded. It cannot follow any further.
    pub fn follow(&mut self, line: &Line) -> Result<Step, Mismatch> {
        self.outputs.clear();
        match &line.entry {
            Entry::Start(start) => {
                // What the one before left undone died with it.
                let driver = Driver::new(start.config()).map_err(Mismatch::Start)?;
                let (recorder, _) = Recorder::start(&start.config(), &decider::Description::default());
                let rules = Arc::new(start.decider.rules.clone());
                let also = std::mem::take(&mut self.also);
                *self = Walk { driver: Some(driver), recorder: Some(recorder), rules, also, ..Walk::default() };
                Ok(Step::Started)
            }
            Entry::Input { of, error } => {
                self.fold(line, Input::from(of.clone()), error.as_deref())?;
                Ok(Step::Followed)
            }
            Entry::Pass { call, snapshot, answer, error, .. } => {
                let asked = self.asked.take_if(|asked| asked.call == *call);
                match (snapshot, &asked) {
                    (Some(recorded), Some(asked)) => {
                        let found = snapshot_digest(&asked.snapshot, &asked.contract);
                        if *recorded != found {
                            return Err(Mismatch::Snapshot { call: *call, recorded: recorded.clone(), found });
                        }
                    }
                    (None, None) => {}
                    (recorded, _) => return Err(Mismatch::Call { call: *call, recorded: recorded.is_some() }),
                }
                let answer: Result<Plan, DeciderFailure> = Answer::into(answer.clone());
                self.fold(line, Input::Decided { call: *call, result: answer.clone() }, error.as_deref())?;
                Ok(Step::Answered { asked: asked.map(Box::new), answer })
            }
            Entry::Dispatch { .. } | Entry::Reserved { .. } => {
                self.living(line)?;
                let expected = self.expected.pop_front();
                if expected.as_ref() == Some(&line.entry) {
                    return Ok(Step::Followed);
                }
                Err(differs(Some(&line.entry), expected.as_ref()))
            }
            Entry::Order { .. } | Entry::Swap(_) => {
                self.living(line)?;
                Ok(Step::Followed)
            }
            Entry::End => {
                self.settled(line)?;
                self.ended = true;
                Ok(Step::Followed)
            }
        }
    }

    fn living(&mut self, line: &Line) -> Result<(&mut Driver, &mut Recorder), Mismatch> {
        let label = line.entry.label();
        if self.ended {
            return Err(Mismatch::Ended { label });
        }
        match (&mut self.driver, &mut self.recorder) {
            (Some(driver), Some(recorder)) => Ok((driver, recorder)),
            _ => Err(Mismatch::NotStarted { label }),
        }
    }

    /// All that the driver put out was recorded.
    fn settled(&mut self, line: &Line) -> Result<(), Mismatch> {
        self.living(line)?;
        match self.expected.front() {
            Some(left) => Err(differs(None, Some(left))),
            None => Ok(()),
        }
    }

    fn fold(&mut self, line: &Line, input: Input, recorded: Option<&str>) -> Result<(), Mismatch> {
        if input == Input::Restarted {
            // What was not recorded of the last batch before it died with the process, and so did the call in flight. It goes
            // on after an end mark too.
            self.expected.clear();
            self.asked = None;
            self.ended = false;
        }
        self.settled(line)?;
        let changed = match &input {
            Input::DeciderChanged(identity) => Some(Arc::new(identity.rules.clone())),
            _ => None,
        };
        if let Some(driver) = &mut self.driver {
            driver.also_show(&self.also);
        }
        let (driver, recorder) = self.living(line)?;
        let folded = driver.handle(input.clone(), line.at_ms);
        let found = folded.as_ref().err().map(ToString::to_string);
        if found.is_some() != recorded.is_some() {
            return Err(Mismatch::Folded { recorded: recorded.map(str::to_owned), found });
        }
        recorder.folded(input, folded.as_ref().err());
        let (mut expected, mut outputs, mut asked) = (Vec::new(), Vec::new(), None);
        while let Some(output) = driver.poll_output() {
            expected.extend(recorder.output(&output).map(|draft| draft.entry()));
            if let Output::Decide { call, snapshot } = &output {
                let (decider, contract) = (recorder.decider().to_owned(), recorder.contract().to_owned());
                asked = Some((*call, decider, contract, snapshot.clone()));
            }
            outputs.push(output);
        }
        self.expected.extend(expected);
        self.outputs = outputs;
        if let Some(rules) = changed {
            self.rules = rules;
        }
        if let Some((call, decider, contract, snapshot)) = asked {
            let otherwise = self.driver.as_ref().and_then(Driver::asked_otherwise).cloned();
            self.asked = Some(PassAsked { call, decider, contract, rules: self.rules.clone(), snapshot, otherwise });
        }
        Ok(())
    }
}

fn differs(recorded: Option<&Entry>, found: Option<&Entry>) -> Mismatch {
    let text = |entry: Option<&Entry>| match entry {
        Some(Entry::Dispatch { id, kind, key, provider }) => format!("{} {id} for {key} at {provider}", kind.label()),
        Some(Entry::Reserved { below }) => format!("a reservation of the attempts below {below}"),
        _ => "no dispatch".into(),
    };
    Mismatch::Output { recorded: text(recorded), found: text(found) }
}
