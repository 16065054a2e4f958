//! Starting a boot command, and watching how it ends.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::shape::Template;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, prlimit, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::check::RESERVED_ENV;
use super::group::{LABEL, ProcessIdent, descriptor};
use super::lease::{OUTPUT, WORK, fault};
use super::placeholders::Values;
use super::port::HeldPort;
use crate::backends::Fault;

/// How often a process without a descriptor is looked at.
const POLL: Duration = Duration::from_millis(100);
/// How often a program that is being written by somebody is tried again.
const BUSY_TRIES: u32 = 20;

/// Runs `start` while no other start of this process runs: a forked child briefly holds copies of all open files, so that
/// a port that another start just freed would still be bound, and a program that another start just wrote still be busy.
pub fn alone<T>(start: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    start()
}

/// A command with everything filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The variables on top of the inherited ones.
    pub env: BTreeMap<String, String>,
    /// Relative path to content.
    pub files: BTreeMap<String, String>,
}

/// What systemd tells the host's own process and nobody else: a node must not notify in its name, nor find its credentials.
const OF_THE_SERVICE: [&str; 11] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "JOURNAL_STREAM",
    "INVOCATION_ID",
    "SYSTEMD_EXEC_PID",
    "MAINPID",
    "CREDENTIALS_DIRECTORY",
];

/// Fills in a template's texts. The environment is the host's own without `HOMEOSTAT_*` and what systemd tells it, then what the host says of the
/// node, then what the template declares.
pub fn prepare(template: &Template, values: &Values, label: &str) -> Result<Prepared, Fault> {
    let expand = |text: &String| values.expand(text).map_err(|why| Fault::permanent(why.to_string()));
    let mut env = BTreeMap::from([
        ("HOMEOSTAT_RUN".to_owned(), values.run.clone()),
        ("HOMEOSTAT_NODE".to_owned(), values.node.clone()),
        ("HOMEOSTAT_ATTEMPT".to_owned(), values.attempt.clone()),
        ("HOMEOSTAT_ENDPOINT".to_owned(), values.endpoint.clone()),
        ("HOMEOSTAT_PORT".to_owned(), values.port.clone()),
        ("HOMEOSTAT_DIR".to_owned(), values.dir.clone()),
        (LABEL.to_owned(), label.to_owned()),
    ]);
    for (name, value) in template.boot.env.iter().filter(|(name, _)| !name.starts_with(RESERVED_ENV)) {
        env.insert(name.clone(), expand(value)?);
    }
    let command = template.boot.command.iter().map(expand).collect::<Result<_, _>>()?;
    let files = template.boot.files.iter().map(|(path, text)| Ok((path.clone(), expand(text)?)));
    Ok(Prepared { command, env, files: files.collect::<Result<_, Fault>>()? })
}

/// A command in the node's environment and its own process group.
pub fn command(words: &[String], env: &BTreeMap<String, String>, work: &Path) -> Command {
    let program = words.first().map(String::as_str).unwrap_or_default();
    // A relative path means one below the directory that it runs in.
    let mut command = match program.contains('/') {
        true => Command::new(work.join(program)),
        false => Command::new(program),
    };
    command.args(words.iter().skip(1)).current_dir(work).process_group(0).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(RESERVED_ENV) {
            command.env_remove(name);
        }
    }
    for name in OF_THE_SERVICE {
        command.env_remove(name);
    }
    command.envs(env);
    command
}

/// Writes the files, frees the port, starts the command. Blocking; to be called through [`alone`].
pub fn spawn(dir: &Path, prepared: &Prepared, port: &mut HeldPort) -> Result<i32, Fault> {
    let work = dir.join(WORK);
    fs::create_dir_all(&work).map_err(|error| fault("create", &work, &error))?;
    for (path, content) in &prepared.files {
        let path = work.join(path);
        write_file(&path, content).map_err(|error| fault("write", &path, &error))?;
    }
    let path = dir.join(OUTPUT);
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    let log = log.and_then(|log| Ok((log.try_clone()?, log))).map_err(|error| fault("open", &path, &error))?;
    let mut command = command(&prepared.command, &prepared.env, &work);
    command.stdout(log.0).stderr(log.1);
    port.open();
    let mut tries = 0;
    loop {
        match command.spawn() {
            // Not waited for here: as long as it is not, its number and its group stay its own.
            Ok(child) => return i32::try_from(child.id()).map_err(|error| Fault::retryable(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(refused(&prepared.command, &error)),
        }
    }
}

/// Lowers a child's limit on open files. It inherited the host's, and has it for an instant.
pub fn limit_open_files(pid: i32, limit: Option<u64>) {
    if let (Some(pid), Some(limit)) = (Pid::from_raw(pid), limit) {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // It may have ended already.
        let _ = prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(limit), maximum });
    }
}

fn write_file(path: &Path, content: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)?;
    if content.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn refused(words: &[String], error: &io::Error) -> Fault {
    const ENOEXEC: i32 = 8;
    let program = words.first().map(String::as_str).unwrap_or_default();
    let reason = format!("cannot start {program:?}: {error}");
    let for_good = matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidFilename
            | io::ErrorKind::ArgumentListTooLong
    );
    if for_good || error.raw_os_error() == Some(ENOEXEC) {
        return Fault::permanent(reason);
    }
    Fault::retryable(reason)
}

/// A boot process, running or ended.
#[derive(Debug)]
pub struct BootProcess {
    /// Which; `None` when it cannot be told any more.
    pub ident: Option<ProcessIdent>,
    /// Stands for the process; `None` when it was gone already, or the kernel has no such descriptors.
    descriptor: Option<Arc<OwnedFd>>,
    /// What is said of its end when nothing better is known.
    gone: &'static str,
}

const NOT_OUR_CHILD: &str = "exited (not our child; status unknown)";

impl BootProcess {
    /// The process with this identity.
    pub fn new(ident: ProcessIdent) -> Self {
        let descriptor = descriptor(ident.pid, ident.start_ticks).ok().flatten().map(Arc::new);
        BootProcess { ident: Some(ident), descriptor, gone: NOT_OUR_CHILD }
    }

    /// One that is known to be gone.
    pub fn gone(why: &'static str) -> Self {
        BootProcess { ident: None, descriptor: None, gone: why }
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&self) -> Option<String> {
        if self.ident.as_ref().is_some_and(ProcessIdent::is_alive) {
            return None;
        }
        // Not reaped: that would set its number free while the rest of its group may still run.
        let status = self.descriptor.as_ref().and_then(|descriptor| {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            waitid(WaitId::PidFd(descriptor.as_fd()), options).ok().flatten()
        });
        let Some(status) = status else { return Some(self.gone.to_owned()) };
        if let Some(code) = status.exit_status() {
            return Some(format!("exit status {code}"));
        }
        Some(match status.terminating_signal() {
            Some(signal) => format!("killed by signal {signal}{}", signal_name(signal)),
            None => self.gone.to_owned(),
        })
    }

    /// Waits for the end and says how it was.
    pub async fn wait(&self) -> String {
        if let Some(watch) = self.watch()
            && watch.readable().await.is_ok()
            && let Some(how) = self.ended()
        {
            return how;
        }
        loop {
            if let Some(how) = self.ended() {
                return how;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Becomes readable when the process ends.
    // The successor of this constructor is unsafe because a descriptor type may lie; an `OwnedFd` that is moved in does not.
    #[allow(deprecated)]
    fn watch(&self) -> Option<AsyncFd<Arc<OwnedFd>>> {
        // Not a second descriptor: a fleet has many. Whoever comes while another waits is told nothing, and polls.
        AsyncFd::with_interest(self.descriptor.clone()?, Interest::READABLE).ok()
    }

    /// Takes the ended process out of the process table, if it is a child of this host.
    pub fn reap(&self) {
        if let Some(descriptor) = &self.descriptor {
            let _ = waitid(WaitId::PidFd(descriptor.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

fn signal_name(signal: i32) -> &'static str {
    const NAMES: [(Signal, &str); 12] = [
        (Signal::HUP, " (SIGHUP)"),
        (Signal::INT, " (SIGINT)"),
        (Signal::QUIT, " (SIGQUIT)"),
        (Signal::ILL, " (SIGILL)"),
        (Signal::ABORT, " (SIGABRT)"),
        (Signal::BUS, " (SIGBUS)"),
        (Signal::FPE, " (SIGFPE)"),
        (Signal::KILL, " (SIGKILL)"),
        (Signal::SEGV, " (SIGSEGV)"),
        (Signal::PIPE, " (SIGPIPE)"),
        (Signal::ALARM, " (SIGALRM)"),
        (Signal::TERM, " (SIGTERM)"),
    ];
    NAMES.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| *name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn what_systemd_tells_the_host_no_node_hears() {
        let own = BTreeMap::from([("LISTEN_FDS".to_owned(), "1".to_owned())]);
        let command = command(&["true".to_owned()], &own, Path::new("/"));
        let set: BTreeMap<_, _> = command.get_envs().collect();
        for name in OF_THE_SERVICE.into_iter().filter(|name| *name != "LISTEN_FDS") {
            assert_eq!(set.get(std::ffi::OsStr::new(name)), Some(&None), "{name}");
        }
        assert_eq!(set[std::ffi::OsStr::new("LISTEN_FDS")], Some("1".as_ref()), "what a template declares it has");
    }
}
