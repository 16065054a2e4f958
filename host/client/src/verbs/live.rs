//! `status -w`: the fleet as it is, until ^C.

use std::time::{Duration, Instant};

use api::wire::Status;
use serde::Serialize;
use step::text::{escape, fit, lasting};
use tokio::signal::unix::{SignalKind, signal};

use super::{StatusArgs, look};
use crate::error::{ClientError, Ending};
use crate::fleet::fold;
use crate::follow::{Follow, Update};
use crate::news::News;
use crate::screen::Screen;
use crate::session::Session;
use crate::words::{self, Pen};

/// How often a frame is drawn at least, so that times go on, and at most.
const FRAME: Duration = Duration::from_millis(500);
/// After changes the whole list is asked for, so often at most: only the daemon knows why the fleet has not converged.
const REFRESH: Duration = Duration::from_secs(2);

/// A window with so many lines has none to give away.
const TERSE: usize = 30;

/// What ends a verb that follows: ^C, or being told to stop.
pub(super) struct Stop {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Stop {
    pub fn new() -> Result<Self, ClientError> {
        Ok(Stop { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    pub async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// That the connection was lost or is back, for machines.
#[derive(Serialize)]
pub(super) struct Connection<'a> {
    schema: &'static str,
    lost: bool,
    why: &'a str,
}

impl<'a> Connection<'a> {
    pub fn new(lost: bool, why: &'a str) -> Self {
        Connection { schema: "homeostat.connection/v1", lost, why }
    }
}

/// What is shown, and how old it is.
struct Shown {
    status: Status,
    news: News,
    /// The daemon's clock, and ours at the same instant.
    clock: (u64, Instant),
    lost: Option<(Instant, String)>,
}

impl Shown {
    fn now_ms(&self) -> u64 {
        let since = u64::try_from(self.clock.1.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.clock.0.saturating_add(since)
    }

    fn set_clock(&mut self, now_ms: u64) {
        if now_ms > self.now_ms() || self.clock.0 == 0 {
            self.clock = (now_ms, Instant::now());
        }
    }
}

pub(super) async fn status(args: &StatusArgs, session: &Session, screen: &mut Screen) -> Result<Ending, ClientError> {
    // Mistakes end it before the screen is taken.
    let status: Status = session.get("/v1/status").await?;
    look::check_names(&status, &args.groups)?;
    let mut stop = Stop::new()?;
    let is_frame = screen.size.is_some() && !screen.is_json;
    if is_frame {
        screen.draw("\x1b[?1049h\x1b[?25l")?;
    }
    let clock = (status.now_ms, Instant::now());
    let mut shown = Shown { clock, status, news: News::default(), lost: None };
    let ended = follow(args, session, screen, &mut shown, &mut stop, is_frame).await;
    if is_frame {
        screen.draw("\x1b[?25h\x1b[?1049l")?;
        // What was seen last stays.
        let frame = lines(&shown, args, screen);
        screen.print(&frame.join("\n"))?;
    }
    ended.map(|()| Ending::Done)
}

async fn follow(
    args: &StatusArgs,
    session: &Session,
    screen: &mut Screen,
    shown: &mut Shown,
    stop: &mut Stop,
    is_frame: bool,
) -> Result<(), ClientError> {
    let mut follow = Follow::new(session.clone());
    let mut frame = tokio::time::interval(FRAME);
    frame.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut is_old, mut asked) = (false, Instant::now());
    loop {
        tokio::select! {
            () = stop.wanted() => return Ok(()),
            update = follow.next() => {
                let update = update?;
                is_old |= matches!(update, Update::Change(_));
                take(update, args, screen, shown, is_frame)?;
            }
            _ = frame.tick() => {
                if is_old && shown.lost.is_none() && asked.elapsed() >= REFRESH {
                    (is_old, asked) = (false, Instant::now());
                    // Where this fails, the stream fails too, and says so.
                    if let Ok(status) = session.get::<Status>("/v1/status").await {
                        shown.set_clock(status.now_ms);
                        shown.status = status;
                    }
                }
                if is_frame {
                    screen.measure();
                    let frame = lines(shown, args, screen);
                    screen.draw(&format!("\x1b[H{}\x1b[K\x1b[J", frame.join("\x1b[K\r\n")))?;
                }
            }
        }
    }
}

/// Keeps what is new, and tells it where there are no frames.
fn take(
    update: Update,
    args: &StatusArgs,
    screen: &mut Screen,
    shown: &mut Shown,
    is_frame: bool,
) -> Result<(), ClientError> {
    match update {
        Update::List(list) => {
            shown.set_clock(list.now_ms);
            shown.news.list(&list);
            shown.status = *list;
            shown.lost = None;
            if screen.is_json {
                let mut status = shown.status.clone();
                look::narrow(&mut status, &args.groups);
                screen.json_line(&status)?;
            } else if !is_frame {
                let most = if args.all { usize::MAX } else { look::SCREENFUL };
                let text = words::status_lines(&shown.status, &args.groups, most, &look::pen(screen, shown.now_ms()));
                screen.print(&text)?;
            }
        }
        Update::Change(change) => {
            shown.set_clock(change.at_ms);
            fold(&mut shown.status, &change);
            let is_news = shown.news.is_news(&change) || args.all;
            if is_about(&change.what, &args.groups) {
                if screen.is_json {
                    // Whoever keeps a status by them needs each.
                    screen.json_line(&change)?;
                } else if !is_frame && is_news {
                    screen.print(&words::change(&change))?;
                }
            }
        }
        Update::Lost(why) => {
            tell_connection(screen, Some(&why), is_frame)?;
            shown.lost = Some((Instant::now(), why));
        }
        Update::Back => {
            tell_connection(screen, None, is_frame)?;
            shown.lost = None;
        }
        Update::Relist(_) => {}
    }
    Ok(())
}

/// Says that the connection was lost, or that it is back.
pub(super) fn tell_connection(screen: &mut Screen, lost: Option<&str>, is_frame: bool) -> Result<(), ClientError> {
    match (screen.is_json, lost) {
        (true, lost) => screen.json_line(&Connection::new(lost.is_some(), lost.unwrap_or_default()))?,
        (false, _) if is_frame => {}
        (false, Some(why)) => screen.note(&format!("the connection is lost ({why}); trying again")),
        (false, None) => screen.note("the connection is back"),
    }
    Ok(())
}

/// What is about no node is about all.
fn is_about(what: &api::wire::What, names: &[String]) -> bool {
    use api::wire::What;
    match what {
        _ if names.is_empty() => true,
        What::Node(node) => names.contains(&node.group) || names.contains(&node.node),
        What::Gone { node } => {
            names.iter().any(|name| name == node || node.rsplit_once('-').is_some_and(|(group, _)| group == name))
        }
        _ => true,
    }
}

/// A frame: as many lines as there is room for.
fn lines(shown: &Shown, args: &StatusArgs, screen: &Screen) -> Vec<String> {
    let (width, height) = screen.size.unwrap_or((usize::MAX, usize::MAX));
    // The last column is left free: filling it makes some terminals wrap.
    let width = width.saturating_sub(1).max(20);
    let is_terse = height <= TERSE;
    let pen = Pen { style: screen.style(), width: Some(width), now_ms: shown.now_ms(), is_terse };
    let mut frame = Vec::new();
    if let Some((since, why)) = &shown.lost {
        let age = lasting(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        let banner = fit(&format!(" STALE for {age}: {why}; trying again "), width);
        frame.push(screen.style().reverse().apply_to(banner).to_string());
    }
    // The lines above the nodes are few; what does not fit is cut.
    let room = height.saturating_sub(frame.len() + shown.status.pauses.len() + shown.status.groups.len() + 8);
    let most = if args.all { usize::MAX } else { room.max(4) };
    let text = words::status_lines(&shown.status, &args.groups, most, &pen);
    frame.extend(text.lines().map(|line| console::truncate_str(line, width, "…").into_owned()));
    if frame.len() > height.max(2) {
        frame.truncate(height.max(2) - 1);
        frame.push(escape("… there is more; a larger window shows it"));
    }
    frame
}
