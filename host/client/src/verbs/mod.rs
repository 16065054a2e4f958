//! The operator's verbs: arguments, and what each of them does.

mod apply;
mod events;
mod keep;
mod live;
mod look;
mod order;
mod wait;

use std::path::{Path, PathBuf};

use api::wire::{Export, Only};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use engine::policy::Policy;
use engine::shape::ClusterShape;

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

/// Only which daemon.
#[derive(Clone, Debug, Args)]
pub struct OnlyDaemon {
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `status`.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Only these groups or nodes
    #[arg(value_name = "GROUP")]
    pub groups: Vec<String>,
    /// Stay, and show what changes, until ^C
    #[arg(short, long)]
    pub watch: bool,
    /// Also list nodes that are ready where there are many
    #[arg(short, long)]
    pub all: bool,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// A node.
#[derive(Clone, Debug, Args)]
pub struct NodeArgs {
    /// Which node
    pub node: String,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// Which node
    pub node: String,
    /// At most so many records, the latest ones
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub limit: u32,
    /// Only before this record
    #[arg(long, value_name = "RECORD")]
    pub before: Option<u64>,
    /// All that is kept
    #[arg(short, long, conflicts_with = "limit")]
    pub all: bool,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `events`.
#[derive(Clone, Debug, Args)]
pub struct EventsArgs {
    /// Follow what happens from now on, until ^C
    #[arg(short, long)]
    pub follow: bool,
    /// At most so many records, the latest ones
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "follow")]
    pub limit: u32,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `logs`.
#[derive(Clone, Debug, Args)]
pub struct LogsArgs {
    /// Which node
    pub node: String,
    /// At most so many lines, the last ones
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub lines: u32,
    /// Stay, and show what it writes, until ^C
    #[arg(short, long)]
    pub follow: bool,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// How a command is given.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The command")]
pub struct OrderArgs {
    /// The command's id: the same again acts once, and gives the first result [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Wait until it has come about
    #[arg(long)]
    pub wait: bool,
    /// How long to wait at most, such as 90s or 10m
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration, requires = "wait")]
    pub timeout: std::time::Duration,
}

/// Arguments of `diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// The fleet file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `apply`.
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    /// The fleet file
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How.
    #[command(flatten)]
    pub order: OrderArgs,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// A group and a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCount {
    /// Which group.
    pub group: String,
    /// How many.
    pub count: u32,
}

impl std::str::FromStr for GroupCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (group, count) = text.split_once('=').ok_or("it is written GROUP=NUMBER, such as web=3")?;
        let count = count.parse().map_err(|_| format!("{count:?} is no number of nodes"))?;
        match group.is_empty() {
            true => Err("the group is missing".into()),
            false => Ok(GroupCount { group: group.to_owned(), count }),
        }
    }
}

/// Arguments of `scale`.
#[derive(Clone, Debug, Args)]
pub struct ScaleArgs {
    /// Which group, and how many nodes it is to have
    #[arg(value_name = "GROUP=N")]
    pub to: GroupCount,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How.
    #[command(flatten)]
    pub order: OrderArgs,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `add-node`.
#[derive(Clone, Debug, Args)]
pub struct GroupOrder {
    /// Which group
    pub group: String,
    /// How.
    #[command(flatten)]
    pub order: OrderArgs,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `kill`.
#[derive(Clone, Debug, Args)]
pub struct KillArgs {
    /// Which nodes
    #[arg(required = true, value_name = "NODE")]
    pub nodes: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How.
    #[command(flatten)]
    pub order: OrderArgs,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `destroy`.
#[derive(Clone, Debug, Args)]
pub struct DestroyArgs {
    /// Which nodes or groups
    #[arg(required_unless_present = "orphan", value_name = "NODE|GROUP")]
    pub names: Vec<String>,
    /// An orphan instead, as `orphans` lists it
    #[arg(long, value_name = "PROVIDER/LEASE", conflicts_with = "names")]
    pub orphan: Option<OrphanName>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// How.
    #[command(flatten)]
    pub order: OrderArgs,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// How an orphan is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanName {
    /// The backend.
    pub provider: String,
    /// The backend's reference.
    pub lease: String,
}

impl std::str::FromStr for OrphanName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((provider, lease)) if !provider.is_empty() && !lease.is_empty() => {
                Ok(OrphanName { provider: provider.to_owned(), lease: lease.to_owned() })
            }
            _ => Err("it is written PROVIDER/LEASE, as `homeostat orphans` lists it".into()),
        }
    }
}

/// Which effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// All.
    #[default]
    All,
    /// Those that make something.
    Create,
    /// Those that end something.
    Destroy,
}

impl From<Which> for Only {
    fn from(which: Which) -> Only {
        match which {
            Which::All => Only::All,
            Which::Create => Only::Create,
            Which::Destroy => Only::Destroy,
        }
    }
}

/// Arguments of `pause` and `resume`.
#[derive(Clone, Debug, Args)]
pub struct PauseArgs {
    /// Only in this group
    pub group: Option<String>,
    /// Only what creates, or only what destroys
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    pub only: Which,
    /// The command's id: the same again acts once, and gives the first result [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `adopt`.
#[derive(Clone, Debug, Args)]
pub struct AdoptArgs {
    /// The orphan, as `orphans` lists it
    #[arg(value_name = "PROVIDER/LEASE")]
    pub orphan: OrphanName,
    /// How.
    #[command(flatten)]
    pub order: OrderArgs,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// What is done with a snapshot.
#[derive(Clone, Debug, Subcommand)]
pub enum SnapshotVerb {
    /// Write down what a running daemon knows of its fleet
    Export(ExportArgs),
    /// Put it into an empty state directory, for a daemon to start from
    Import(ImportArgs),
}

/// Arguments of `snapshot export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// Where to; it must not be there yet [default: standard output]
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `snapshot import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// What `snapshot export` wrote
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The state directory, in which the run gets a folder [default: $XDG_STATE_HOME/homeostat]
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
}

/// Arguments of `reset-state`.
#[derive(Clone, Debug, Args)]
pub struct ResetArgs {
    /// Which run
    pub run: String,
    /// The state directory [default: $XDG_STATE_HOME/homeostat]
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClientError::Io)?;
    let ended = runtime.block_on(choose(verb, waits, screen, program));
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
        Verb::Events(args) if args.follow => events::follow(&session(&args.daemon)?, screen).await?,
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
