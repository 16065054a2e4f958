//! What goes over the wire, version 1. All instants are milliseconds since 1970 of the daemon's clock. Fields are only added.

mod command;
mod event;
mod health;
mod node;
mod status;
mod watch;

pub use command::{Command, CommandRequest, CommandResult, Consequences, Difference, Only, Plan, PlanRequest};
pub use event::{
    Change, Decided, Decisions, FieldChange, History, HistoryItem, HistoryQuery, LogLine, Logs, LogsQuery, What,
};
pub use health::{Check, Diagnosis, Export, Problem, Verdict};
pub use node::{Explanation, Fact, NodeDetail, Operation, RuleRow, TemplateView};
pub use status::{DeciderStatus, GroupStatus, Node, Orphan, Pause, Reaping, Status};
pub use watch::{DecisionsQuery, End, Relist, WatchQuery};
