//! `homeostat decider` against a daemon: which there are, which is in force, and what may take its place.

use std::path::PathBuf;
use std::time::Duration;

use api::Bytes;
use api::wire::{
    Accept, DeciderCommand, DeciderDetail, DeciderName, DeciderRequest, DeciderResult, Deciders, FailedNodes,
    SwapDetail, Swaps, Uploaded,
};
use clap::{Args, Subcommand, ValueHint};
use step::text::{escape, time_of_day};

use super::look::pen;
use super::order::command_id;
use super::{OnlyDaemon, swap};
use crate::error::{ClientError, Ending};
use crate::place::DaemonArgs;
use crate::screen::Screen;
use crate::session::{Session, Waits, encoded};
use crate::words;

/// The largest file that is read as a component; the daemon's own limit is lower.
const MAX_COMPONENT: u64 = 64 << 20;

/// What can be done with the deciders of a running fleet.
#[derive(Clone, Debug, Subcommand)]
pub enum DeciderVerb {
    /// Put another decider in force, if history and a shadow do not speak against it; watch it then
    Swap(SwapArgs),
    /// List the deciders that the daemon keeps
    Ls(OnlyDaemon),
    /// Show all that is known of a decider of the daemon's
    Show(ShowArgs),
    /// List swaps and shadows, or show what one found
    Swaps(SwapsArgs),
    /// End a swap that has not switched, or a shadow
    Cancel(CancelArgs),
    /// Ask another decider too, and compare, without putting it in force
    #[command(subcommand)]
    Shadow(ShadowVerb),
    /// Put the previous decider in force again, at once and whatever it would do
    Rollback(RollbackArgs),
    /// Let no other decider in until it is unpinned; also ends a quarantine
    Pin(PinArgs),
    /// Let other deciders in again
    Unpin(UnpinArgs),
}

/// A component's file, or a decider that the daemon has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// One that it has.
    Named(DeciderName),
    /// A file of ours.
    File(PathBuf),
}

impl From<&str> for Candidate {
    fn from(text: &str) -> Self {
        match text.parse() {
            Ok(name) => Candidate::Named(name),
            Err(_) => Candidate::File(PathBuf::from(text)),
        }
    }
}

/// Arguments of `decider swap`.
#[derive(Clone, Debug, Args)]
pub struct SwapArgs {
    /// A component's file; or a digest that `ls` lists (its first 8 digits suffice), `built-in` or `previous`
    #[arg(value_name = "FILE|DIGEST", value_hint = ValueHint::FilePath, value_parser = candidate())]
    pub decider: Candidate,
    /// So much history is decided again first; 0s for none
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = humantime::parse_duration)]
    pub replay: Duration,
    /// So long it is asked beside the active one; 0s for not at all
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    pub shadow: Duration,
    /// So long it is watched once in force: a trap, a limit or an invalid plan rolls back; 0s for not at all
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    pub watch: Duration,
    /// So many more failed nodes roll back too: a number, or a share such as 20%
    #[arg(long, value_name = "N|N%", value_parser = |text: &str| text.parse::<FailedNodes>())]
    pub watch_failed: Option<FailedNodes>,
    /// Accept what would be refused: destroys, creates, failures, history, quarantine, all, or RULE->RULE (repeatable)
    #[arg(long, value_name = "KIND", value_parser = |text: &str| text.parse::<Accept>())]
    pub accept_divergence: Vec<Accept>,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Do not wait for what comes of it
    #[arg(short, long, conflicts_with = "wait_watch")]
    pub detach: bool,
    /// Wait for the end of the watch too
    #[arg(long)]
    pub wait_watch: bool,
    /// The command's id: the same again acts once, and gives the first result [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

fn candidate() -> impl clap::builder::TypedValueParser<Value = Candidate> {
    use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
    NonEmptyStringValueParser::new().map(|text| Candidate::from(text.as_str()))
}

fn decider_name() -> impl Fn(&str) -> Result<DeciderName, String> + Clone + Send + Sync + 'static {
    |text: &str| text.parse()
}

/// Arguments of `decider show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// Which: a digest (its first 8 digits suffice), `active`, `previous` or `built-in`
    #[arg(value_name = "DIGEST", default_value = "active", value_parser = decider_name())]
    pub decider: DeciderName,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `decider swaps`.
#[derive(Clone, Debug, Args)]
pub struct SwapsArgs {
    /// Only this one, with all that it found
    pub swap: Option<String>,
    /// At most so many, the latest ones
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: u32,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `decider cancel`.
#[derive(Clone, Debug, Args)]
pub struct CancelArgs {
    /// Which, as `swaps` lists it
    pub swap: String,
    /// The command's id [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// What is done with a shadow.
#[derive(Clone, Debug, Subcommand)]
pub enum ShadowVerb {
    /// Ask a decider too from now on, until it is stopped
    Start(ShadowArgs),
    /// Show what the shadow found so far
    Report(OnlyDaemon),
    /// Stop asking it
    Stop(UnpinArgs),
}

/// Arguments of `decider shadow start`.
#[derive(Clone, Debug, Args)]
pub struct ShadowArgs {
    /// A component's file; or a digest that `ls` lists (its first 8 digits suffice), or `built-in`
    #[arg(value_name = "FILE|DIGEST", value_hint = ValueHint::FilePath, value_parser = candidate())]
    pub decider: Candidate,
    /// So much history is decided again first; 0s for none
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    pub replay: Duration,
    /// The command's id [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `decider rollback`.
#[derive(Clone, Debug, Args)]
pub struct RollbackArgs {
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// The command's id [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `decider pin`.
#[derive(Clone, Debug, Args)]
pub struct PinArgs {
    /// Which: a digest (its first 8 digits suffice), or `active`
    #[arg(value_name = "DIGEST", default_value = "active", value_parser = decider_name())]
    pub decider: DeciderName,
    /// The command's id [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Arguments of `decider unpin` and `decider shadow stop`.
#[derive(Clone, Debug, Args)]
pub struct UnpinArgs {
    /// The command's id [default: a new ULID]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Which daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Does what a verb says.
///
/// # Errors
///
/// As the verb has them; [`ClientError::class`] says which exit code that is.
pub fn run(verb: &DeciderVerb, waits: Waits, screen: &mut Screen) -> Result<Ending, ClientError> {
    super::block_on(choose(verb, waits, screen))
}

async fn choose(verb: &DeciderVerb, waits: Waits, screen: &mut Screen) -> Result<Ending, ClientError> {
    let session = |daemon: &DaemonArgs| -> Result<Session, ClientError> { Ok(Session::new(daemon.place()?, waits)) };
    match verb {
        DeciderVerb::Swap(args) => swap::swap(args, &session(&args.daemon)?, screen).await,
        DeciderVerb::Ls(args) => list(&session(&args.daemon)?, screen).await,
        DeciderVerb::Show(args) => show(&args.decider, &session(&args.daemon)?, screen).await,
        DeciderVerb::Swaps(args) => swaps(args, &session(&args.daemon)?, screen).await,
        DeciderVerb::Cancel(args) => {
            let command = DeciderCommand::Cancel { swap: args.swap.clone() };
            order(command, args.id.as_deref(), &session(&args.daemon)?, screen).await
        }
        DeciderVerb::Shadow(ShadowVerb::Start(args)) => {
            let session = session(&args.daemon)?;
            let decider = bring(&args.decider, &session, screen).await?;
            let replay_ms = millis(args.replay);
            let command = DeciderCommand::Shadow { decider, replay_ms };
            let ended = order(command, args.id.as_deref(), &session, screen).await?;
            if !screen.is_json {
                screen.note("`homeostat decider shadow report` shows what it finds");
            }
            Ok(ended)
        }
        DeciderVerb::Shadow(ShadowVerb::Report(args)) => report(&session(&args.daemon)?, screen).await,
        DeciderVerb::Shadow(ShadowVerb::Stop(args)) => {
            order(DeciderCommand::StopShadow {}, args.id.as_deref(), &session(&args.daemon)?, screen).await
        }
        DeciderVerb::Rollback(args) => super::swap::rollback(args, &session(&args.daemon)?, screen).await,
        DeciderVerb::Pin(args) => {
            let command = DeciderCommand::Pin { decider: Some(args.decider.to_string()) };
            order(command, args.id.as_deref(), &session(&args.daemon)?, screen).await
        }
        DeciderVerb::Unpin(args) => {
            order(DeciderCommand::Unpin {}, args.id.as_deref(), &session(&args.daemon)?, screen).await
        }
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The daemon's name for a candidate; what it has not is sent first.
pub(super) async fn bring(
    candidate: &Candidate,
    session: &Session,
    screen: &mut Screen,
) -> Result<String, ClientError> {
    let file = match candidate {
        Candidate::Named(name) => return Ok(name.to_string()),
        Candidate::File(file) => file,
    };
    let wrong =
        |why: String| ClientError::Usage(format!("{}: {why}; a digest has at least 8 digits, 0 to f", file.display()));
    let size = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?.len();
    if size > MAX_COMPONENT {
        return Err(ClientError::Usage(format!("{}: {size} bytes are no component", file.display())));
    }
    let component = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let uploaded: Uploaded = session.upload("/v1/deciders", Bytes::from(component)).await.map_err(|error| {
        // What is wrong with a file is named with it.
        match error {
            ClientError::Refused(mut problem) => {
                problem.detail = format!("{}: {}", file.display(), problem.detail);
                ClientError::Refused(problem)
            }
            other => other,
        }
    })?;
    if !screen.is_json {
        let known = if uploaded.known { ", which the daemon has already" } else { "" };
        let name = words::decider_name(&uploaded.entry.decider);
        screen.note(&format!("candidate {name}, {} bytes{known}", uploaded.entry.size_bytes));
    }
    Ok(uploaded.entry.decider.digest)
}

/// Has it done, once.
pub(super) async fn send(
    command: DeciderCommand,
    id: Option<&str>,
    session: &Session,
    screen: &mut Screen,
) -> Result<DeciderResult, ClientError> {
    let id = command_id(id)?;
    if !screen.is_json {
        screen.note(&format!("command {id}"));
    }
    let request = DeciderRequest { id: id.clone(), expect_revision: None, command };
    let result: DeciderResult = session.ordered("/v1/deciders/commands", &id, &request).await?;
    if result.replayed && !screen.is_json {
        let at = time_of_day(result.at_ms);
        screen.note(&format!("replayed: it was carried out at {at}; nothing was done now"));
    }
    Ok(result)
}

async fn order(
    command: DeciderCommand,
    id: Option<&str>,
    session: &Session,
    screen: &mut Screen,
) -> Result<Ending, ClientError> {
    let result = send(command, id, session, screen).await?;
    tell(&result, screen)
}

pub(super) fn tell(result: &DeciderResult, screen: &mut Screen) -> Result<Ending, ClientError> {
    match screen.is_json {
        true => screen.json(result)?,
        false => screen.print(&escape(&result.text))?,
    }
    Ok(Ending::Done)
}

async fn list(session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let list: Deciders = session.get("/v1/deciders").await?;
    match screen.is_json {
        true => screen.json(&list)?,
        false => screen.print(&words::deciders(&list, &pen(screen, list.now_ms)))?,
    }
    Ok(Ending::Done)
}

pub(super) async fn detail(name: &DeciderName, session: &Session) -> Result<DeciderDetail, ClientError> {
    session.get(&format!("/v1/deciders/{}", encoded(&name.to_string()))).await
}

async fn show(name: &DeciderName, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let detail = detail(name, session).await?;
    match screen.is_json {
        true => screen.json(&detail)?,
        false => screen.print(&words::decider(&detail, &pen(screen, detail.now_ms)))?,
    }
    Ok(Ending::Done)
}

async fn swaps(args: &SwapsArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    if let Some(id) = &args.swap {
        return one(id, session, screen).await;
    }
    let list: Swaps = session.get(&format!("/v1/swaps?limit={}", args.limit)).await?;
    match screen.is_json {
        true => screen.json(&list)?,
        false if list.swaps.is_empty() => screen.print("no swaps")?,
        false => screen.print(&words::swaps(&list.swaps, &pen(screen, list.now_ms)))?,
    }
    Ok(Ending::Done)
}

pub(super) async fn found(id: &str, session: &Session) -> Result<SwapDetail, ClientError> {
    session.get(&format!("/v1/swaps/{}", encoded(id))).await
}

async fn one(id: &str, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let detail = found(id, session).await?;
    match screen.is_json {
        true => screen.json(&detail)?,
        false => screen.print(&words::swap(&detail, &pen(screen, detail.now_ms)))?,
    }
    Ok(Ending::Done)
}

/// The shadow that runs, or else the last one.
async fn report(session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let list: Swaps = session.get("/v1/swaps?limit=100").await?;
    let shadows = || list.swaps.iter().filter(|swap| swap.kind == api::wire::SwapKind::Shadow);
    match shadows().find(|swap| swap.ended_ms.is_none()).or_else(|| shadows().next()) {
        Some(shadow) => one(&shadow.id, session, screen).await,
        None => Err(ClientError::Failed(
            "nothing ran in shadow: `homeostat decider shadow start FILE` lets something".into(),
        )),
    }
}
