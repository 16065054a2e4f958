//! The runtime (SPEC 1): one select loop between timers, inputs, executor, decider and the callers' wishes. It decides
//! nothing, and this is the library's front door:
//!
//! ```no_run
//! use homeostat::{Host, decide::NativeDecider, backends::fake::FakeBackend};
//!
//! # async fn run(shape: engine::shape::ClusterShape) -> Result<(), homeostat::HostError> {
//! let host = Host::builder("demo").backend("fake", FakeBackend::keyed()).decider(NativeDecider).start().await?;
//! host.update_shape(shape).await?;
//! let view = host.wait_converged().await?;
//! println!("{} nodes are ready", view.nodes.len());
//! host.shutdown(homeostat::Shutdown::TakeDown).await?;
//! # Ok(())
//! # }
//! ```

mod adopt;
mod builder;
mod changes;
mod deciders;
mod declare;
mod ending;
mod error;
mod handle;
mod inforce;
mod instruments;
mod operate;
mod select;
mod swaps;
mod wishes;

use std::time::Duration;

pub use builder::HostBuilder;
pub use changes::HostEvent;
pub(crate) use deciders::Line;
pub use deciders::{Candidate, Deciders, SwapTaken, Wish};
pub use declare::{DECLARED, Declaration};
pub use error::HostError;
pub(crate) use handle::Ask;
pub use handle::{Farewell, HostHandle, Shutdown};
pub use operate::{CommandReport, Exported, Order, Refused, Why};
pub(crate) use select::Runtime;
pub(crate) use swaps::{NotSwitched, Switch, Watched};
pub use wishes::Taken;

/// Where a host begins.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Host {
    /// A host that will keep this run.
    pub fn builder(run: impl Into<String>) -> HostBuilder {
        HostBuilder::new(run.into())
    }
}

/// The runtime's own intervals. None of them is how progress is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// Between two listings of every backend.
    pub listing: Duration,
    /// The longest time a listing may take.
    pub listing_limit: Duration,
    /// Between two ticks, when nothing else happens.
    pub tick: Duration,
    /// How long a backend may fail to give a complete listing at the start.
    pub adopt_limit: Duration,
    /// How long a host that ends waits for running operations.
    pub end_limit: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals {
            listing: Duration::from_secs(30),
            listing_limit: Duration::from_secs(60),
            tick: Duration::from_secs(10),
            adopt_limit: Duration::from_secs(30),
            end_limit: Duration::from_secs(5),
        }
    }
}
