//! `events -f` and `logs`: what happens, and what a node writes.

use std::time::Duration;

use api::wire::{LogLine, Logs};
use serde::Serialize;

use super::LogsArgs;
use super::live::{Stop, tell_connection};
use crate::error::{ClientError, Ending};
use crate::follow::{Follow, Update};
use crate::news::News;
use crate::screen::Screen;
use crate::session::{Session, encoded};
use crate::words;

/// How often new output is asked for.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn follow(all: bool, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    let mut stop = Stop::new()?;
    let mut follow = Follow::new(session.clone());
    let (mut began, mut news) = (false, News::default());
    loop {
        let update = tokio::select! {
            () = stop.wanted() => return Ok(Ending::Done),
            update = follow.next() => update?,
        };
        if let Update::List(list) = &update {
            news.list(list);
        }
        match update {
            Update::Change(change) if !news.is_news(&change) && !all => {}
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
        let previous = if args.previous { "&previous=true" } else { "" };
        let lines = if after.is_empty() { args.lines } else { 10_000 };
        format!("/v1/nodes/{}/logs?lines={lines}{after}{previous}", encoded(&args.node))
    };
    let mut logs: Logs = session.get(&path(None)).await?;
    if logs.is_gone && !screen.is_json {
        let attempt = logs.attempt.unwrap_or_default();
        screen.note(&format!(
            "attempt {attempt} of {} is gone; this is what is kept of the end of its output",
            args.node
        ));
    }
    if !args.follow {
        return match screen.is_json {
            true => screen.json(&logs),
            false if logs.lines.is_empty() => {
                let before = if logs.is_gone { "" } else { "; `--previous` has the attempt before it, if any" };
                let attempt = logs.attempt.map_or_else(String::new, |attempt| format!(" (attempt {attempt})"));
                screen.note(&format!("{}{attempt} has written nothing{before}", args.node));
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
