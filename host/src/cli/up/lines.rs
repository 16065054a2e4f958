//! Lines on their way to standard output: written by a thread, so that a reader that stopped reading holds up nothing.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Lines that may wait for the reader; what comes beyond them is counted and dropped.
const WAITING: usize = 16_384;
/// How often it is looked whether all was written.
const LOOK: Duration = Duration::from_millis(1);

/// Standard output, line by line.
#[derive(Debug)]
pub(super) struct Lines {
    sender: Option<mpsc::SyncSender<String>>,
    waiting: Arc<AtomicUsize>,
    dropped: u64,
}

impl Lines {
    /// Starts the thread.
    pub fn start(mut out: impl Write + Send + 'static) -> Self {
        let (sender, lines) = mpsc::sync_channel::<String>(WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = waiting.clone();
        std::thread::spawn(move || {
            for mut line in lines {
                line.push('\n');
                // A reader that has gone is nothing to complain about; the lines after this find the channel closed.
                if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
                    left.store(0, Ordering::SeqCst);
                    return;
                }
                left.fetch_sub(1, Ordering::SeqCst);
            }
        });
        Lines { sender: Some(sender), waiting, dropped: 0 }
    }

    /// Writes a line, or drops it when too many wait or nobody reads. Answers how many were dropped before this one, once
    /// there is room again.
    pub fn print(&mut self, line: String) -> u64 {
        let Some(sender) = &self.sender else { return 0 };
        self.waiting.fetch_add(1, Ordering::SeqCst);
        match sender.try_send(line) {
            Ok(()) => return std::mem::take(&mut self.dropped),
            Err(mpsc::TrySendError::Full(_)) => {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                self.dropped += 1;
            }
            Err(mpsc::TrySendError::Disconnected(_)) => {
                self.waiting.store(0, Ordering::SeqCst);
                self.sender = None;
            }
        }
        0
    }

    /// Waits until all is written, for so long at most.
    pub fn flush(&self, limit: Duration) {
        let began = Instant::now();
        while self.waiting.load(Ordering::SeqCst) > 0 && self.sender.is_some() && began.elapsed() < limit {
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::io::{self, Read};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_reader_that_stops_costs_lines_and_nothing_else() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut lines = Lines::start(writer);
        let long = "x".repeat(1_000);
        for _ in 0..WAITING + 500 {
            assert_eq!(lines.print(long.clone()), 0);
        }
        assert!(lines.dropped > 0 && lines.dropped <= 500);
        lines.flush(Duration::from_millis(5));
        let dropped = lines.dropped;
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text.lines().count()
        });
        lines.flush(PATIENCE);
        assert_eq!(lines.print("last".into()), dropped);
        lines.flush(PATIENCE);
        drop(lines);
        assert_eq!(read.join().unwrap() as u64, WAITING as u64 + 501 - dropped);
    }

    #[test]
    fn a_reader_that_has_gone_is_noticed() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut lines = Lines::start(writer);
        let began = Instant::now();
        while lines.sender.is_some() {
            assert!(began.elapsed() < PATIENCE);
            lines.print("line".into());
            lines.flush(PATIENCE);
        }
        assert_eq!(lines.print("line".into()), 0);
    }
}
