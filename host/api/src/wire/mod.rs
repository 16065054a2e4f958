//! What goes over the wire, version 1. All instants are milliseconds since 1970 of the daemon's clock. Fields are only added.

mod accept;
mod base64;
mod command;
mod decider;
mod event;
mod health;
mod node;
mod status;
mod swap;
mod watch;

pub use accept::{Accept, DeciderName, FailedNodes, short};
pub use command::{Command, CommandRequest, CommandResult, Consequences, Difference, Only, Plan, PlanRequest};
pub use decider::{
    DeciderCommand, DeciderDetail, DeciderEntry, DeciderRef, DeciderRequest, DeciderResult, DeciderRule, DeciderStatus,
    Deciders, InForce, Quarantine, RolledBack, Uploaded, Watching,
};
pub use event::{
    Change, Decided, Decisions, FieldChange, History, HistoryItem, HistoryQuery, LogLine, Logs, LogsQuery, What,
};
pub use health::{Carried, CarriedDeciders, Check, Diagnosis, Export, LeftOut, Problem, Verdict};
pub use node::{Explanation, Fact, NodeDetail, Operation, RuleRow, TemplateView};
pub use status::{GroupStatus, Node, Orphan, Pause, Reaping, RefusedFile, Status};
pub use swap::{
    Direction, Divergence, DivergenceExample, ExampleDecision, Report, StageName, StageState, Step, Swap, SwapDetail,
    SwapKind, SwapRefusal, SwapStage, SwapTerms, SwapVerdict, Swaps, SwapsQuery, Tally,
};
pub use watch::{DecisionsQuery, End, Relist, WatchQuery};
