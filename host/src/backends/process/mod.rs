//! The process provider: a node is a process group on this machine.
//!
//! A lease is a directory named after slot and attempt, with a marker that bears the external key. The endpoint is a
//! reserved loopback port. The boot command runs in the lease's `work` directory, in its own process group, and writes to a file,
//! so that it outlives the host that started it and the next one adopts it. Needs Linux 5.4 or later.

#[cfg(not(target_os = "linux"))]
compile_error!("the process provider needs Linux: /proc, process descriptors and abstract sockets");

mod calls;
mod check;
mod gone;
mod group;
mod lease;
mod logs;
mod output;
mod placeholders;
mod port;
mod probe;
mod session;
mod spawn;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use engine::shape::Template;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::check::check as check_template;
use self::group::Census;
use self::lease::{BootRecord, Found};
use self::port::{HeldPort, Ports};
use self::spawn::BootProcess;
use super::{
    Backend, CreateRequest, Endpoint, ExternalKey, Fault, LastOutput, LeaseId, Leased, Listing, ObservationSink,
    OutputPage, OutputQuery, Promise, SessionId, StartRequest, Started, TemplateError,
};

/// How long [`ProcessBackend::shutdown`] waits for calls that are under way.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(10);
/// How long [`ProcessBackend::open`] waits for a state directory that is in use.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// Where the leases are, below the state directory.
const LEASES: &str = "leases";
/// What `{state}` stands for, below the state directory.
const SHARED: &str = "shared";

/// Settings of the provider.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// The run's own folder. Nobody else may use it.
    pub state_dir: PathBuf,
    /// What `{self}` stands for.
    pub self_exe: PathBuf,
    /// Time between TERM and KILL, unless the template says otherwise (`grace`).
    pub grace: Duration,
    /// A node's log beyond this size is cut, in bytes.
    pub log_limit_bytes: u64,
    /// The limit on open files that nodes are given, where it is not the host's own: a host raises its own, but programs
    /// may not expect a high one.
    pub open_files: Option<u64>,
}

impl ProcessConfig {
    /// A grace of 5 s, logs of 8 MiB.
    pub fn new(state_dir: impl Into<PathBuf>, self_exe: impl Into<PathBuf>) -> Self {
        ProcessConfig {
            state_dir: state_dir.into(),
            self_exe: self_exe.into(),
            grace: Duration::from_secs(5),
            log_limit_bytes: 8 << 20,
            open_files: None,
        }
    }
}

/// Why the provider cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state directory cannot be used.
    #[error("state directory {}: {error}", path.display())]
    StateDir {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another host works in it.
    #[error("state directory {}: another homeostat is running there", path.display())]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// A path cannot be given to programs as text.
    #[error("{path:?} is not UTF-8")]
    NotText {
        /// Which.
        path: PathBuf,
    },
}

/// What the provider holds for one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The lease.
    pub lease: LeaseId,
    /// Whose it is.
    pub key: ExternalKey,
    /// The boot process, when it runs.
    pub pid: Option<i32>,
    /// The loopback port.
    pub port: Option<u16>,
    /// The directory.
    pub dir: PathBuf,
}

/// Nodes as process groups on this machine.
#[derive(Debug)]
pub struct ProcessBackend {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ProcessConfig,
    self_exe: String,
    /// Canonical; part of every label.
    leases: PathBuf,
    shared: String,
    lock: Mutex<Option<File>>,
    live: Mutex<BTreeMap<String, Arc<Lease>>>,
    ports: Ports,
    census: Census,
    stop: CancellationToken,
    sessions: TaskTracker,
    calls: TaskTracker,
}

/// What this host holds of one lease.
#[derive(Debug, Default)]
struct Lease {
    state: Arc<tokio::sync::Mutex<LeaseState>>,
}

#[derive(Debug, Default)]
struct LeaseState {
    port: Option<HeldPort>,
    process: Option<Arc<BootProcess>>,
    session: Option<JoinHandle<()>>,
}

impl ProcessBackend {
    /// Opens a state directory, and makes it when it is missing. What an earlier host left half made or half removed is
    /// removed; leases stay for adoption.
    pub fn open(config: ProcessConfig) -> Result<Self, OpenError> {
        let path = config.state_dir.clone();
        let leases = path.join(LEASES);
        let shared = path.join(SHARED);
        for dir in [&leases, &shared] {
            let error = |error| OpenError::StateDir { path: dir.clone(), error };
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(error)?;
        }
        let error = |error| OpenError::StateDir { path: leases.clone(), error };
        let (leases, shared) = (leases.canonicalize().map_err(error)?, shared.canonicalize().map_err(error)?);
        let error = |error| OpenError::StateDir { path: leases.clone(), error };
        let text =
            |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| OpenError::NotText { path: path.to_owned() });
        text(&leases)?;
        let lock = File::open(&leases).map_err(error)?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                // A child that a killed host had just forked holds the lock until it runs its program.
                Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT => std::thread::sleep(LOCK_WAIT / 20),
                Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path }),
                Err(TryLockError::Error(why)) => return Err(error(why)),
            }
        }
        lease::sweep(&leases).map_err(error)?;
        let mut recorded = BTreeMap::new();
        for name in lease::names(&leases).map_err(error)? {
            if let Found::Lease(marker) = lease::find(&leases.join(&name))
                && let Some(port) = marker.port
            {
                recorded.insert(port, name);
            }
        }
        let inner = Inner {
            self_exe: text(&config.self_exe)?,
            shared: text(&shared)?,
            config,
            leases,
            lock: Mutex::new(Some(lock)),
            live: Mutex::default(),
            ports: Ports::new(recorded),
            census: Census::default(),
            stop: CancellationToken::new(),
            sessions: TaskTracker::new(),
            calls: TaskTracker::new(),
        };
        Ok(ProcessBackend { inner: Arc::new(inner) })
    }

    /// What lives now, by lease: for people who have to look after it themselves. No waiting.
    pub fn leftovers(&self) -> Vec<Leftover> {
        let leases = &self.inner.leases;
        let mut found = Vec::new();
        for name in lease::names(leases).unwrap_or_default() {
            let dir = leases.join(&name);
            let Found::Lease(marker) = lease::find(&dir) else { continue };
            let pid = match marker.boot {
                BootRecord::Started(ident) if ident.is_alive() => Some(ident.pid),
                BootRecord::Started(_) | BootRecord::Starting | BootRecord::Never => None,
            };
            found.push(Leftover { lease: name, key: marker.request.key, pid, port: marker.port, dir });
        }
        found
    }

    /// Ends this host's part: sessions stop, calls under way are waited for, the state directory is free for the next
    /// host. Processes go on. When no lease is left, the directories that [`Self::open`] made are removed too; what attempts
    /// wrote last stays, unless [`Self::forget_output`] was called.
    pub async fn shutdown(&self) {
        self.inner.calls.close();
        let _ = tokio::time::timeout(SHUTDOWN_WAIT, self.inner.calls.wait()).await;
        self.inner.stop.cancel();
        self.inner.sessions.close();
        let _ = tokio::time::timeout(SHUTDOWN_WAIT, self.inner.sessions.wait()).await;
        let inner = &self.inner;
        if lease::names(&inner.leases).is_ok_and(|names| names.is_empty()) {
            let _ = fs::remove_dir_all(&inner.shared);
            let _ = fs::remove_dir(&inner.leases);
            let _ = fs::remove_dir(&inner.config.state_dir);
        }
        self.release();
    }

    /// Everything was taken down, and nobody will ask what it wrote.
    pub fn forget_output(&self) {
        self.inner.forget_output();
    }

    fn release(&self) {
        self.inner.stop.cancel();
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(lock) = self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Closing is not enough: a child being forked may have a copy.
            let _ = lock.unlock();
        }
    }

    /// Runs a call to its end even when the caller gives it up, so that nothing is left half done; the next call for
    /// the same lease waits for it.
    async fn call<T, F, C>(&self, call: C) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
        C: FnOnce(Arc<Inner>) -> F,
    {
        let task = self.inner.calls.spawn(call(self.inner.clone()));
        task.await.unwrap_or_else(|error| Err(Fault::Ambiguous { reason: format!("the call was cut off: {error}") }))
    }
}

impl Drop for ProcessBackend {
    fn drop(&mut self) {
        self.release();
    }
}

#[async_trait]
impl Backend for ProcessBackend {
    fn promise(&self) -> Promise {
        Promise::Keyed
    }

    fn check(&self, template: &Template) -> Result<(), TemplateError> {
        check::check(template)
    }

    async fn create(&self, request: &CreateRequest) -> Result<Leased, Fault> {
        let request = request.clone();
        self.call(|inner| async move { inner.create(request).await }).await
    }

    async fn lookup(&self, key: &ExternalKey, lease: &LeaseId) -> Result<Endpoint, Fault> {
        let (key, lease) = (key.clone(), lease.clone());
        self.call(|inner| async move { inner.lookup(key, lease).await }).await
    }

    async fn start(&self, request: StartRequest<'_>, observations: ObservationSink) -> Result<Started, Fault> {
        let StartRequest { key, lease, endpoint, template } = request;
        let (key, lease, endpoint, template) = (key.clone(), lease.clone(), endpoint.clone(), template.clone());
        self.call(|inner| async move { inner.start(key, lease, endpoint, template, observations).await }).await
    }

    async fn listen(
        &self,
        request: StartRequest<'_>,
        session: &SessionId,
        observations: ObservationSink,
    ) -> Result<(), Fault> {
        let _ = session;
        let StartRequest { key, lease, endpoint, template } = request;
        let (key, lease, endpoint, template) = (key.clone(), lease.clone(), endpoint.clone(), template.clone());
        self.call(|inner| async move { inner.listen(key, lease, endpoint, template, observations).await }).await
    }

    async fn output(&self, key: &ExternalKey, lease: &LeaseId, query: OutputQuery) -> Result<OutputPage, Fault> {
        let (key, lease) = (key.clone(), lease.clone());
        self.call(|inner| async move { inner.output(key, lease, query).await }).await
    }

    async fn last_output(&self, run: &str, slot: &str, query: OutputQuery) -> Result<Option<LastOutput>, Fault> {
        let (run, slot) = (run.to_owned(), slot.to_owned());
        self.call(|inner| async move { inner.last_output(run, slot, query).await }).await
    }

    async fn cancel(&self, key: &ExternalKey, lease: &LeaseId, session: &SessionId) -> Result<(), Fault> {
        let _ = session;
        let (key, lease) = (key.clone(), lease.clone());
        self.call(|inner| async move { inner.cancel(key, lease).await }).await
    }

    async fn destroy(&self, key: &ExternalKey, lease: &LeaseId) -> Result<(), Fault> {
        let (key, lease) = (key.clone(), lease.clone());
        self.call(|inner| async move { inner.destroy(key, lease).await }).await
    }

    async fn list(&self, run: &str) -> Result<Listing, Fault> {
        let run = run.to_owned();
        self.call(|inner| async move { inner.list(run).await }).await
    }
}
