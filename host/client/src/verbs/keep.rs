//! Verbs about the state and the way to the daemon: export, import, reset, token, dashboard.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use api::wire::{self, CarriedDeciders, Export, Status};
use serde::Serialize;
use step::text::counted;
use store::Secret;

use super::{ExportArgs, ImportArgs, Known, Program, ResetArgs};
use crate::confirm::{Sure, confirm};
use crate::error::ClientError;
use crate::place::{DaemonArgs, Place, TOKEN_LABEL};
use crate::screen::Screen;
use crate::session::{Session, Waits};

/// A snapshot is not larger.
const MAX_EXPORT: u64 = 1 << 30;
/// The name of standard output, and input.
const STANDARD: &str = "-";

/// What `snapshot export` wrote, or `snapshot import` made.
#[derive(Serialize)]
struct Carried<'a> {
    schema: &'static str,
    run: &'a str,
    /// The file, or the folder of the run.
    path: String,
    /// The first record that is not in it: where a daemon goes on.
    next_seq: u64,
    /// The decider in force.
    decider: Option<&'a str>,
    /// Deciders whose component is not in it.
    left_out: Vec<&'a str>,
}

impl<'a> Carried<'a> {
    fn of(schema: &'static str, export: &'a Export, path: &Path) -> Self {
        let deciders = export.deciders.as_ref();
        let left_out = deciders.map(|of| of.left_out.iter().map(|one| one.digest.as_str()).collect());
        Carried {
            schema,
            run: &export.run,
            path: path.display().to_string(),
            next_seq: export.next_seq,
            decider: deciders.map(|of| of.active.as_str()),
            left_out: left_out.unwrap_or_default(),
        }
    }
}

/// What `reset-state` did.
#[derive(Serialize)]
struct Reset<'a> {
    schema: &'static str,
    run: &'a str,
    /// Where what was known is now.
    aside: String,
    /// The resources that are orphans from now on; none where that could not be read.
    resources: Option<&'a [Known]>,
}

pub(super) async fn export(args: &ExportArgs, session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let export: Export = session.get("/v1/snapshot").await?;
    let Some(path) = args.file.as_ref().filter(|path| path.as_os_str() != STANDARD) else {
        return screen.json(&export);
    };
    let failed = |error: std::io::Error| ClientError::Failed(format!("{}: {error}", path.display()));
    // It holds templates, and with them what may be secret.
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => ClientError::Failed(format!(
            "{}: it is there already, and is not overwritten: choose another name",
            path.display()
        )),
        _ => failed(error),
    })?;
    let text = serde_json::to_vec_pretty(&export).map_err(|error| ClientError::Failed(error.to_string()))?;
    file.write_all(&text).and_then(|()| file.write_all(b"\n")).and_then(|()| file.sync_all()).map_err(failed)?;
    if let Some(carried) = &export.deciders {
        screen.note(&carried_words(carried));
        for one in &carried.left_out {
            screen.note(&format!("left out: the decider {}: {}", one.digest, one.why));
        }
    }
    screen.note(&format!(
        "{}: run {} up to record {}; it has templates in it, values of environments included: keep it as safe as the state",
        path.display(),
        export.run,
        export.next_seq.saturating_sub(1)
    ));
    match screen.is_json {
        true => screen.json(&Carried::of("homeostat.snapshot-export/v1", &export, path)),
        false => Ok(()),
    }
}

pub(super) fn import<P: Program>(args: &ImportArgs, screen: &mut Screen, program: &P) -> Result<(), P::Error> {
    let wrong = |why: String| ClientError::Usage(format!("{}: {why}", args.file.display()));
    let text = match args.file.as_os_str() == STANDARD {
        true => screen.read_input(MAX_EXPORT)?,
        false => {
            let file = std::fs::File::open(&args.file).map_err(|error| wrong(error.to_string()))?;
            let mut text = Vec::new();
            let read = file.take(MAX_EXPORT + 1).read_to_end(&mut text);
            read.map_err(|error| wrong(error.to_string()))?;
            text
        }
    };
    if text.len() as u64 > MAX_EXPORT {
        return Err(wrong(format!("more than {MAX_EXPORT} bytes is more than a snapshot has")).into());
    }
    let export: Export = serde_json::from_slice(&text).map_err(|error| wrong(format!("no snapshot: {error}")))?;
    if export.schema != "homeostat.snapshot/v1" {
        return Err(wrong(format!("schema {:?} is not homeostat.snapshot/v1", export.schema)).into());
    }
    let daemon = DaemonArgs { run: Some(export.run.clone()), state: args.state.clone(), ..DaemonArgs::default() };
    let (folder, run) = daemon.run_folder()?;
    program.import(&folder, &export)?;
    screen.note(&match &export.deciders {
        Some(carried) => carried_words(carried),
        None => {
            "there is no decider in the snapshot: the daemon begins with the built-in one, or with --decider".into()
        }
    });
    screen.note(&format!(
        "{}: a daemon of run {run} now starts from record {}. What the providers hold meanwhile is looked at then, and what \
         the snapshot does not know is an orphan",
        folder.display(),
        export.next_seq
    ));
    if screen.is_json {
        screen.json(&Carried::of("homeostat.snapshot-import/v1", &export, &folder))?;
    }
    Ok(())
}

/// Which deciders go along.
fn carried_words(carried: &CarriedDeciders) -> String {
    let title = |digest: &str| {
        let title = carried.components.iter().find(|one| one.digest == digest).map_or("", |one| one.title.as_str());
        format!("{title} ({})", wire::short(digest, 12)).trim_start().to_owned()
    };
    let others: Vec<String> =
        carried.components.iter().filter(|one| one.digest != carried.active).map(|one| title(&one.digest)).collect();
    match others.is_empty() {
        true => format!("decider {}, with its component", title(&carried.active)),
        false => {
            format!("decider {}, with its component and those of {}", title(&carried.active), others.join(" and "))
        }
    }
}

pub(super) async fn reset<P: Program>(
    args: &ResetArgs,
    waits: Waits,
    screen: &mut Screen,
    program: &P,
) -> Result<(), P::Error> {
    let daemon = DaemonArgs { run: Some(args.run.clone()), state: args.state.clone(), ..DaemonArgs::default() };
    let (folder, run) = daemon.run_folder()?;
    if std::fs::symlink_metadata(&folder).is_err() {
        return Err(ClientError::Usage(format!("{}: there is no state of a run {run:?}", folder.display())).into());
    }
    if Session::new(daemon.place()?, waits).get::<Status>("/v1/status").await.is_ok() {
        let why = format!("a daemon keeps {run}: stop it first; nothing was changed");
        return Err(ClientError::Failed(why).into());
    }
    screen
        .note(&format!("{}: all that is known of run {run}, its history and its key are put aside.", folder.display()));
    let known = program.known(&folder).ok();
    match known.as_deref() {
        Some([]) => screen.note("It knows of no resources."),
        Some(known) => {
            screen.note(&format!(
                "It knows of {}. They are not ended; to a daemon that starts anew they are orphans, which it leaves alone:",
                counted(known.len() as u64, "resource")
            ));
            const SHOWN: usize = 40;
            for resource in known.iter().take(SHOWN) {
                let Known { node, attempt, provider, lease } = resource;
                screen.note(&format!("  {node}  a{attempt}  {provider}/{lease}"));
            }
            if known.len() > SHOWN {
                screen.note(&format!("  and {} more", known.len() - SHOWN));
            }
        }
        // Damaged state is what one resets; the providers still tell.
        None => screen.note(
            "What it knows cannot be read. Whatever the providers hold for this run is not ended; to a daemon that starts \
             anew it is an orphan.",
        ),
    }
    screen.note("Tokens that derive from its key are void afterwards.");
    confirm(screen, args.yes, "This cannot be undone by a daemon.", &Sure::Typed(run.clone()))?;
    let aside = program.reset(&folder)?;
    screen.note(&format!("done; what was there is in {} until you remove it", aside.display()));
    if screen.is_json {
        let aside = aside.display().to_string();
        let resources = known.as_deref();
        screen.json(&Reset { schema: "homeostat.reset-state/v1", run: &run, aside, resources })?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Token<'a> {
    schema: &'static str,
    run: &'a str,
    token: String,
}

/// The token derives from the key, so whoever can read the key may have it.
pub(super) fn token(daemon: &DaemonArgs, screen: &mut Screen) -> Result<(), ClientError> {
    if daemon.address.is_some() || daemon.socket.is_some() {
        return Err(ClientError::Usage("the token derives from a key on this machine: give --state and --run".into()));
    }
    let (folder, run) = daemon.run_folder()?;
    let token = Secret::look(&folder)?.token(TOKEN_LABEL);
    if screen.is_json {
        return screen.json(&Token { schema: "homeostat.token/v1", run: &run, token });
    }
    screen.print(&token)
}

#[derive(Serialize)]
struct Dashboard<'a> {
    schema: &'static str,
    url: Option<&'a str>,
}

pub(super) async fn dashboard(session: &Session, screen: &mut Screen) -> Result<(), ClientError> {
    let status: Status = session.get("/v1/status").await?;
    let url = match session.place() {
        place @ Place::Address { .. } => Some(format!("{}/", place.words())),
        Place::Socket { .. } => status.listens.first().map(|address| format!("{}/", address.trim_end_matches('/'))),
    };
    if screen.is_json {
        return screen.json(&Dashboard { schema: "homeostat.dashboard/v1", url: url.as_deref() });
    }
    match url {
        Some(url) => {
            screen.print(&url)?;
            screen.note("it asks for the token that `homeostat token` prints");
            Ok(())
        }
        None => Err(ClientError::Failed(
            "this daemon listens at its socket only, and browsers do not speak to sockets: start it with --listen \
             127.0.0.1:PORT"
                .into(),
        )),
    }
}
