//! The operator's verbs: arguments, and what each of them does.

mod apply;
mod args;
pub mod decider;
mod events;
mod keep;
mod live;
mod look;
mod order;
mod swap;
mod wait;

use std::path::{Path, PathBuf};

use api::wire::Export;
use clap::Subcommand;
use engine::policy::Policy;
use engine::shape::ClusterShape;

pub use args::{
    AdoptArgs, ApplyArgs, DestroyArgs, DiffArgs, EventsArgs, ExportArgs, GroupCount, GroupOrder, HistoryArgs,
    ImportArgs, KillArgs, LogsArgs, NodeArgs, OnlyDaemon, OrderArgs, OrphanName, PauseArgs, ResetArgs, ScaleArgs,
    SnapshotVerb, StatusArgs, Which,
};

pub use decider::DeciderVerb;

use crate::error::{ClientError, Ending};
use crate::place::DaemonArgs;
use crate::screen::Screen;
use crate::session::{Session, Waits};

/// What can be asked of a daemon, or done to its state.
#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// Show the fleet: where each node is, why, and what it waits for
    Status(StatusArgs),
    /// Show all that is known of a node
    Describe(NodeArgs),
    /// Say why a node is where it is: the rule, its facts, what ends it, what you can do
    Explain(NodeArgs),
    /// List what happened to a node, across its attempts
    History(HistoryArgs),
    /// List what happened to the fleet, or follow what happens
    Events(EventsArgs),
    /// Show what a node wrote
    Logs(LogsArgs),
    /// List what bears the run's name and nobody asked for
    Orphans(OnlyDaemon),
    /// Compare a fleet file with the fleet: exit code 6 when they differ
    Diff(DiffArgs),
    /// Give the fleet the shape of a file: shows the plan, asks, and does exactly that
    Apply(ApplyArgs),
    /// Set how many nodes a group has
    Scale(ScaleArgs),
    /// Add one node to a group
    AddNode(GroupOrder),
    /// End the resources of nodes; the fleet replaces them
    Kill(KillArgs),
    /// End nodes or groups for good, or an orphan
    Destroy(DestroyArgs),
    /// Hold effects until they are resumed
    Pause(PauseArgs),
    /// Let held effects go on
    Resume(PauseArgs),
    /// Take an orphan as the node that its label names
    Adopt(AdoptArgs),
    /// Write down what is known of the fleet, or start from what was written down
    #[command(subcommand)]
    Snapshot(SnapshotVerb),
    /// Forget all that is known of a fleet. What it has at its providers stays there
    ResetState(ResetArgs),
    /// Look whether all is well: state, store, decider, backends, clock
    Doctor(OnlyDaemon),
    /// Print the token for a daemon's address
    Token(OnlyDaemon),
    /// Print where the dashboard is
    Dashboard(OnlyDaemon),
}

/// A fleet file, read and checked.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The shape; its generation is `generation`, or of no meaning.
    pub shape: ClusterShape,
    /// The settings.
    pub policy: Policy,
    /// The generation that the file states.
    pub generation: Option<u64>,
}

/// A resource that state knows of.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Known {
    /// Its node.
    pub node: String,
    /// The attempt.
    pub attempt: u64,
    /// The backend.
    pub provider: String,
    /// The backend's reference.
    pub lease: String,
}

/// What only the program as a whole can do, because it takes the fleet's file format, or the driver and its store.
pub trait Program {
    /// How it fails.
    type Error: From<ClientError>;

    /// Reads a fleet file.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    fn load(&self, file: &Path) -> Result<Declared, Self::Error>;

    /// The resources that the state in a run's folder knows of. No daemon runs there, and none can start meanwhile.
    ///
    /// # Errors
    ///
    /// The state cannot be read; it can still be reset.
    fn known(&self, folder: &Path) -> Result<Vec<Known>, Self::Error>;

    /// Puts the state of a run's folder aside, its key included, and answers where to.
    ///
    /// # Errors
    ///
    /// A daemon runs there, or the system refuses.
    fn reset(&self, folder: &Path) -> Result<PathBuf, Self::Error>;

    /// Makes state from what was exported, in a run's folder that has none.
    ///
    /// # Errors
    ///
    /// There is state, or what was exported is not sound.
    fn import(&self, folder: &Path, export: &Export) -> Result<(), Self::Error>;
}

/// Does what a verb says.
///
/// # Errors
///
/// As the verb has them; [`ClientError::class`] says which exit code that is.
pub fn run<P: Program>(verb: &Verb, waits: Waits, screen: &mut Screen, program: &P) -> Result<Ending, P::Error> {
    block_on(choose(verb, waits, screen, program))
}

fn block_on<T, E: From<ClientError>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClientError::Io)?;
    let ended = runtime.block_on(work);
    // A name that is still being looked up must not keep the program.
    runtime.shutdown_background();
    ended
}

async fn choose<P: Program>(verb: &Verb, waits: Waits, screen: &mut Screen, program: &P) -> Result<Ending, P::Error> {
    let session = |daemon: &DaemonArgs| -> Result<Session, ClientError> { Ok(Session::new(daemon.place()?, waits)) };
    let done = |()| Ending::Done;
    Ok(match verb {
        Verb::Status(args) if args.watch => live::status(args, &session(&args.daemon)?, screen).await?,
        Verb::Status(args) => look::status(args, &session(&args.daemon)?, screen).await.map(done)?,
        Verb::Describe(args) => look::describe(&args.node, &session(&args.daemon)?, screen).await.map(done)?,
        Verb::Explain(args) => look::explain(&args.node, &session(&args.daemon)?, screen).await.map(done)?,
        Verb::History(args) => look::history(args, &session(&args.daemon)?, screen).await.map(done)?,
        Verb::Events(args) if args.follow => events::follow(args.all, &session(&args.daemon)?, screen).await?,
        Verb::Events(args) => look::events(args, &session(&args.daemon)?, screen).await.map(done)?,
        Verb::Logs(args) => events::logs(args, &session(&args.daemon)?, screen).await?,
        Verb::Orphans(args) => look::orphans(&session(&args.daemon)?, screen).await.map(done)?,
        Verb::Diff(args) => {
            let declared = program.load(&args.file)?;
            apply::diff(&declared, &session(&args.daemon)?, screen).await?
        }
        Verb::Apply(args) => {
            let declared = program.load(&args.file)?;
            apply::apply(args, &declared, &session(&args.daemon)?, screen).await?
        }
        Verb::Scale(args) => order::scale(args, &session(&args.daemon)?, screen).await?,
        Verb::AddNode(args) => order::add_node(args, &session(&args.daemon)?, screen).await?,
        Verb::Kill(args) => order::kill(args, &session(&args.daemon)?, screen).await?,
        Verb::Destroy(args) => order::destroy(args, &session(&args.daemon)?, screen).await?,
        Verb::Pause(args) => order::pause(args, true, &session(&args.daemon)?, screen).await?,
        Verb::Resume(args) => order::pause(args, false, &session(&args.daemon)?, screen).await?,
        Verb::Adopt(args) => order::adopt(args, &session(&args.daemon)?, screen).await?,
        Verb::Snapshot(SnapshotVerb::Export(args)) => {
            keep::export(args, &session(&args.daemon)?, screen).await.map(done)?
        }
        Verb::Snapshot(SnapshotVerb::Import(args)) => keep::import(args, screen, program).map(done)?,
        Verb::ResetState(args) => keep::reset(args, waits, screen, program).await.map(done)?,
        Verb::Doctor(args) => look::doctor(&args.daemon, waits, screen).await?,
        Verb::Token(args) => keep::token(&args.daemon, screen).map(done)?,
        Verb::Dashboard(args) => keep::dashboard(&session(&args.daemon)?, screen).await.map(done)?,
    })
}
