//! Which processes are a lease's, and how they are ended.
//!
//! Every process that a boot command starts inherits a label in its environment. A process is taken for a lease's own
//! when it bears the exact label, when it is the recorded boot process (by number, start time and boot of the machine),
//! or when it is in a process group that one of these leads. Nothing else is ever signalled, and signals go through
//! descriptors that stand for one process for ever, so that a reused number cannot be hit (S15).

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

/// The variable that carries the label.
pub const LABEL: &str = "HOMEOSTAT_LEASE";
/// How long a killed process may take to disappear.
const KILL_WAIT: Duration = Duration::from_secs(10);
const POLL_FIRST: Duration = Duration::from_millis(5);
const POLL_MOST: Duration = Duration::from_millis(50);

/// One process for ever: a number is reused, but not with the same start time in the same boot of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProcessIdent {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since the machine's boot.
    pub start_ticks: u64,
    /// Which boot of the machine.
    pub boot_id: String,
}

impl ProcessIdent {
    /// The identity of a process that exists, zombies included.
    pub fn of(pid: i32) -> Option<Self> {
        Some(ProcessIdent { pid, start_ticks: stat(pid)?.start_ticks, boot_id: boot_id() })
    }

    /// Whether it runs; a zombie does not.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id()
            && stat(self.pid).is_some_and(|stat| !stat.ended && stat.start_ticks == self.start_ticks)
    }
}

fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// A process as a scan saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub pid: i32,
    /// Its process group.
    pub group: i32,
    /// When it started.
    pub start_ticks: u64,
    /// It ended and nobody has waited for it yet.
    pub ended: bool,
    /// The label it bears, if any.
    pub label: Option<String>,
}

fn stat(pid: i32) -> Option<Seen> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in parentheses and may contain anything.
    let after = text.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(&text[after + 1..]).ok()?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    Some(Seen {
        pid,
        group: fields.get(2)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
        ended: matches!(*fields.first()?, "Z" | "X"),
        label: None,
    })
}

/// The label in a process's environment as it was started; `None` also when it cannot be read.
fn label(pid: i32) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    environ.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(LABEL.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

fn scan() -> Result<Vec<Seen>, String> {
    let entries = std::fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let seen: Vec<Seen> = pids
        .filter_map(|pid| {
            let mut seen = stat(pid)?;
            if !seen.ended {
                seen.label = label(pid);
            }
            Some(seen)
        })
        .collect();
    // A view that lacks even this process shows nothing, and nothing may follow from it (S14).
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    if seen.iter().any(|one| one.pid == own) { Ok(seen) } else { Err("/proc does not show the processes".into()) }
}

/// Looks through all processes of the machine. One look at a time, and it serves all who asked before it began.
#[derive(Debug, Default)]
pub struct Census {
    last: Mutex<Option<(Instant, Arc<Vec<Seen>>)>>,
}

impl Census {
    /// All processes, as seen by a look that began after this call.
    pub async fn take(&self) -> Result<Arc<Vec<Seen>>, String> {
        let asked = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((began, seen)) = &*last
            && *began >= asked
        {
            return Ok(seen.clone());
        }
        let began = Instant::now();
        let seen = tokio::task::spawn_blocking(scan).await.map_err(|error| error.to_string())?;
        let seen = Arc::new(seen?);
        *last = Some((began, seen.clone()));
        Ok(seen)
    }
}

/// What makes a process a lease's own.
#[derive(Clone, Debug)]
pub struct Ownership {
    /// The exact label.
    pub label: String,
    /// The recorded boot process.
    pub boot: Option<ProcessIdent>,
}

impl Ownership {
    fn owns(&self, seen: &Seen, boot_id: &str) -> bool {
        match &seen.label {
            Some(label) => *label == self.label,
            None => self.boot.as_ref().is_some_and(|boot| {
                boot.pid == seen.pid && boot.start_ticks == seen.start_ticks && boot.boot_id == boot_id
            }),
        }
    }

    /// The lease's own among `seen`, ended ones left out. `proven` remembers which were its own before: as long as one
    /// of a group is left, the group cannot have become somebody else's.
    fn select<'a>(&self, seen: &'a [Seen], proven: &mut BTreeSet<(i32, u64)>) -> Vec<&'a Seen> {
        let boot_id = boot_id();
        let known =
            |one: &Seen, proven: &BTreeSet<_>| self.owns(one, &boot_id) || proven.contains(&(one.pid, one.start_ticks));
        let leads = |one: &Seen| one.pid == one.group || self.boot.as_ref().is_some_and(|boot| boot.pid == one.group);
        let groups: BTreeSet<i32> =
            seen.iter().filter(|one| known(one, proven) && leads(one)).map(|one| one.group).collect();
        let own = seen.iter().filter(|one| {
            let other = one.label.as_ref().is_some_and(|label| *label != self.label);
            !one.ended && !other && (known(one, proven) || groups.contains(&one.group))
        });
        let own: Vec<&Seen> = own.collect();
        proven.extend(own.iter().map(|one| (one.pid, one.start_ticks)));
        own
    }

    /// The boot process: one that bears the label and leads its group.
    pub fn leader(&self, seen: &[Seen]) -> Option<ProcessIdent> {
        let leader = seen.iter().find(|one| one.label.as_ref() == Some(&self.label) && one.pid == one.group)?;
        ProcessIdent::of(leader.pid).filter(|ident| ident.start_ticks == leader.start_ticks)
    }

    /// Ends every process of the lease: TERM, then KILL after the grace; waits until none is left.
    pub async fn end(&self, census: &Census, grace: Duration) -> Result<(), String> {
        let began = Instant::now();
        let mut proven = BTreeSet::new();
        let mut told = BTreeSet::new();
        let mut pause = POLL_FIRST;
        let mut empty = 0;
        loop {
            let seen = census.take().await?;
            let own = self.select(&seen, &mut proven);
            if own.is_empty() {
                // A process that forks and ends while it is looked for can be missed once.
                empty += 1;
                if empty == 2 {
                    return Ok(());
                }
                continue;
            }
            empty = 0;
            let kill = began.elapsed() >= grace;
            let mut refused = None;
            for one in &own {
                let first = told.insert((one.pid, one.start_ticks));
                let result = if kill {
                    signal(one, &[Signal::KILL])
                } else if first {
                    // A stopped process does not see TERM before it goes on.
                    signal(one, &[Signal::TERM, Signal::CONT])
                } else {
                    Ok(())
                };
                if let Err(error) = result {
                    refused = Some(format!("process {}: {error}", one.pid));
                }
            }
            if began.elapsed() >= grace.saturating_add(KILL_WAIT) {
                let pids: Vec<String> = own.iter().map(|one| one.pid.to_string()).collect();
                let why = refused.map(|why| format!(" ({why})")).unwrap_or_default();
                return Err(format!("still running after KILL: {}{why}", pids.join(", ")));
            }
            let left = grace.saturating_sub(began.elapsed());
            tokio::time::sleep(if left.is_zero() { pause } else { pause.min(left) }).await;
            pause = (pause * 2).min(POLL_MOST);
        }
    }
}

/// A descriptor for exactly the process that was seen; `None` when it is gone.
pub fn descriptor(pid: i32, start_ticks: u64) -> Result<Option<OwnedFd>, Errno> {
    let Some(number) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(number, PidfdFlags::empty()) {
        // Looked at after the descriptor is open: if it is the same now, the descriptor stands for it.
        Ok(descriptor) => Ok(stat(pid).filter(|stat| stat.start_ticks == start_ticks).map(|_| descriptor)),
        Err(Errno::SRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

fn signal(seen: &Seen, signals: &[Signal]) -> Result<(), Errno> {
    let Some(descriptor) = descriptor(seen.pid, seen.start_ticks)? else { return Ok(()) };
    for signal in signals {
        match pidfd_send_signal(&descriptor, *signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
