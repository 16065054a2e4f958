//! What `up` shows: a live table on a terminal, else a line for each change.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use engine::id::OperationId;
use engine::view::View;
use serde::Serialize;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::super::priority::{self, Priority};
use super::super::{Failure, Terminal};
use super::lines::Lines;
use crate::backends::process::Leftover;
use crate::runtime::{Farewell, HostEvent, HostHandle};
use crate::view::{LiveTable, NodeChange, Summary, lasting, named, not_ready, notice, rows, summary, table, weight};

/// How often the table is drawn again, for the times that are running.
const FRAME: Duration = Duration::from_millis(200);
/// How long a line on standard error waits for those before it on standard output.
const ORDER: Duration = Duration::from_millis(20);
/// How long the last lines may take to be read.
const LAST_LINES: Duration = Duration::from_secs(2);

/// What `up` shows.
pub(in crate::cli) struct Screen {
    terminal: Terminal,
    views: watch::Receiver<Arc<View>>,
    events: broadcast::Receiver<HostEvent>,
    /// How it was when this began to listen.
    first: Arc<View>,
    table: Option<LiveTable>,
    frames: Interval,
    lines: Lines,
    /// The fleet is being taken down: that nothing is left is not what anybody waits for as converged.
    ending: bool,
    /// The generation that the fleet had converged to when this began.
    began_converged: Option<u64>,
}

#[derive(Serialize)]
struct Note<'a> {
    schema: &'static str,
    at_ms: u64,
    note: &'a str,
}

#[derive(Serialize)]
struct Late<'a> {
    schema: &'static str,
    at_ms: u64,
    timeout_ms: u64,
    not_ready: Vec<&'a engine::view::NodeView>,
}

#[derive(Serialize)]
struct End<'a> {
    schema: &'static str,
    at_ms: u64,
    kept: bool,
    clean: bool,
    removed: Vec<String>,
    left: Vec<Left<'a>>,
    given_up: Vec<String>,
    unlisted: &'a [(String, String)],
}

#[derive(Serialize)]
struct Left<'a> {
    node: &'a str,
    attempt: u64,
    pid: Option<i32>,
    port: Option<u16>,
    dir: String,
}

impl Screen {
    /// Misses nothing from here on; shows nothing before [`Screen::open`].
    pub fn new(terminal: &Terminal, host: &HostHandle) -> Self {
        let live = !terminal.is_json() && std::io::stdout().is_terminal();
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let events = host.events();
        let views = host.watch();
        let first = views.borrow().clone();
        Screen {
            terminal: *terminal,
            views,
            events,
            first,
            table: live.then(|| LiveTable::new(console::Term::stdout())),
            frames,
            lines: Lines::start(std::io::stdout()),
            ending: false,
            began_converged: None,
        }
    }

    /// Shows how it was at the start. Whoever reads it may ask at once, so the interface has to be there.
    pub fn open(&mut self, host: &HostHandle) {
        if self.table.is_none() {
            let view = self.first.clone();
            for node in &view.nodes {
                self.change(&NodeChange::of(node, view.now_ms));
            }
            if view.converged {
                self.out(&ConvergedLine { generation: view.generation });
                self.began_converged = Some(view.generation);
            }
        }
        for said in host.opening() {
            self.notice(said);
        }
        for line in host.opening_about_deciders() {
            self.note(line);
        }
    }

    /// Waits for the next thing to show, and shows it. May be dropped while it waits.
    pub async fn next(&mut self) {
        tokio::select! {
            event = self.events.recv() => match event {
                Ok(event) => self.event(&event),
                Err(RecvError::Lagged(missed)) => self.note(&format!("{missed} changes were not shown")),
                Err(RecvError::Closed) => std::future::pending().await,
            },
            _ = self.frames.tick(), if self.table.is_some() => self.draw(),
        }
    }

    /// Shows what waits to be shown.
    pub async fn catch_up(&mut self) {
        loop {
            match self.events.try_recv() {
                Ok(event) => self.event(&event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.draw();
    }

    /// From now on the fleet is being taken down.
    pub fn ending(&mut self) {
        self.ending = true;
    }

    /// Writes what waits, and leaves the terminal as it was.
    pub fn close(&mut self) {
        self.lines.flush(LAST_LINES);
        if let Some(table) = &mut self.table {
            let _ = table.finish();
        }
    }

    fn draw(&mut self) {
        let Some(live) = &mut self.table else { return };
        let view = self.views.borrow().clone();
        let (width, height) = live.size();
        // Nothing is left of the fleet: neither is there a table.
        let over = self.ending && view.nodes.is_empty();
        let summary = Summary { ending: self.ending, ..summary(&view) };
        let lines = if over {
            Vec::new()
        } else {
            table(&summary, &rows(&view, now_ms()), width, height, self.terminal.out_color)
        };
        let _ = live.draw(&lines);
    }

    fn event(&mut self, event: &HostEvent) {
        match event {
            HostEvent::Node(node) if self.table.is_none() => {
                self.began_converged = None;
                self.change(&NodeChange::of(node, now_ms()));
            }
            HostEvent::Gone { node } if self.table.is_none() => self.out(&GoneLine { node }),
            // Said already, if it came between the two looks at the start.
            HostEvent::Converged { generation } if self.began_converged.take() == Some(*generation) => {}
            HostEvent::Converged { generation } if self.table.is_none() && !self.ending => {
                self.out(&ConvergedLine { generation: *generation })
            }
            HostEvent::Node(_) | HostEvent::Gone { .. } | HostEvent::Converged { .. } => {}
            HostEvent::Notice(said) => self.notice(said),
            HostEvent::Swap(swap) => self.say(&::step::swapped(swap), Priority::of(weight(swap.step))),
            HostEvent::ListingFailed { provider, reason } => {
                let text = format!("{provider}: its listing failed, nothing follows from that: {reason}");
                self.say(&text, Priority::Warning);
            }
            HostEvent::Restless { reason } => self.say(reason, Priority::Error),
        }
    }

    fn change(&mut self, change: &NodeChange) {
        let line = if self.terminal.is_json() { json(change) } else { change.to_string() };
        self.print(&line);
    }

    fn out(&mut self, line: &impl Line) {
        let text = if self.terminal.is_json() { line.json() } else { line.text() };
        self.print(&text);
    }

    /// A line of data on standard output.
    fn print(&mut self, line: &str) {
        let dropped = self.lines.print(line.to_owned());
        if dropped > 0 {
            self.note(&format!("{dropped} lines were not shown: nobody read them"));
        }
    }

    fn notice(&mut self, said: &engine::io::Notice) {
        let (level, text) = notice(said);
        self.say(&text, Priority::of(level));
    }

    /// A line for people, on standard error; above the table where there is one.
    pub fn note(&mut self, text: &str) {
        self.say(text, Priority::Info);
    }

    /// The same, of something that somebody should look at.
    pub fn warn(&mut self, text: &str) {
        self.say(text, Priority::Warning);
    }

    fn say(&mut self, text: &str, priority: Priority) {
        if self.terminal.is_json() {
            let line = json(&Note { schema: "homeostat.note/v1", at_ms: now_ms(), note: text });
            return self.print(&line);
        }
        self.above(&format!("homeostat: {text}"), priority);
    }

    /// Something cannot be done.
    pub fn cannot(&mut self, failure: &Failure) {
        if let Some(text) = self.terminal.failure_text(failure) {
            self.above(&text, Priority::Warning);
        }
    }

    /// Something of the operator's was refused; nothing changed.
    pub fn refused(&mut self, failure: &Failure) {
        self.cannot(failure);
        self.warn("the edit is refused as a whole; nothing changed");
    }

    fn above(&mut self, text: &str, priority: Priority) {
        match &mut self.table {
            Some(live) => {
                let _ = live.print_above(text);
                self.draw();
            }
            None => {
                // What was written before it should be read before it, where both go to one place.
                self.lines.flush(ORDER);
                priority::write(text, priority, self.terminal.to_journal);
            }
        }
    }

    /// The time is over: each node that is not ready, and why.
    pub fn not_in_time(&mut self, view: &View, timeout: Duration) {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let waiting: Vec<_> = view.nodes.iter().filter(|node| !node.ready || node.deleting).collect();
        if self.terminal.is_json() {
            let line =
                json(&Late { schema: "homeostat.not-in-time/v1", at_ms: now_ms(), timeout_ms, not_ready: waiting });
            return self.print(&line);
        }
        let mut text = format!("homeostat: not converged within {}", lasting(timeout_ms));
        for line in not_ready(&rows(view, now_ms())) {
            text.push_str("\n  ");
            text.push_str(&line);
        }
        self.above(&text, Priority::Warning);
    }

    /// What was removed and what is left.
    pub fn farewell(&mut self, before: &View, farewell: &Farewell, left: &[Leftover], kept: bool) {
        let still: Vec<&str> = left.iter().map(|lease| lease.key.slot.as_str()).collect();
        let held = before.nodes.iter().filter(|node| node.attempt.is_some());
        let removed: Vec<String> = match kept {
            true => Vec::new(),
            false => held.map(|node| node.node.clone()).filter(|node| !still.contains(&node.as_str())).collect(),
        };
        if self.terminal.is_json() {
            let line = json(&End {
                schema: "homeostat.end/v1",
                at_ms: now_ms(),
                kept,
                clean: farewell.is_clean(),
                removed,
                left: left.iter().map(Left::of).collect(),
                given_up: farewell.given_up.iter().map(ToString::to_string).collect(),
                unlisted: &farewell.unlisted,
            });
            return self.print(&line);
        }
        let mut lines = Vec::new();
        if !removed.is_empty() {
            lines.push(format!("homeostat: removed {}: {}", counted(removed.len()), named(&removed)));
        }
        match (left.is_empty(), kept) {
            (true, false) => lines.push("homeostat: nothing is left".into()),
            (true, true) => lines.push("homeostat: no node is running".into()),
            (false, _) => {
                let why = if kept { "left for the next `up` of this run" } else { "left behind" };
                lines.push(format!("homeostat: {why}: {}", counted(left.len())));
                lines.extend(left.iter().map(left_text));
            }
        }
        // Those of what is left are no news.
        let known = |id: &OperationId| left.iter().any(|lease| lease.key.attempt == id.attempt);
        for id in farewell.given_up.iter().filter(|id| !kept && !known(id)) {
            lines.push(format!("homeostat: operation {id} did not end; it may still happen"));
        }
        for (provider, reason) in &farewell.unlisted {
            lines.push(format!("homeostat: {provider} gave no last listing, so it may hold more: {reason}"));
        }
        self.above(&lines.join("\n"), Priority::Info);
    }
}

impl<'a> Left<'a> {
    fn of(lease: &'a Leftover) -> Self {
        Left {
            node: &lease.key.slot,
            attempt: lease.key.attempt.0,
            pid: lease.pid,
            port: lease.port,
            dir: lease.dir.display().to_string(),
        }
    }
}

fn left_text(lease: &Leftover) -> String {
    let mut text = format!("  {} {}", lease.key.slot, lease.key.attempt);
    match lease.pid {
        Some(pid) => text.push_str(&format!(" pid {pid}")),
        None => text.push_str(" no process"),
    }
    if let Some(port) = lease.port {
        text.push_str(&format!(" port {port}"));
    }
    text.push_str(&format!(" {}", lease.dir.display()));
    text
}

/// A line of output that is not about one node.
trait Line {
    fn text(&self) -> String;
    fn json(&self) -> String;
}

struct GoneLine<'a> {
    node: &'a str,
}

impl Line for GoneLine<'_> {
    fn text(&self) -> String {
        format!("node={} stage=gone", self.node)
    }

    fn json(&self) -> String {
        json(&serde_json::json!({ "schema": "homeostat.gone/v1", "at_ms": now_ms(), "node": self.node }))
    }
}

struct ConvergedLine {
    generation: u64,
}

impl Line for ConvergedLine {
    fn text(&self) -> String {
        format!("converged=true generation={}", self.generation)
    }

    fn json(&self) -> String {
        json(
            &serde_json::json!({ "schema": "homeostat.converged/v1", "at_ms": now_ms(), "generation": self.generation }),
        )
    }
}

fn counted(nodes: usize) -> String {
    if nodes == 1 { "1 node".into() } else { format!("{nodes} nodes") }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()))
}

/// The host's clock, as far as a person can tell.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
