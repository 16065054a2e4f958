//! The arguments of each verb.

use std::path::PathBuf;

use api::wire::Only;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::place::{DaemonArgs, state_dir};

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
    /// Also list nodes that are ready where there are many; with --watch and no terminal, also changes of waits alone
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
    /// Also changes in which only what a node waits for, or until when, is different
    #[arg(short, long, requires = "follow")]
    pub all: bool,
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
    /// What is kept of the last attempt that is gone, also where another one runs
    #[arg(short, long, conflicts_with = "follow")]
    pub previous: bool,
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
    /// Do not ask, also where it will be ended and replaced because it was made from something else
    #[arg(long, short)]
    pub yes: bool,
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
    /// Where to; it must not be there yet [default, and `-`: standard output]
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `snapshot import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// What `snapshot export` wrote; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The state directory, in which the run gets a folder [default: $XDG_STATE_HOME/homeostat]
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_parser = state_dir(), value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
}

/// Arguments of `reset-state`.
#[derive(Clone, Debug, Args)]
pub struct ResetArgs {
    /// Which run
    pub run: String,
    /// The state directory [default: $XDG_STATE_HOME/homeostat]
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_parser = state_dir(), value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}
