//! What a record says.

use std::collections::BTreeMap;

use decider::{Description, OperationKind, Plan, Rule};
use engine::driver::DriverConfig;
use engine::id::{AttemptId, ExternalKey, OperationId};
use engine::io::{DeciderFailure, DeciderIdentity, Promise};
use engine::policy::Policy;
use serde::{Deserialize, Serialize};

use crate::input::RecordedInput;
use crate::swap::SwapRecord;

/// Stands for the decider's digest where a simulated fault answered in its place.
pub const SIMULATED: &str = "simulated";

/// What a record says.
// As in the engine: plans are the most frequent ones, and starts the largest.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Entry {
    /// A driver begins. The first record of a journal, and of each further run that was appended to it.
    Start(Box<Start>),
    /// An input was folded, or refused.
    Input {
        /// What.
        of: RecordedInput,
        /// The driver's words when it refused the input, or when a pass that followed never came to rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The decider answered, and its answer was folded.
    Pass {
        /// The number of the call.
        call: u64,
        /// The digest of the decider that was asked; empty for an answer to no call in flight; [`SIMULATED`] where a fault
        /// answered in its place.
        decider: String,
        /// The digest of the snapshot that it was asked with; `None` for an answer to no call in flight.
        snapshot: Option<String>,
        /// What it answered.
        answer: Answer,
        /// The driver's words when passes never come to rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// An operation is pending and about to leave (S1).
    Dispatch {
        /// Which.
        id: OperationId,
        /// Its kind.
        kind: OperationKind,
        /// The resource it is about.
        key: ExternalKey,
        /// Which backend performs it.
        provider: String,
    },
    /// Attempt ids below this one may be given out from now on (S3).
    Reserved {
        /// The first id that may not.
        below: AttemptId,
    },
    /// The next record is an operator's command of this id (SPEC 10). Nothing is folded.
    Order {
        /// The id.
        id: String,
    },
    /// A step of a swap (SPEC 11). Nothing is folded.
    Swap(Box<SwapRecord>),
    /// The driver ended, and nothing was folded after this.
    End,
}

impl Entry {
    /// Its name in the file.
    pub fn label(&self) -> &'static str {
        match self {
            Entry::Start(_) => "start",
            Entry::Input { .. } => "input",
            Entry::Pass { .. } => "pass",
            Entry::Dispatch { .. } => "dispatch",
            Entry::Reserved { .. } => "reserved",
            Entry::Order { .. } => "order",
            Entry::Swap(_) => "swap",
            Entry::End => "end",
        }
    }
}

/// What a driver began with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The program that wrote it and its version, for people.
    pub written_by: String,
    /// The run.
    pub run: String,
    /// The operator's settings.
    pub policy: Policy,
    /// The backends, and what each can promise.
    pub providers: BTreeMap<String, Promise>,
    /// The decider in force.
    pub decider: DeciderRecord,
    /// The first attempt id that was never given out.
    pub next_attempt: u64,
    /// How often the host was started before with this run.
    pub epoch: u64,
}

/// A decider, by all its names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeciderRecord {
    /// The digest of its bytes; `native` for the built-in one outside the sandbox.
    pub digest: String,
    /// The name it declares.
    pub name: String,
    /// The version it declares.
    pub version: String,
    /// The contract version it was built for.
    pub contract: String,
    /// The rules it may cite, in the order of the indices in plans.
    pub rules: Vec<Rule>,
}

/// What a decider answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// A plan, as it came: valid or not.
    Plan(#[serde(with = "crate::columns")] Plan),
    /// None.
    Failure(DeciderFailure),
}

impl From<Result<Plan, DeciderFailure>> for Answer {
    fn from(result: Result<Plan, DeciderFailure>) -> Self {
        match result {
            Ok(plan) => Answer::Plan(plan),
            Err(failure) => Answer::Failure(failure),
        }
    }
}

impl From<Answer> for Result<Plan, DeciderFailure> {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Plan(plan) => Ok(plan),
            Answer::Failure(failure) => Err(failure),
        }
    }
}

impl Start {
    /// What a driver with this configuration begins with. `description` is what its decider says of itself.
    pub fn new(config: &DriverConfig, description: &Description) -> Self {
        Start {
            written_by: concat!("homeostat ", env!("CARGO_PKG_VERSION")).into(),
            run: config.run.clone(),
            policy: config.policy,
            providers: config.providers.clone(),
            decider: DeciderRecord {
                digest: config.decider.digest.clone(),
                name: description.name.clone(),
                version: description.version.clone(),
                contract: config.decider.contract.clone(),
                rules: config.decider.rules.clone(),
            },
            next_attempt: config.next_attempt,
            epoch: config.epoch,
        }
    }

    /// The configuration again.
    pub fn config(&self) -> DriverConfig {
        DriverConfig {
            run: self.run.clone(),
            policy: self.policy,
            providers: self.providers.clone(),
            decider: DeciderIdentity {
                digest: self.decider.digest.clone(),
                rules: self.decider.rules.clone(),
                contract: self.decider.contract.clone(),
            },
            next_attempt: self.next_attempt,
            epoch: self.epoch,
        }
    }
}
