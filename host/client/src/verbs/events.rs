//! `events -f` and `logs`: what happens, and what a node writes.

use std::time::Duration;

use api::wire::{LogLine, Logs};
use serde::Serialize;

use super::LogsArgs;
use super::live::{Stop, tell_connection};
use crate::error::{ClientError, Ending};
use crate::follow::{Follow, Update};
use crate::screen::Screen;
use crate::session::{Session, encoded};
use crate::words;

/// How often new output is asked for.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn follow(session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let mut stop = Stop::new()?;
    let mut follow = Follow::new(session.clone());
    let mut began = false;
    loop {
        let update = tokio::select! {
            () = stop.wanted() => return Ok(Ending::Done),
            update = follow.next() => update?,
        };
        match update {
            Update::List(_) if !began => began = true,
            Update::List(list) if screen.is_json => screen.json_line(&list)?,
            Update::List(_) => {}
            Update::Change(change) if screen.is_json => screen.json_line(&change)?,
            Update::Change(change) => screen.print(&words::change(&change))?,
            Update::Relist(why) => screen.note(&format!("changes were missed: {why}")),
            Update::Lost(why) => tell_connection(screen, Some(&why), false)?,
            Update::Back => tell_connection(screen, None, false)?,
        }
    }
}

#[derive(Serialize)]
struct OneLine<'a> {
    schema: &'static str,
    node: &'a str,
    attempt: Option<u64>,
    #[serde(flatten)]
    line: &'a LogLine,
}

pub(super) async fn logs(args: &LogsArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let path = |after: Option<u64>| {
        let after = after.map(|after| format!("&after={after}")).unwrap_or_default();
        format!(
            "/v1/nodes/{}/logs?lines={}{after}",
            encoded(&args.node),
            if after.is_empty() { args.lines } else { 10_000 }
        )
    };
    let mut logs: Logs = session.get(&path(None)).await?;
    if !args.follow {
        return match screen.is_json {
            true => screen.json(&logs),
            false if logs.lines.is_empty() => {
                screen.note(&format!("{} has written nothing", args.node));
                Ok(())
            }
            false => show(&logs, screen),
        }
        .map(|()| Ending::Done);
    }
    let mut stop = Stop::new()?;
    let mut is_lost = false;
    loop {
        show(&logs, screen)?;
        let (attempt, mut after) = (logs.attempt, Some(logs.next));
        logs = loop {
            tokio::select! {
                () = stop.wanted() => return Ok(Ending::Done),
                () = tokio::time::sleep(LOOK) => {}
            }
            match session.get::<Logs>(&path(after)).await {
                Ok(next) if next.attempt != attempt && after.is_some() => {
                    let words = next.attempt.map_or_else(|| "vacant".into(), |attempt| format!("attempt {attempt}"));
                    screen.note(&format!("--- {}: {words} ---", args.node));
                    // Another attempt's output begins anew.
                    after = None;
                }
                Ok(next) => {
                    if std::mem::take(&mut is_lost) {
                        tell_connection(screen, None, false)?;
                    }
                    break next;
                }
                Err(ClientError::Unreachable { why, .. }) => {
                    if !std::mem::replace(&mut is_lost, true) {
                        tell_connection(screen, Some(&why), false)?;
                    }
                }
                Err(error) => return Err(error),
            }
        };
    }
}

fn show(logs: &Logs, screen: &mut Screen) -> Result<(), ClientError> {
    for line in &logs.lines {
        if screen.is_json {
            let Logs { node, attempt, .. } = logs;
            screen.json_line(&OneLine { schema: "homeostat.log-line/v1", node, attempt: *attempt, line })?;
        } else {
            screen.print(&words::log_line(line))?;
        }
    }
    Ok(())
}
