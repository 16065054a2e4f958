//! `decider swap`: each stage is told as it goes, and what it found; the last line says how it came out.

use std::collections::BTreeMap;

use api::wire::{
    Accept, DeciderCommand, DeciderName, StageName, StageState, Swap, SwapDetail, SwapTerms, SwapVerdict, What,
};
use step::text::escape;

use super::decider::{Candidate, RollbackArgs, SwapArgs, bring, detail, found, millis, send, tell};
use super::live::{Stop, tell_connection};
use super::look::pen;
use super::order::command_id;
use crate::confirm::{Sure, confirm};
use crate::error::{ClientError, Ending};
use crate::follow::{Follow, Update};
use crate::screen::Screen;
use crate::session::Session;
use crate::words;

pub(super) async fn swap(args: &SwapArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    if args.watch_failed.is_some() && args.watch.is_zero() {
        return Err(ClientError::Usage("--watch-failed: nothing is watched with --watch 0s".into()));
    }
    if args.decider == Candidate::Named(DeciderName::Active) {
        return Err(ClientError::Usage("the active decider is in force: there is nothing to swap".into()));
    }
    ask(args, screen)?;
    // Signals are caught from here on: what is interrupted says what goes on. The next one finds nobody who waits.
    let mut stop = Stop::new()?;
    let id = command_id(args.id.as_deref())?;
    let brought = tokio::select! {
        brought = bring(&args.decider, session, screen) => Some(brought?),
        () = stop.wanted() => None,
    };
    let Some(decider) = brought else {
        screen.note("interrupted; nothing was asked for yet, and nothing is swapped");
        return Ok(Ending::Interrupted);
    };
    let terms = SwapTerms {
        replay_ms: millis(args.replay),
        shadow_ms: millis(args.shadow),
        watch_ms: millis(args.watch),
        watch_failed: args.watch_failed,
        accept: args.accept_divergence.clone(),
    };
    let sent = tokio::select! {
        sent = send(DeciderCommand::Swap { decider, terms }, Some(&id), session, screen) => Some(sent?),
        () = stop.wanted() => None,
    };
    let Some(result) = sent else {
        screen.note(&format!("interrupted before the daemon said that it took it; if it did, {}", goes_on(&id)));
        return Ok(Ending::Interrupted);
    };
    let id = result.swap.clone().unwrap_or_else(|| result.id.clone());
    if args.detach {
        let ended = tell(&result, screen)?;
        if !screen.is_json {
            screen.note(&goes_on(&id));
        }
        return Ok(ended);
    }
    let mut told = Told::default();
    let followed = tokio::select! {
        followed = follow(&id, args.wait_watch, session, screen, &mut told) => Some(followed?),
        () = stop.wanted() => None,
    };
    match followed {
        Some(detail) => judge(&detail, screen),
        None => {
            screen.note(&format!("interrupted; {}", goes_on(&id)));
            Ok(Ending::Interrupted)
        }
    }
}

pub(super) async fn rollback(
    args: &RollbackArgs,
    session: &Session,
    screen: &mut Screen,
) -> Result<Ending, ClientError> {
    // One that was given an id may have been carried out: then another one is the previous.
    if !args.yes && args.id.is_none() {
        let previous = detail(&DeciderName::Previous, session).await?;
        let name = words::decider_name(&previous.entry.decider);
        confirm(screen, false, &format!("{name} will be in force, whatever it would do."), &Sure::Yes)?;
    }
    let result = send(DeciderCommand::Rollback {}, args.id.as_deref(), session, screen).await?;
    let Some(id) = result.swap.clone().filter(|_| !result.replayed) else { return tell(&result, screen) };
    // Its component may be gone: that it was taken does not say that it is in force.
    let mut stop = Stop::new()?;
    let mut told = Told::default();
    let followed = tokio::select! {
        followed = follow(&id, false, session, screen, &mut told) => Some(followed?),
        () = stop.wanted() => None,
    };
    let Some(SwapDetail { swap, .. }) = followed else {
        screen.note(&format!("interrupted; {}", goes_on(&id)));
        return Ok(Ending::Interrupted);
    };
    match swap.verdict {
        Some(SwapVerdict::Switched) => tell(&result, screen),
        _ => Err(ClientError::Failed(format!("the rollback was taken, and is not in force: {}", swap.text))),
    }
}

/// What is accepted may end nodes: a person has to mean it.
fn ask(args: &SwapArgs, screen: &mut Screen) -> Result<(), ClientError> {
    let weighs = |accept: &&Accept| !matches!(accept, Accept::Creates | Accept::History);
    let accepted: Vec<String> = args.accept_divergence.iter().filter(weighs).map(Accept::to_string).collect();
    if accepted.is_empty() {
        return Ok(());
    }
    let question = format!("What would be refused is accepted ({}): nodes may be ended.", accepted.join(", "));
    confirm(screen, args.yes, &question, &Sure::Yes)
}

fn goes_on(id: &str) -> String {
    format!(
        "the swap goes on in the daemon: `homeostat decider swaps {id}` shows it, `homeostat decider cancel {id}` ends it"
    )
}

/// What was told of each stage.
#[derive(Default)]
struct Told(BTreeMap<StageName, (StageState, String)>);

impl Told {
    /// Tells what is new: each stage once when it begins and once when it ends.
    fn tell(&mut self, swap: &Swap, now_ms: u64, screen: &mut Screen) {
        if screen.is_json {
            return;
        }
        for stage in &swap.stages {
            match stage.state {
                StageState::Waiting => break,
                StageState::Cancelled => continue,
                _ => {}
            }
            let line = words::stage_line(stage, now_ms);
            let before = self.0.insert(stage.stage, (stage.state, line.clone()));
            // Of one that runs only the beginning is told.
            if before.is_none_or(|(state, _)| state != stage.state) {
                screen.note(&line);
            }
            // What is skipped later on is told in its place.
            if stage.state == StageState::Running {
                break;
            }
        }
    }
}

/// Until it has come out: at the switch, or, if that is asked for, at the end of the watch.
async fn follow(
    id: &str,
    to_the_end: bool,
    session: &Session,
    screen: &mut Screen,
    told: &mut Told,
) -> Result<SwapDetail, ClientError> {
    let is_over = |swap: &Swap| swap.ended_ms.is_some() || (swap.verdict.is_some() && !to_the_end);
    let mut follow = Follow::new(session.clone());
    let mut was_there = false;
    loop {
        // All instants are the daemon's: this machine's clock may say something else.
        let (swap, now_ms) = match follow.next().await? {
            Update::Change(change) => match change.what {
                What::Swap(swap) if swap.id == id => (*swap, change.at_ms),
                _ => continue,
            },
            // What happened before, or meanwhile, the list may not have any more.
            Update::List(_) => match found(id, session).await {
                Ok(detail) => (detail.swap, detail.now_ms),
                Err(ClientError::Unreachable { .. }) if was_there => continue,
                Err(error) => return Err(error),
            },
            Update::Lost(why) => {
                tell_connection(screen, Some(&why), false)?;
                continue;
            }
            Update::Back => {
                tell_connection(screen, None, false)?;
                continue;
            }
            Update::Relist(_) => continue,
        };
        was_there = true;
        told.tell(&swap, now_ms, screen);
        if is_over(&swap) {
            return found(id, session).await;
        }
    }
}

/// What it found, how it came out, and how that ends the program.
fn judge(detail: &SwapDetail, screen: &mut Screen) -> Result<Ending, ClientError> {
    if screen.is_json {
        screen.json(detail)?;
    } else {
        let reports = words::swap_reports(&detail.reports, &pen(screen, detail.now_ms));
        let differs = detail.reports.iter().any(|report| !report.divergences.is_empty());
        if differs {
            screen.print(reports.trim_start_matches('\n'))?;
        }
        let verdict: Vec<String> = words::swap_verdict(detail).lines().map(escape).collect();
        screen.print(&verdict.join("\n"))?;
    }
    Ok(match detail.swap.verdict {
        Some(SwapVerdict::Switched) => Ending::Done,
        Some(SwapVerdict::Refused) => Ending::Refused,
        _ => Ending::Unwell,
    })
}
