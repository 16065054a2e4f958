//! Turns what a driver is given, and what it gives, into records.

use std::sync::Arc;

use decider::{Description, Snapshot};
use engine::driver::{DriverConfig, DriverError};
use engine::io::{DeciderIdentity, Input, Output};
use engine::record::Record;

use crate::digest::snapshot_digest;
use crate::entry::{Answer, Entry, Start};
use crate::input::RecordedInput;

/// Watches one driver. It keeps nothing but the call in flight.
#[derive(Clone, Debug)]
pub struct Recorder {
    decider: String,
    contract: String,
    asked: Option<Asked>,
}

#[derive(Clone, Debug)]
struct Asked {
    call: u64,
    decider: String,
    contract: String,
    snapshot: Arc<Snapshot>,
}

/// A record in the making: the digest of a large snapshot takes a while, and can be left to another thread.
#[derive(Clone, Debug)]
pub struct Draft {
    entry: Entry,
    /// With the version of the contract in which it was shown.
    snapshot: Option<(Arc<Snapshot>, String)>,
}

impl From<Entry> for Draft {
    fn from(entry: Entry) -> Self {
        Draft { entry, snapshot: None }
    }
}

impl Draft {
    /// The record.
    pub fn entry(mut self) -> Entry {
        if let (Entry::Pass { snapshot, .. }, Some((asked, contract))) = (&mut self.entry, &self.snapshot) {
            *snapshot = Some(snapshot_digest(asked, contract));
        }
        self.entry
    }
}

impl Recorder {
    /// A recorder for a driver with this configuration, and its first record. `description` is what its decider says of
    /// itself.
    pub fn start(config: &DriverConfig, description: &Description) -> (Self, Draft) {
        let recorder = Recorder::resume(&config.decider);
        (recorder, Entry::Start(Box::new(Start::new(config, description))).into())
    }

    /// A recorder for a driver that goes on, between two passes, under this decider.
    pub fn resume(decider: &DeciderIdentity) -> Self {
        Recorder { decider: decider.digest.clone(), contract: decider.contract.clone(), asked: None }
    }

    /// An input was given to the driver, and this is what it said. Before its outputs are drained.
    pub fn folded(&mut self, input: Input, error: Option<&DriverError>) -> Option<Draft> {
        if matches!(error, Some(DriverError::Undrained { .. })) {
            // It was not looked at.
            return None;
        }
        let error = error.map(ToString::to_string);
        let of = match input {
            Input::Decided { call, result } => {
                let asked = self.asked.take_if(|asked| asked.call == call);
                let (decider, snapshot) = asked
                    .map_or((String::new(), None), |asked| (asked.decider, Some((asked.snapshot, asked.contract))));
                let entry = Entry::Pass { call, decider, snapshot: None, answer: Answer::from(result), error };
                return Some(Draft { entry, snapshot });
            }
            Input::Desired(shape) => RecordedInput::Desired(shape),
            Input::Completed { id, result } => RecordedInput::Completed { id, result },
            Input::Answered { id, status } => RecordedInput::Answered { id, status },
            Input::Observed { attempt, observation } => RecordedInput::Observed { attempt, observation },
            Input::Listed { provider, listing } => RecordedInput::Listed { provider, listing },
            Input::Surveyed { provider, listing } => RecordedInput::Surveyed { provider, listing },
            Input::Adopt { provider, listing } => RecordedInput::Adopt { provider, listing },
            Input::Command(command) => RecordedInput::Command(command),
            Input::PolicyChanged(policy) => RecordedInput::PolicyChanged(policy),
            Input::DeciderChanged(identity) => {
                self.decider.clone_from(&identity.digest);
                self.contract.clone_from(&identity.contract);
                RecordedInput::DeciderChanged(identity)
            }
            Input::Tick => RecordedInput::Tick,
            Input::Restarted => RecordedInput::Restarted,
            Input::Resync => RecordedInput::Resync,
        };
        Some(Entry::Input { of, error }.into())
    }

    /// The driver gave an output.
    pub fn output(&mut self, output: &Output) -> Option<Draft> {
        match output {
            Output::Record(Record::Pending(operation)) => Some(
                Entry::Dispatch {
                    id: operation.id,
                    kind: operation.request.kind(),
                    key: operation.key.clone(),
                    provider: operation.provider.clone(),
                }
                .into(),
            ),
            Output::Record(Record::AttemptsReserved { below }) => Some(Entry::Reserved { below: *below }.into()),
            Output::Decide { call, snapshot } => {
                let (decider, contract) = (self.decider.clone(), self.contract.clone());
                self.asked = Some(Asked { call: *call, decider, contract, snapshot: snapshot.clone() });
                None
            }
            // What else comes out follows from what went in.
            Output::Submit(_) | Output::Ask(_) | Output::Notice(_) => None,
        }
    }

    /// The digest of the decider in force.
    pub fn decider(&self) -> &str {
        &self.decider
    }

    /// The version of the contract that the decider in force speaks.
    pub fn contract(&self) -> &str {
        &self.contract
    }

    /// The driver ends.
    pub fn end(&self) -> Draft {
        Entry::End.into()
    }
}
