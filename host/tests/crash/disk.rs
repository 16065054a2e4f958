//! A disk that is full, or cannot be written: the daemon ends and says what to do; the nodes live on, and so does what it knew.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::fixture::{Place, STEADY, fleet, group, signal, until};
use crate::lab::{is_as_wanted, leases, processes};

/// A small file system in memory under the state directory, where that may be mounted.
struct Small<'p>(&'p Place);

impl<'p> Small<'p> {
    fn mount(place: &'p Place, size: &str) -> Option<Self> {
        std::fs::create_dir_all(place.state()).unwrap();
        let options = format!("size={size},mode=0700");
        if let Err(why) = run(&["mount", "-t", "tmpfs", "-o", &options, "none"], &place.state()) {
            println!("skipped: no file system can be mounted here: {why}");
            return None;
        }
        Some(Small(place))
    }

    fn remount(&self, options: &str) {
        run(&["mount", "-o", &format!("remount,{options}")], &self.0.state()).unwrap();
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        for (_, pid) in self.0.labelled() {
            signal(pid, Signal::KILL);
        }
        until("it can be unmounted", || run(&["umount"], &self.0.state()).ok());
    }
}

fn run(words: &[&str], path: &Path) -> Result<(), String> {
    let output = Command::new(words[0]).args(&words[1..]).arg(path).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().into()) }
}

fn of(count: u32) -> String {
    fleet(&[group("web", count, STEADY)])
}

fn slots(count: u32) -> Vec<String> {
    (0..count).map(|index| format!("web-{index}")).collect()
}

#[test]
fn a_full_disk_ends_the_daemon_and_nobody_else() {
    let place = Place::with(&of(2));
    let Some(_small) = Small::mount(&place, "4m") else { return };
    let mut daemon = place.daemon();
    daemon.converged(0);
    place.durably_converged();
    let (held, running) = (leases(&place), processes(&place));
    let ballast = place.state().join("ballast");
    let full = fill(&ballast);
    println!("{full} bytes fill the disk");
    place.write(&of(4));
    let (code, _) = daemon.ended();
    let said = daemon.errors();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("state.db") && said.contains("no space is left") && said.contains("make room"), "{said}");
    assert_eq!((leases(&place), processes(&place)), (held.clone(), running.clone()), "the nodes live on");
    // Still full: it does not start, and harms nothing.
    let mut again = place.daemon();
    let (code, _) = again.ended();
    assert_eq!(code, 1, "{}", again.errors());
    assert!(again.errors().contains("make room"), "{}", again.errors());
    assert_eq!((leases(&place), processes(&place)), (held.clone(), running));
    std::fs::remove_file(&ballast).unwrap();
    let mut daemon = place.daemon();
    until("four", || is_as_wanted(&place, &slots(4), STEADY).then_some(()));
    assert!(held.iter().all(|one| leases(&place).contains(one)), "the first two are those that were there");
    signal(daemon.pid(), Signal::TERM);
    assert_eq!(daemon.ended().0, 0, "{}", daemon.errors());
}

/// Writes until nothing more fits.
fn fill(path: &Path) -> u64 {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    let mut bytes = 0;
    for size in [65_536, 4_096, 1] {
        while let Ok(count) = file.write(&vec![7; size]) {
            bytes += count as u64;
        }
    }
    bytes
}

#[test]
fn a_disk_that_cannot_be_written_is_refused_before_anything_is_done() {
    let place = Place::with(&of(2));
    let Some(small) = Small::mount(&place, "4m") else { return };
    let mut daemon = place.daemon();
    daemon.converged(0);
    place.durably_converged();
    signal(daemon.pid(), Signal::TERM);
    assert_eq!(daemon.ended().0, 0);
    let (held, running) = (leases(&place), processes(&place));
    // Their logs are open for writing; so it is a mount over the file system, not the file system, that is made read-only.
    run(&["mount", "--bind", &place.state().display().to_string()], &place.state()).unwrap();
    small.remount("bind,ro");
    let mut daemon = place.daemon();
    let (code, _) = daemon.ended();
    assert_eq!(code, 1, "{}", daemon.errors());
    let said = daemon.errors();
    assert!(said.contains("read-only") && said.contains(&place.state().display().to_string()), "{said}");
    assert_eq!((leases(&place), processes(&place)), (held, running));
    run(&["umount"], &place.state()).unwrap();
    let mut daemon = place.daemon();
    daemon.converged(0);
    place.write(&of(0));
    until("nothing", || leases(&place).is_empty().then_some(()));
    signal(daemon.pid(), Signal::TERM);
    assert_eq!(daemon.ended().0, 0, "{}", daemon.errors());
}
