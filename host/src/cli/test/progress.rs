//! How far a run of tests is, on standard error, where somebody looks at it.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use super::super::Terminal;

/// Between two lines, in milliseconds.
const PAUSE_MS: u64 = 100;

pub(super) struct Progress {
    total: usize,
    played: AtomicUsize,
    failed: AtomicUsize,
    live: bool,
    began: Instant,
    /// When the line was last drawn, in milliseconds after the beginning.
    drawn_ms: AtomicU64,
}

impl Progress {
    pub fn new(total: usize, terminal: &Terminal) -> Progress {
        let live = std::io::stderr().is_terminal() && !terminal.is_json();
        let (played, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Progress { total, played, failed, live, began: Instant::now(), drawn_ms: AtomicU64::new(0) }
    }

    fn line(&self) -> String {
        let (played, failed) = (self.played.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        format!("{played} of {} tests, {failed} failed", self.total)
    }

    pub fn played(&self, failed: bool) {
        self.played.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(usize::from(failed), Ordering::Relaxed);
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.live && now_ms >= self.drawn_ms.load(Ordering::Relaxed).saturating_add(PAUSE_MS) {
            self.drawn_ms.store(now_ms, Ordering::Relaxed);
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[2K{}", self.line()).and_then(|()| err.flush());
        }
    }

    pub fn clear(&self) {
        if self.live {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r\x1b[2K").and_then(|()| err.flush());
        }
    }

    pub fn interrupted(&self) {
        eprintln!("interrupted: {}", self.line());
    }
}
