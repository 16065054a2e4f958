//! A place for a fleet file and its state, a running `up`, and what tests ask of them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use journal::Walk;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use store::{SqliteReader, records};
use tempfile::TempDir;

/// Longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);
pub const HOMEOSTAT: &str = env!("CARGO_BIN_EXE_homeostat");
/// Says it is ready, and stays.
pub const STEADY: &str = "echo ready; exec sleep 1000";

/// Polls until there is something.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A group of a shell script that is ready when it says so.
pub fn group(id: &str, count: u32, script: &str) -> String {
    format!(
        "[[group]]\nid = \"{id}\"\ncount = {count}\nsettings = {{ grace = \"300ms\" }}\n\
         [group.boot]\ncommand = [\"sh\", \"-c\", {script:?}]\n\
         [group.join]\nprobe = {{ stdout = \"^ready\" }}\ninterval = \"20ms\"\n"
    )
}

/// A fleet with a short backoff.
pub fn fleet(groups: &[String]) -> String {
    let policy = "[policy]\nbackoff = { initial = \"50ms\", cap = \"400ms\" }\n";
    format!("run = \"demo\"\n{policy}{}", groups.concat())
}

/// A lease as its marker shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub attempt: u64,
    pub pid: Option<i32>,
    pub port: Option<u16>,
}

pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Place { dir: TempDir::new().unwrap() }
    }

    pub fn with(text: &str) -> Self {
        let place = Place::new();
        place.write(text);
        place
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub fn file(&self) -> PathBuf {
        self.path().join("fleet.toml")
    }

    /// At once, as most editors do. (Other ways are tried on their own.)
    pub fn write(&self, text: &str) {
        let fresh = self.path().join(".fleet.toml.new");
        std::fs::write(&fresh, text).unwrap();
        std::fs::rename(&fresh, self.file()).unwrap();
    }

    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(HOMEOSTAT);
        command.env_remove("HOMEOSTAT_STATE").arg("up").arg(self.file()).arg("--state").arg(self.state()).args(args);
        command
    }

    /// `up` of the file, with JSON lines.
    pub fn up(&self, args: &[&str]) -> Up {
        let mut command = self.command(args);
        command.args(["-o", "json"]);
        Up::start(command)
    }

    /// `daemon` of the file, with JSON lines.
    pub fn daemon(&self) -> Up {
        let mut command = Command::new(HOMEOSTAT);
        command.env_remove("HOMEOSTAT_STATE").arg("daemon").arg(self.file()).arg("--state").arg(self.state());
        command.args(["-o", "json"]);
        Up::start(command)
    }

    /// Runs `up` as text to its end: the exit code, standard output, standard error.
    pub fn run(&self, args: &[&str]) -> (i32, String, String) {
        let ended = self.command(args).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ended.status.code().unwrap(), text(ended.stdout), text(ended.stderr))
    }

    /// The leases of a run, by slot.
    pub fn leases_of(&self, run: &str) -> Vec<(String, Lease)> {
        let Ok(entries) = std::fs::read_dir(self.state().join(run).join("leases")) else { return Vec::new() };
        let mut leases = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().into_string().unwrap();
            // One that is being removed is no lease any more.
            let Ok(marker) = std::fs::read(entry.path().join("lease.json")) else { continue };
            let Ok(marker) = serde_json::from_slice::<Value>(&marker) else { continue };
            let (slot, attempt) =
                name.trim_start_matches(".new-").trim_start_matches(".trash-").rsplit_once('.').unwrap();
            let pid = marker["boot"]["started"]["pid"].as_i64().map(|pid| i32::try_from(pid).unwrap());
            let port = marker["port"].as_u64().map(|port| u16::try_from(port).unwrap());
            leases.push((slot.to_owned(), Lease { attempt: attempt.parse().unwrap(), pid, port }));
        }
        leases.sort_by(|a, b| (&a.0, a.1.attempt).cmp(&(&b.0, b.1.attempt)));
        leases
    }

    /// The leases of `demo`, one a slot.
    pub fn leases(&self) -> BTreeMap<String, Lease> {
        self.leases_of("demo").into_iter().collect()
    }

    /// The boot processes of `demo` by slot; only what runs.
    pub fn pids(&self) -> BTreeMap<String, i32> {
        let leases = self.leases().into_iter();
        leases.filter_map(|(slot, lease)| Some((slot, lease.pid.filter(|pid| is_running(*pid))?))).collect()
    }

    /// The running processes that bear a label of this place, with slot and attempt.
    pub fn labelled(&self) -> Vec<(String, i32)> {
        let label = format!("HOMEOSTAT_LEASE={}/", self.state().display());
        let pids =
            std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid: i32| {
            let environ = environ(pid)?;
            let mut variables = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            let rest = variables.find_map(|variable| variable.strip_prefix(&label).map(str::to_owned))?;
            let name = rest.split('|').next()?.rsplit('/').next()?.to_owned();
            is_running(pid).then_some((name, pid))
        })
        .collect()
    }

    /// Waits until what is durable is a fleet that has its shape: what announces no effect is so a moment after it is told.
    #[track_caller]
    pub fn durably_converged(&self) {
        let dir = self.state().join("demo");
        until("the journal says that it has converged", || {
            let mut reader = SqliteReader::open(&dir).ok()?;
            let mut walk = Walk::new();
            for line in records(&mut reader, 0).ok()? {
                walk.follow(&line.ok()?).ok()?;
            }
            let found = walk.driver().filter(|driver| driver.is_converged()).map(|_| ());
            if found.is_none() {
                std::thread::sleep(Duration::from_millis(50));
            }
            found
        });
    }

    /// No process, no directory of a lease, no port.
    #[track_caller]
    pub fn assert_empty(&self) {
        assert_eq!(self.labelled(), [], "processes are left");
        for run in std::fs::read_dir(self.state()).into_iter().flatten().flatten() {
            let leases = run.path().join("leases");
            let left: Vec<_> =
                std::fs::read_dir(&leases).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            assert!(left.is_empty(), "directories are left: {left:?}");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for (_, pid) in self.labelled() {
            signal(pid, Signal::KILL);
        }
    }
}

/// `up` while it runs. Each line of standard output is JSON.
pub struct Up {
    pub child: Child,
    pub lines: Arc<Mutex<Vec<Value>>>,
    errors: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Up {
    pub fn start(mut command: Command) -> Up {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let errors = Arc::new(Mutex::new(String::new()));
        let (seen, said) = (lines.clone(), errors.clone());
        let readers = vec![
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines() {
                    let line = line.unwrap();
                    let value: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                    assert!(value["schema"].as_str().is_some_and(|name| name.starts_with("homeostat.")), "{line}");
                    assert!(value["at_ms"].is_u64(), "{line}");
                    seen.lock().unwrap().push(value);
                }
            }),
            std::thread::spawn(move || {
                let mut chunk = [0; 4096];
                while let Ok(count @ 1..) = err.read(&mut chunk) {
                    said.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
                }
            }),
        ];
        Up { child, lines, errors, readers }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn signal(&self, name: Signal) {
        signal(self.pid(), name);
    }

    pub fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    /// How many lines there are, to look only at what comes later.
    pub fn mark(&self) -> usize {
        self.lines.lock().unwrap().len()
    }

    /// Waits for the first line after `mark` that `wanted` takes.
    #[track_caller]
    pub fn line(&self, mark: usize, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let found = self.lines.lock().unwrap().iter().skip(mark).find(|line| wanted(line)).cloned();
            if let Some(found) = found {
                return found;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "not in time: {what}\n{}\n{}",
                self.errors(),
                self.lines.lock().unwrap().iter().map(|line| format!("{line}\n")).collect::<String>()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub fn converged(&self, mark: usize) -> u64 {
        let line = self.line(mark, "converged", |line| line["schema"] == "homeostat.converged/v1");
        line["generation"].as_u64().unwrap()
    }

    /// Waits until a node's line holds these.
    #[track_caller]
    pub fn node(&self, mark: usize, node: &str, wanted: &[(&str, Value)]) -> Value {
        self.line(mark, &format!("{node} {wanted:?}"), |line| {
            line["node"] == node && wanted.iter().all(|(field, value)| line[field] == *value)
        })
    }

    #[track_caller]
    pub fn note(&self, mark: usize, words: &str) -> Value {
        self.line(mark, words, |line| line["note"].as_str().is_some_and(|note| note.contains(words)))
    }

    /// Waits for its end: the exit code, and the last line.
    #[track_caller]
    pub fn ended(&mut self) -> (i32, Value) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > PATIENCE {
                let _ = self.child.kill();
                panic!("it does not end\n{}\n{:?}", self.errors(), self.lines.lock().unwrap().last());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        // Their assertions are part of every test.
        for reader in self.readers.drain(..) {
            reader.join().expect("standard output is lines of JSON");
        }
        let last = self.lines.lock().unwrap().last().cloned().unwrap_or_default();
        (status.code().unwrap_or(-1), last)
    }

    /// One signal, and then it ends well.
    #[track_caller]
    pub fn take_down(&mut self, name: Signal) -> Value {
        self.signal(name);
        let (code, last) = self.ended();
        assert_eq!(code, 0, "{}\n{last}", self.errors());
        assert_eq!(last["schema"], "homeostat.end/v1", "{}", self.errors());
        assert_eq!(last["clean"], true, "{last}");
        last
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Watches that never two attempts of one slot have a process at one time.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u32>>,
}

impl Watch {
    pub fn over(place: &Place) -> Self {
        // Its own place would remove the folder at the end.
        let state = Place { dir: TempDir::new().unwrap() };
        let root = place.state();
        let stop = Arc::new(AtomicBool::new(false));
        let over = stop.clone();
        let thread = std::thread::spawn(move || {
            let _own = state;
            let mut looks = 0;
            while !over.load(Ordering::SeqCst) {
                look_for_two(&root);
                looks += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            looks
        });
        Watch { stop, thread: Some(thread) }
    }

    #[track_caller]
    pub fn assert_never_two(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let looks = self.thread.take().unwrap().join().expect("never two at once");
        assert!(looks > 0, "nobody looked");
    }
}

fn look_for_two(state: &Path) {
    let label = format!("HOMEOSTAT_LEASE={}/", state.display());
    let mut seen: BTreeMap<String, BTreeMap<String, Vec<i32>>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(environ) = std::fs::read(format!("/proc/{pid}/environ")) else { continue };
        let mut variables = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let Some(rest) = variables.find_map(|one| one.strip_prefix(&label).map(str::to_owned)) else { continue };
        let Some((slot, attempt)) = rest.split('|').next().and_then(|path| path.rsplit('/').next()?.rsplit_once('.'))
        else {
            continue;
        };
        seen.entry(slot.to_owned()).or_default().entry(attempt.to_owned()).or_default().push(pid);
    }
    for (slot, attempts) in seen.into_iter().filter(|(_, attempts)| attempts.len() > 1) {
        // A look takes a while: two count only when both are there after it.
        let still = attempts.iter().filter(|(_, pids)| pids.iter().any(|pid| is_running(*pid))).count();
        assert!(still < 2, "{slot}: {attempts:?}");
    }
}

/// The environment of a process. One that is just becoming another program shows none for an instant, and no arguments either.
fn environ(pid: i32) -> Option<Vec<u8>> {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).ok();
    let is_program = || std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
    let began = Instant::now();
    loop {
        let environ = read("environ")?;
        let between = environ.is_empty() && read("cmdline")?.is_empty() && is_program();
        if !between || began.elapsed() > PATIENCE {
            return Some(environ);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn signal(pid: i32, signal: Signal) {
    // It may have ended.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

pub fn is_running(pid: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
