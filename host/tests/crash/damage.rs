//! Damage to what is kept, at any place: the daemon refuses to start and says which file, or nothing that matters was hit.
//! It never makes anything, and never ends anything.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::fixture::{Place, STEADY, fleet, group, signal};
use crate::lab::{Held, Numbers, leases, processes, until_or_ended};

/// Fleets that are damaged side by side.
const FLEETS: usize = 6;
const FILES: [&str; 4] = ["state.db", "state.db-wal", "head", "key"];

/// A fleet, and two copies of its state: as a stop leaves it, and as a kill does.
struct Patient {
    place: Place,
    rested: TempDir,
    killed: TempDir,
    held: Vec<Held>,
    running: Vec<(String, u64, i32)>,
}

fn copy(from: &Path, to: &Path) {
    for name in FILES {
        let _ = std::fs::remove_file(to.join(name));
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

impl Patient {
    fn new() -> Self {
        let place = Place::with(&fleet(&[group("web", 2, STEADY)]));
        let (rested, killed) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for (kept, how) in [(&rested, Signal::TERM), (&killed, Signal::KILL)] {
            let mut daemon = place.daemon();
            daemon.converged(0);
            place.durably_converged();
            signal(daemon.pid(), how);
            daemon.ended();
            copy(&place.state().join("demo"), kept.path());
        }
        let (held, running) = (leases(&place), processes(&place));
        assert_eq!((held.len(), running.len()), (2, 2));
        Patient { place, rested, killed, held, running }
    }

    fn dir(&self) -> PathBuf {
        self.place.state().join("demo")
    }

    /// Starts a daemon on a damaged copy; whether it refused.
    fn starts(&self, killed: bool, what: &str, damage: impl FnOnce(&Path)) -> bool {
        self.starts_with(killed, what, damage, || ())
    }

    /// As [`Self::starts`]; `heal` comes before the machine is looked at.
    fn starts_with(&self, killed: bool, what: &str, damage: impl FnOnce(&Path), heal: impl FnOnce()) -> bool {
        let dir = self.dir();
        let _ = std::fs::remove_file(dir.join("state.db-shm"));
        copy(if killed { self.killed.path() } else { self.rested.path() }, &dir);
        damage(&dir);
        let mut daemon = self.place.daemon();
        let converged = until_or_ended(what, &mut daemon, |up| {
            up.lines.lock().unwrap().iter().any(|line| line["schema"] == "homeostat.converged/v1")
        });
        if converged.is_ok() {
            // Anything it would do, it would do now.
            std::thread::sleep(std::time::Duration::from_millis(60));
            signal(daemon.pid(), Signal::KILL);
        }
        let (code, _) = daemon.ended();
        let said = daemon.errors();
        heal();
        assert_eq!(leases(&self.place), self.held, "{what}: {said}");
        assert_eq!(processes(&self.place), self.running, "{what}: {said}");
        if converged.is_err() {
            assert_eq!(code, 1, "{what}: {said}");
            assert!(said.contains(&self.dir().display().to_string()), "{what}: no file is named: {said}");
        }
        converged.is_err()
    }
}

/// Gives each piece of work to one of the fleets.
/// One thing that is done to a patient.
type Case = Box<dyn Fn(&Patient) + Send + Sync>;

fn share(work: Vec<Case>) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..FLEETS {
            scope.spawn(|| {
                let patient = Patient::new();
                while let Some(one) = work.get(next.fetch_add(1, Ordering::SeqCst)) {
                    one(&patient);
                }
            });
        }
    });
}

#[test]
fn a_flipped_byte_anywhere_makes_nothing_and_ends_nothing() {
    let numbers = Mutex::new(Numbers::of("flipped bytes"));
    let refused: [AtomicUsize; 4] = Default::default();
    let mut work: Vec<Case> = Vec::new();
    let (numbers, refused) = (&*Box::leak(Box::new(numbers)), &*Box::leak(Box::new(refused)));
    for (file, trials) in [(0, 90), (1, 90), (2, 16), (3, 8)] {
        for trial in 0..trials {
            work.push(Box::new(move |patient| {
                let from = patient.killed.path().join(FILES[file]);
                let size = std::fs::metadata(&from).unwrap().len();
                let draw = |end| numbers.lock().unwrap().below(end);
                // The beginning, the end, and anywhere between.
                let at = match trial % 6 {
                    0 => draw(size.min(100)),
                    1 => size - 1 - draw(size.min(4_096)),
                    _ => draw(size),
                };
                let bit = 1 << draw(8);
                let what = format!("byte {at} of {size} of {} by {bit:#x}", FILES[file]);
                let is_refused = patient.starts(true, &what, |dir| {
                    let path = dir.join(FILES[file]);
                    let mut bytes = std::fs::read(&path).unwrap();
                    bytes[usize::try_from(at).unwrap()] ^= bit;
                    std::fs::write(&path, bytes).unwrap();
                });
                refused[file].fetch_add(usize::from(is_refused), Ordering::SeqCst);
            }));
        }
    }
    share(work);
    let refused: Vec<usize> = refused.iter().map(|count| count.load(Ordering::SeqCst)).collect();
    println!("refused: {FILES:?} {refused:?}; the others hit what was not in use");
    assert!(refused[1] > 20 && refused[2..] == [16, 8], "{refused:?}");
}

/// The nodes' own markers are state too: a process number that flipped is not a death.
#[test]
fn a_flipped_byte_in_a_marker_makes_nothing_and_ends_nothing() {
    let patient = Patient::new();
    let marker = patient.dir().join("leases/web-0.1/lease.json");
    let whole = std::fs::read(&marker).unwrap();
    // The schema is not among them: to give up on a listing takes its time.
    let boot = whole.windows(6).position(|text| text == b"\"boot\"").unwrap() as u64;
    let mut numbers = Numbers::of("flipped markers");
    for trial in 0..24 {
        let first = if trial % 4 == 0 { 30 } else { boot };
        let at = usize::try_from(first + numbers.below(whole.len() as u64 - first)).unwrap();
        let bit = 1 << numbers.below(8);
        let mut flipped = whole.clone();
        flipped[at] ^= bit;
        std::fs::write(&marker, flipped).unwrap();
        patient.starts_with(
            false,
            &format!("byte {at} of a marker by {bit:#x}"),
            |_| (),
            || std::fs::write(&marker, &whole).unwrap(),
        );
    }
}

#[test]
fn a_record_that_no_start_needs_is_looked_at_too() {
    let patient = Patient::new();
    let path = patient.rested.path().join("state.db");
    let bytes = std::fs::read(&path).unwrap();
    // In the text of the first records, which the checkpoint covers.
    let found: Vec<usize> =
        bytes.windows(9).enumerate().filter(|(_, text)| text == b"\"start\":{").map(|(at, _)| at).collect();
    assert!(!found.is_empty());
    // One of them is what a page had before it was split: nobody reads that.
    let refused = found.into_iter().filter(|at| {
        let mut flipped = bytes.clone();
        flipped[at + 3] ^= 1;
        patient.starts(false, "the first record", |dir| std::fs::write(dir.join("state.db"), &flipped).unwrap())
    });
    assert!(refused.count() > 0);
}

#[test]
fn what_is_cut_off_missing_or_unsafe_is_refused() {
    let patient = Patient::new();
    let mut numbers = Numbers::of("cut off");
    for name in FILES {
        let path = patient.killed.path().join(name);
        let size = std::fs::metadata(&path).unwrap().len();
        for length in [0, 1, size / 2, size - 1, numbers.below(size), numbers.below(size)] {
            let what = format!("{name} cut to {length} of {size}");
            let refused = patient.starts(true, &what, |dir| {
                std::fs::OpenOptions::new().write(true).open(dir.join(name)).unwrap().set_len(length).unwrap();
            });
            // What the log has too is written again.
            assert!(refused || (name == "state.db" && length > size / 2), "{what}");
        }
        // Without its witness a database is what somebody put back from a copy, as the manual says.
        if name != "head" {
            assert!(patient.starts(true, name, |dir| std::fs::remove_file(dir.join(name)).unwrap()), "no {name}");
        }
        if name != "state.db-wal" {
            let what = format!("{name} is a directory");
            let refused = patient.starts(true, &what, |dir| {
                std::fs::remove_file(dir.join(name)).unwrap();
                std::fs::create_dir(dir.join(name)).unwrap();
            });
            std::fs::remove_dir(patient.dir().join(name)).unwrap();
            assert!(refused, "{what}");
        }
    }
    // A database from a first start that never got any further is no fresh start either.
    let refused = patient.starts(true, "a torn end that was acknowledged", |dir| {
        let log = dir.join("state.db-wal");
        let size = std::fs::metadata(&log).unwrap().len();
        std::fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(size - 4_120).unwrap();
    });
    assert!(refused);
    // More than was acknowledged, and torn: that is what a loss of power leaves. It is cut back.
    let refused = patient.starts(true, "a torn end that nobody was told of", |dir| {
        use std::io::Write;
        let mut log = std::fs::OpenOptions::new().append(true).open(dir.join("state.db-wal")).unwrap();
        log.write_all(&[7; 3_000]).unwrap();
    });
    assert!(!refused);
}

#[test]
fn what_others_could_write_or_this_user_cannot_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let patient = Patient::new();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    let dir = patient.dir();
    for name in ["state.db", "head", "key"] {
        assert!(patient.starts(false, name, |dir| mode(&dir.join(name), 0o666)), "{name} is open to others");
        assert!(
            patient.starts(false, name, |dir| {
                std::fs::rename(dir.join(name), dir.join("elsewhere")).unwrap();
                std::os::unix::fs::symlink("elsewhere", dir.join(name)).unwrap();
            }),
            "{name} is a link"
        );
        std::fs::remove_file(dir.join(name)).unwrap();
    }
    assert!(patient.starts(false, "the directory", |dir| mode(dir, 0o777)));
    mode(&dir, 0o700);
    if !rustix::process::geteuid().is_root() {
        println!("skipped the rest: only root can give files away");
        return;
    }
    for name in ["state.db", "head", "key"] {
        assert!(
            patient.starts(false, name, |dir| chown(dir.join(name), Some(12_345), None).unwrap()),
            "{name} is theirs"
        );
    }
    for name in FILES {
        let _ = std::fs::remove_file(dir.join(name));
    }
    assert!(patient.starts(false, "the directory is theirs", |dir| chown(dir, Some(12_345), None).unwrap()));
    chown(&dir, Some(0), None).unwrap();
}

#[test]
fn a_directory_that_this_user_may_not_enter_is_refused() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can start it as somebody else");
        return;
    }
    const NOBODY: u32 = 65_534;
    let patient = Patient::new();
    let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    mode(&patient.place.path(), 0o755);
    mode(&patient.place.state(), 0o755);
    mode(&patient.place.file(), 0o644);
    let program = patient.place.path().join("homeostat");
    std::fs::copy(crate::fixture::HOMEOSTAT, &program).unwrap();
    mode(&program, 0o755);
    let start = || {
        let mut command = std::process::Command::new(&program);
        command.env_remove("HOMEOSTAT_STATE").arg("daemon").arg(patient.place.file());
        command.arg("--state").arg(patient.place.state()).args(["-o", "json"]).uid(NOBODY).gid(NOBODY);
        let mut daemon = crate::fixture::Up::start(command);
        let (code, _) = daemon.ended();
        assert_eq!(code, 1, "{}", daemon.errors());
        assert_eq!(
            (leases(&patient.place), processes(&patient.place)),
            (patient.held.clone(), patient.running.clone())
        );
        daemon.errors()
    };
    let dir = patient.dir();
    mode(&dir, 0o755);
    let said = start();
    assert!(said.contains("belongs to user 0, and this process runs as user 65534"), "{said}");
    chown(&dir, Some(NOBODY), None).unwrap();
    mode(&dir, 0);
    let said = start();
    assert!(said.contains(&dir.display().to_string()) && said.contains("denied"), "{said}");
    chown(&dir, Some(0), None).unwrap();
    mode(&dir, 0o700);
}
