//! Loopback ports that are really free, and reserved.
//!
//! A port is taken from outside the kernel's ephemeral range, so that no outgoing connection gets it by chance. While a
//! lease lives in this host, an abstract socket named after the port keeps every other host on the machine away from
//! it: such a name belongs to the network namespace, as ports do, leaves no file, and ends with its holder. Until the
//! boot command starts, the port itself is bound too.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The lowest port that is given out by preference.
const LOWEST: u16 = 10_000;

/// How long a given port is tried for.
const TAKE_WAIT: Duration = Duration::from_millis(500);

/// The ports of one state directory.
#[derive(Debug)]
pub struct Ports {
    ranges: Vec<RangeInclusive<u16>>,
    /// Port to lease name: of all leases in the directory, held or not.
    taken: Arc<Mutex<BTreeMap<u16, String>>>,
}

/// A port that is ours for as long as this lives.
#[derive(Debug)]
pub struct HeldPort {
    /// The port.
    pub port: u16,
    /// Keeps other hosts away.
    _name: Option<UnixDatagram>,
    /// Keeps everybody away, until the boot command starts.
    listener: Option<TcpListener>,
}

impl HeldPort {
    /// Frees the port itself for the boot command; the reservation stays.
    pub fn open(&mut self) {
        self.listener = None;
    }
}

impl Ports {
    /// Reads the ephemeral range and takes note of the ports that leases have already.
    pub fn new(recorded: BTreeMap<u16, String>) -> Self {
        let ephemeral = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
        let ranges = ranges(ephemeral.as_deref().and_then(parse_range));
        Ports { ranges, taken: Arc::new(Mutex::new(recorded)) }
    }

    /// Takes a given port for a lease, whole. Blocking. `None` when somebody else has it.
    pub fn take(&self, port: u16, lease: &str) -> Option<HeldPort> {
        if !self.note(port, lease) {
            return None;
        }
        let began = Instant::now();
        loop {
            match hold(port) {
                Ok(held) => return Some(held),
                // A child that its last holder was just forking has it until it runs its program.
                Err(_) if began.elapsed() < TAKE_WAIT => std::thread::sleep(TAKE_WAIT / 10),
                Err(_) => {
                    self.forget(port, lease);
                    return None;
                }
            }
        }
    }

    /// Keeps a port whose process runs: the name if it can be had, never the port itself.
    pub fn keep(&self, port: u16, lease: &str) -> HeldPort {
        self.note(port, lease);
        HeldPort { port, _name: reserve(port).ok(), listener: None }
    }

    /// Looks for a free port, starting at one that depends on the key only.
    pub fn find(&self, key: &str, lease: &str) -> io::Result<HeldPort> {
        let size: u32 = self.ranges.iter().map(|range| u32::from(range.end() - range.start()) + 1).sum();
        let start = spread(key) % size.max(1);
        for step in 0..size {
            let Some(port) = self.nth((start + step) % size) else { continue };
            if !self.note(port, lease) {
                continue;
            }
            match hold(port) {
                Ok(held) => return Ok(held),
                Err(error) => {
                    self.forget(port, lease);
                    // Out of descriptors or the like: the next port would not do better.
                    if !matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) {
                        return Err(error);
                    }
                }
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "every loopback port outside the ephemeral range is taken"))
    }

    /// The lease is gone: its port may be given out again.
    pub fn forget(&self, port: u16, lease: &str) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.get(&port).is_some_and(|holder| holder == lease) {
            taken.remove(&port);
        }
    }

    fn note(&self, port: u16, lease: &str) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.entry(port).or_insert_with(|| lease.to_owned()) == lease
    }

    fn nth(&self, mut index: u32) -> Option<u16> {
        for range in &self.ranges {
            let size = u32::from(range.end() - range.start()) + 1;
            if index < size {
                return u16::try_from(u32::from(*range.start()) + index).ok();
            }
            index -= size;
        }
        None
    }
}

fn hold(port: u16) -> io::Result<HeldPort> {
    let name = reserve(port)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    Ok(HeldPort { port, _name: Some(name), listener: Some(listener) })
}

fn reserve(port: u16) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("homeostat-port-{port}"))?)
}

/// FNV-1a: the same key starts at the same port on every machine.
fn spread(key: &str) -> u32 {
    key.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn parse_range(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (Some(Ok(low)), Some(Ok(high))) = (numbers.next(), numbers.next()) else { return None };
    (low <= high).then_some((low, high))
}

/// Where to look: outside the ephemeral range, high numbers first; inside it only when there is nothing else.
fn ranges(ephemeral: Option<(u16, u16)>) -> Vec<RangeInclusive<u16>> {
    let Some((low, high)) = ephemeral else { return vec![LOWEST..=32_767] };
    let outside = |lowest: u16| {
        let mut found = Vec::new();
        if low > lowest {
            found.push(lowest..=low - 1);
        }
        if high < u16::MAX {
            found.push((high + 1).max(lowest)..=u16::MAX);
        }
        found
    };
    match outside(LOWEST) {
        found if !found.is_empty() => found,
        _ => match outside(1024) {
            found if !found.is_empty() => found,
            _ => vec![LOWEST..=u16::MAX],
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ports_come_from_outside_the_ephemeral_range() {
        assert_eq!(ranges(Some((32_768, 60_999))), [10_000..=32_767, 61_000..=65_535]);
        assert_eq!(ranges(Some((5_000, 65_535))), [1_024..=4_999]);
        assert_eq!(ranges(Some((1_024, 65_535))), [10_000..=65_535]);
        assert_eq!(ranges(Some((1_024, 4_999))), [10_000..=65_535]);
        assert_eq!(ranges(None), [10_000..=32_767]);
        assert_eq!(parse_range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(parse_range("9 x"), None);
    }

    #[test]
    fn a_port_that_is_listened_on_or_reserved_is_passed_over() {
        let ports = Ports::new(BTreeMap::new());
        // Nobody else begins to look there.
        let key = format!("key {}", std::process::id());
        let first = ports.find(&key, "a.1").unwrap();
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, first.port)).is_err(), "it is bound until the command starts");
        let elsewhere = Ports::new(BTreeMap::new());
        assert!(elsewhere.take(first.port, "b.1").is_none());
        let second = elsewhere.find(&key, "b.1").unwrap();
        assert_ne!(second.port, first.port);
        let (port, mut first) = (first.port, first);
        first.open();
        assert!(elsewhere.take(port, "b.1").is_none(), "the reservation outlives the listener");
        drop(first);
        ports.forget(port, "a.1");
        assert!(elsewhere.take(port, "b.1").is_some());
    }
}
