//! A state directory in a temporary place, and what tests do with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::id::{AttemptId, ExternalKey};
use engine::io::{CreateRequest, Observation};
use engine::shape::{Boot, Join, Probe, Setting, Template};
use homeostat::backends::process::{ProcessBackend, ProcessConfig};
use homeostat::backends::{Backend, ObservationSink, StartRequest};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Ends what a failed test leaves.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Place { dir: TempDir::new().unwrap() }
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("state")
    }

    pub fn leases(&self) -> PathBuf {
        self.state().join("leases")
    }

    pub fn lease(&self, name: &str) -> PathBuf {
        self.leases().join(name)
    }

    pub fn config(&self) -> ProcessConfig {
        ProcessConfig::new(self.state(), env!("CARGO_BIN_EXE_homeostat"))
    }

    pub fn open(&self) -> ProcessBackend {
        ProcessBackend::open(self.config()).unwrap()
    }

    /// The running processes that bear a label of this place.
    pub fn labelled(&self) -> Vec<i32> {
        let label = format!("HOMEOSTAT_LEASE={}", self.state().display());
        pids().filter(|pid| environ(*pid).iter().any(|variable| variable.starts_with(&label))).collect()
    }

    pub fn marker(&self, name: &str) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.lease(name).join("lease.json")).unwrap()).unwrap()
    }

    pub fn edit_marker(&self, name: &str, field: &str, value: serde_json::Value) {
        let mut marker = self.marker(name);
        // As the hosts before wrote it, without a sum.
        marker["schema"] = 1.into();
        marker.as_object_mut().unwrap().remove("sum");
        marker[field] = value;
        std::fs::write(self.lease(name).join("lease.json"), marker.to_string()).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for pid in self.labelled() {
            kill(pid, "KILL");
        }
    }
}

pub fn pids() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn environ(pid: i32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|variable| String::from_utf8_lossy(variable).into_owned()).collect()
}

/// State, parent, group and start time.
pub fn stat(pid: i32) -> Option<(String, i32, i32, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields[0].into(), fields[1].parse().ok()?, fields[2].parse().ok()?, fields[19].parse().ok()?))
}

pub fn is_running(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, ..)| state != "Z")
}

/// The running processes of a group.
pub fn group(leader: i32) -> Vec<i32> {
    pids().filter(|pid| stat(*pid).is_some_and(|(state, _, group, _)| group == leader && state != "Z")).collect()
}

pub fn kill(pid: i32, signal: &str) {
    let _ = std::process::Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
}

pub fn key(slot: &str, attempt: u64) -> ExternalKey {
    ExternalKey { run: "demo".into(), slot: slot.into(), attempt: AttemptId(attempt) }
}

pub fn template(command: &[&str], probe: Probe) -> Template {
    Template {
        provider: "process".into(),
        settings: BTreeMap::from([("grace".into(), Setting::Text("5s".into()))]),
        image: None,
        role: String::new(),
        boot: Boot {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            env: BTreeMap::new(),
            files: BTreeMap::new(),
        },
        join: Join { probe, interval_ms: 20, timeout_ms: 500 },
        labels: BTreeMap::new(),
    }
}

/// A shell script that is ready when it says `ready`.
pub fn script(text: &str) -> Template {
    template(&["sh", "-c", text], Probe::Stdout("^ready$".into()))
}

pub fn server() -> Template {
    let mut template =
        template(&["{self}", "demo-server", "--listen", "{endpoint}"], Probe::Http("http://{endpoint}/healthz".into()));
    template.boot.env.insert("GREETING".into(), "hello from {node}".into());
    template
}

pub fn request(key: &ExternalKey, template: &Template) -> CreateRequest {
    CreateRequest { key: key.clone(), template: Arc::new(template.clone()) }
}

/// A node that was started.
pub struct Node {
    pub key: ExternalKey,
    pub lease: String,
    pub endpoint: String,
    pub session: String,
    pub adopted: bool,
    pub seen: mpsc::Receiver<(AttemptId, Observation)>,
}

pub fn sink(key: &ExternalKey) -> (ObservationSink, mpsc::Receiver<(AttemptId, Observation)>) {
    let (sender, receiver) = mpsc::channel(64);
    (ObservationSink::new(key.attempt, sender), receiver)
}

/// Create, look up, start.
pub async fn start(backend: &ProcessBackend, key: ExternalKey, template: &Template) -> Node {
    backend.check(template).unwrap();
    let lease = backend.create(&request(&key, template)).await.unwrap().lease;
    let endpoint = backend.lookup(&key, &lease).await.unwrap();
    let (sink, seen) = sink(&key);
    let asked = StartRequest { key: &key, lease: &lease, endpoint: &endpoint, template };
    let started = backend.start(asked, sink).await.unwrap();
    Node { session: started.session, adopted: started.adopted, key, lease, endpoint, seen }
}

impl Node {
    pub fn pid(&self) -> i32 {
        self.session.parse().unwrap()
    }

    /// The next observation.
    pub async fn next(&mut self) -> Observation {
        let next = tokio::time::timeout(PATIENCE, self.seen.recv()).await;
        let (attempt, observation) = next.expect("an observation in time").expect("an open session");
        assert_eq!(attempt, self.key.attempt);
        observation
    }

    /// Waits until one of these comes; answers it.
    pub async fn until(&mut self, wanted: impl Fn(&Observation) -> bool) -> Observation {
        loop {
            let next = self.next().await;
            if wanted(&next) {
                return next;
            }
        }
    }

    pub async fn joined(&mut self) {
        self.until(|seen| *seen == Observation::Joined).await;
    }

    pub async fn closed(&mut self) -> String {
        match self.until(|seen| matches!(seen, Observation::Closed { .. })).await {
            Observation::Closed { exit: Some(exit) } => exit,
            other => panic!("{other:?}"),
        }
    }

    pub async fn cancel(&self, backend: &ProcessBackend) {
        backend.cancel(&self.key, &self.lease, &self.session).await.unwrap();
    }

    pub async fn destroy(&self, backend: &ProcessBackend) {
        backend.destroy(&self.key, &self.lease).await.unwrap();
    }
}

/// Waits until it holds.
pub async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}
