//! Hot swap (SPEC 11): a candidate is loaded and checked, judged by history, asked beside the decider in force, put in force between
//! two passes, and watched. `docs/hot-swap.md` tells the whole.

mod divergence;
mod job;
mod jobs;
mod past;
mod replay;
mod report;
mod shadow;
mod stages;

pub use job::SwapJob;
pub(crate) use job::Task;
pub(crate) use jobs::{Jobs, Stop};
pub(crate) use past::Past;
pub use report::{Accept, Compared, Purpose, Reason, Refusal, Stage, StageReport, StageStatus, SwapReport, Terms};
pub(crate) use shadow::ShadowFeed;
