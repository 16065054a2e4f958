//! A bootstrap session: follows a boot process from its start to its end and reports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use decider::Progress;
use tokio::sync::watch;

use super::lease::{JOINED, OUTPUT};
use super::output::{Tail, printable};
use super::probe::Prober;
use super::spawn::BootProcess;
use crate::backends::{Observation, ObservationSink};

/// Least time between two reports of output.
const REPORT_EVERY: Duration = Duration::from_millis(500);
/// How often the log is looked at: while a line of it is waited for, while joining, once joined.
const LOOK_PATTERN: Duration = Duration::from_millis(20);
const LOOK_JOINING: Duration = Duration::from_millis(100);
const LOOK_JOINED: Duration = Duration::from_millis(250);
/// The longest pause between two looks at the log of a joined node that writes nothing.
const LOOK_QUIET: Duration = Duration::from_secs(1);
/// How much of an earlier host's log is read again when nothing in it is waited for, in bytes.
const BACK_BYTES: u64 = 4096;
/// Of a log that grows faster than it can be read, what is more than this many limits behind is passed over; later while a
/// line of it is waited for.
const BACKLOG_LIMITS: u64 = 8;
const BACKLOG_LIMITS_PATTERN: u64 = 64;
/// How many pieces of the log are read before other tasks get a turn.
const PIECES: u32 = 4;

/// What a session needs.
#[derive(Debug)]
pub struct Session {
    /// The boot process.
    pub process: Arc<BootProcess>,
    /// The lease's directory.
    pub dir: PathBuf,
    /// The join probe.
    pub prober: Prober,
    /// A log beyond this size is cut, in bytes.
    pub log_limit: u64,
    /// Where reports go.
    pub sink: ObservationSink,
    /// Whoever listens knows the session: a probe that held once is not tried again.
    pub known: bool,
}

/// Nobody listens any more.
struct Unheard;

impl Session {
    /// Runs to the end of the process, or of whoever listens.
    pub async fn run(self) {
        let _ = self.follow().await;
    }

    async fn report(&self, observation: Observation) -> Result<(), Unheard> {
        if self.sink.send(observation).await { Ok(()) } else { Err(Unheard) }
    }

    async fn follow(&self) -> Result<(), Unheard> {
        let flag = self.dir.join(JOINED);
        let pattern = self.prober.pattern().cloned();
        let was_joined = flag.exists();
        let mut joined = was_joined && (pattern.is_some() || self.known);
        // A command may write a lot before it is looked at for the first time; what is waited for is perhaps at the start.
        let back = match &pattern {
            _ if was_joined => BACK_BYTES,
            Some(_) => self.log_limit.saturating_mul(BACKLOG_LIMITS_PATTERN),
            None => self.log_limit,
        };
        let mut log = Log::new(Tail::new(self.dir.join(OUTPUT), back), self.log_limit);
        let (trouble, mut troubles) = watch::channel(String::new());

        self.report(Observation::Progress(Progress::Start)).await?;
        if self.process.ended().is_none() {
            self.report(Observation::Progress(Progress::Join)).await?;
            if joined {
                self.joined().await?;
            }
        }
        let mut probe = std::pin::pin!(self.prober.until_held(&trouble));
        let mut end = std::pin::pin!(self.process.wait());
        let mut quiet = LOOK_JOINED;
        let how = loop {
            let look = match (joined, &pattern) {
                _ if log.is_busy => Duration::from_millis(1),
                (true, _) => quiet,
                (false, Some(_)) => LOOK_PATTERN,
                (false, None) => LOOK_JOINING,
            };
            let mut held = false;
            tokio::select! {
                biased;
                how = &mut end => break how,
                () = &mut probe, if !joined && pattern.is_none() => held = true,
                () = tokio::time::sleep(look) => {}
            }
            let backlog = if joined || pattern.is_none() { BACKLOG_LIMITS } else { BACKLOG_LIMITS_PATTERN };
            let mut is_quiet = true;
            let looked = log.read(backlog, |line| {
                is_quiet = false;
                held |= pattern.as_ref().is_some_and(|pattern| pattern.is_match(line));
            });
            looked.await;
            quiet = if is_quiet { (quiet * 2).min(LOOK_QUIET) } else { LOOK_JOINED };
            if held && !joined {
                // The end wins: what has ended is not ready, whatever it said before.
                if let Some(how) = self.process.ended() {
                    break how;
                }
                joined = true;
                let _ = std::fs::File::create(&flag);
                self.joined().await?;
            }
            if let Some(line) = log.line_to_report() {
                self.report(Observation::Output(line)).await?;
            } else if !joined && troubles.has_changed().unwrap_or(false) && log.is_quiet() {
                let why = troubles.borrow_and_update().clone();
                log.reported();
                self.report(Observation::Output(format!("join probe: {why}"))).await?;
            }
        };
        log.finish().await;
        if let Some(line) = log.unreported() {
            self.report(Observation::Output(line)).await?;
        }
        if !joined && !was_joined {
            let last = log.tail.last.as_deref().map(printable).map(|line| format!("; last output: {line}"));
            let reason = format!("{how} before it was ready{}", last.unwrap_or_default());
            self.report(Observation::Failed { progress: Progress::StartFailed, reason, permanent: false }).await?;
        }
        self.report(Observation::Closed { exit: Some(how) }).await
    }

    async fn joined(&self) -> Result<(), Unheard> {
        self.report(Observation::Progress(Progress::Converged)).await?;
        self.report(Observation::Joined).await
    }
}

/// The log, and what of it has been reported.
struct Log {
    tail: Tail,
    limit: u64,
    fresh: Option<String>,
    last_report: Option<Instant>,
    /// More arrived than was read.
    is_busy: bool,
}

impl Log {
    fn new(tail: Tail, limit: u64) -> Self {
        Log { tail, limit, fresh: None, last_report: None, is_busy: false }
    }

    /// Reads what is new, at most a limit's worth at a time. A log that cannot be read stops nothing.
    async fn read(&mut self, backlog: u64, mut each: impl FnMut(&str)) {
        let mut count = 0;
        let mut pieces = 0;
        self.is_busy = true;
        let most = self.limit.saturating_mul(backlog);
        let _ = self.tail.skip_backlog(most);
        while count < self.limit {
            let fresh = &mut self.fresh;
            let piece = self.tail.pump(&mut |line| {
                each(line);
                if !line.trim().is_empty() {
                    let fresh = fresh.get_or_insert_default();
                    fresh.clear();
                    fresh.push_str(line);
                }
            });
            match piece {
                Ok(0) | Err(_) => {
                    self.is_busy = false;
                    break;
                }
                Ok(read) => count += read as u64,
            }
            pieces += 1;
            if pieces % PIECES == 0 {
                tokio::task::yield_now().await;
            }
        }
        let _ = self.tail.rotate(self.limit, most);
    }

    /// Reads the rest, a last line without an end included.
    async fn finish(&mut self) {
        self.read(BACKLOG_LIMITS, |_| ()).await;
        let fresh = &mut self.fresh;
        self.tail.flush(&mut |line| *fresh = Some(line.to_owned()));
    }

    fn is_quiet(&self) -> bool {
        self.last_report.is_none_or(|last| last.elapsed() >= REPORT_EVERY)
    }

    fn reported(&mut self) {
        self.last_report = Some(Instant::now());
    }

    /// The latest line, unless one was reported just now.
    fn line_to_report(&mut self) -> Option<String> {
        if self.fresh.is_none() || !self.is_quiet() {
            return None;
        }
        self.reported();
        self.unreported()
    }

    fn unreported(&mut self) -> Option<String> {
        self.fresh.take().map(|line| printable(&line)).filter(|line| !line.trim().is_empty())
    }
}
