//! Keeps a fleet: what `up` and `daemon` have in common. They differ in how they end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use api::metrics::Metrics;
use api::{Config, Limits, Listen, Server, TlsFiles, Tokens};
use clap::{Args, ValueHint};
use inspect::DecisionLog;
use store::{Secret, SqliteStore, StateDir};

use super::appoint::{self, Appointed, DeciderArgs, FollowDecider};
use super::up::{Edit, Follow, Screen, raise_open_files, state_dir};
use super::{Failure, Terminal};
use crate::backends::Backend;
use crate::backends::process::{ProcessBackend, ProcessConfig};
use crate::clock::Clock;
use crate::control::{Desk, Parts};
use crate::fleet::Fleet;
use crate::journal::JournalFile;
use crate::registry::Registry;
use crate::runtime::{Declaration, Host, HostError, HostHandle, Intervals};

/// The label of the API token (see [`Secret::token`]).
pub(super) const API_TOKEN: &str = "api";
/// The interface's socket in the state directory.
pub(super) const SOCKET: &str = "api.sock";
/// How long requests that are on their way are waited for at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How the interface can be reached, besides the socket in the state directory.
#[derive(Debug, Args)]
pub struct ApiArgs {
    /// Serve the interface and the dashboard at this address too. Whoever asks needs the token (`homeostat token`), or a
    /// client certificate; beyond this machine TLS is required.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<std::net::SocketAddr>,
    /// The certificate for --listen, with its chain (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires_all = ["listen", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Take a client certificate of this authority (PEM) in place of the token; either is enough.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// A name under which --listen is asked, behind a proxy; may be given several times.
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub listen_name: Vec<String>,
}

/// What is to be kept, and how.
pub(super) struct Wanted<'a> {
    /// The fleet file.
    pub file: &'a Path,
    /// Where state lives, in a folder for each run.
    pub state: Option<&'a Path>,
    pub decider: &'a DeciderArgs,
    pub api: &'a ApiArgs,
    /// A file that gets the same records.
    pub copy: Option<JournalFile>,
    pub intervals: Intervals,
}

/// A fleet that is kept.
pub(super) struct Kept {
    pub host: HostHandle,
    pub backend: Arc<ProcessBackend>,
    pub follow: Follow,
    pub deciders: WatchedDecider,
    pub registry: Registry,
    pub screen: Screen,
    server: Server,
}

impl Kept {
    /// Starts: state, backend, host, interface, in this order. Nothing is made anew where something is missing or damaged.
    pub async fn start(
        wanted: Wanted<'_>,
        terminal: &Terminal,
        fleet: &Fleet,
        decider: Appointed,
    ) -> Result<Self, Failure> {
        let exe = std::env::current_exe().context("finding this program")?;
        let dir = state_dir(wanted.state)?.join(&fleet.shape.run);
        let (store, secret) = open(&dir)?;
        let (registry, built_in, declared) = decider.settle(&dir, &secret)?;
        let config = ProcessConfig { open_files: raise_open_files(), ..ProcessConfig::new(&dir, exe) };
        let backend = Arc::new(ProcessBackend::open(config).map_err(|error| anyhow!(error))?);
        let metrics =
            Arc::new(Metrics::new(&fleet.shape.run, env!("CARGO_PKG_VERSION")).map_err(|error| anyhow!(error))?);
        let decisions = Arc::new(DecisionLog::default());
        let mut builder = Host::builder(&fleet.shape.run)
            .shared_backend("process", backend.clone())
            .shared_decider(built_in.decider)
            .registry(registry.clone())
            .read_beside(&dir)
            .declare(declaration(fleet))
            .intervals(wanted.intervals)
            .decisions(decisions.clone())
            .metrics(metrics.clone())
            .store(store);
        if let Some(declared) = declared {
            builder = builder.declare_decider(declared);
        }
        if let Some(copy) = wanted.copy {
            builder = builder.history(copy);
        }
        let follow = Follow::start(wanted.file, fleet);
        let deciders = WatchedDecider { follow: FollowDecider::start(wanted.decider, &registry), taken: None };
        let host = match builder.start().await {
            Ok(host) => host,
            Err(HostError::Shape(error)) => return Err(Failure::Fleet(fleet.refuse(wanted.file, &error))),
            Err(error) => return Err(anyhow!(error).into()),
        };
        // At once, so that it misses nothing.
        let mut screen = Screen::new(terminal, &host);
        for line in host.opening_about_deciders() {
            screen.note(line);
        }
        let about = about(&host).await?;
        let backends = [("process".to_owned(), backend.clone() as Arc<dyn Backend>)].into();
        let desk = Desk::open(Parts {
            host: host.clone(),
            decisions,
            about,
            dir: dir.clone(),
            backends,
            metrics: metrics.clone(),
        });
        let server = serve(&dir, desk, secret, metrics, wanted.api).await?;
        Ok(Kept { host, backend, follow, deciders, registry, screen, server })
    }

    /// What is kept and where it can be reached, in a few lines.
    pub async fn describe(&self, file: &Path, fleet: &Fleet) -> String {
        let view = self.host.view();
        let known = view.nodes.iter().filter(|node| node.attempt.is_some()).count();
        let groups = fleet.shape.groups.clone();
        let same = self.host.look(move |driver| driver.state().desired.as_ref().is_some_and(|it| it.groups == groups));
        let words = match same.await {
            Ok(false) => format!(
                "generation {}, changed since {file} was read; `homeostat diff {file}` shows how",
                view.generation,
                file = file.display()
            ),
            _ => format!("{}: generation {}", file.display(), view.generation),
        };
        let socket = self.server.socket().map(|path| path.display().to_string()).unwrap_or_default();
        let listens = self.server.address().map(|address| format!(", listening at {address}")).unwrap_or_default();
        let pid = std::process::id();
        format!("run {}, process {pid}: {known} nodes known, socket {socket}{listens}\n{words}", view.run)
    }

    /// Takes an edit of the file over, whole, or says why not.
    pub async fn adopt_edit(&mut self, edit: Edit) {
        let fleet = match edit {
            Edit::Refused(error) => return self.screen.refused(&Failure::Fleet(error)),
            Edit::Fleet(fleet) => fleet,
        };
        match self.host.declare(declaration(&fleet)).await {
            Ok(generation) => {
                self.screen.note(&format!("{}: generation {generation}", self.follow.path().display()));
            }
            Err(HostError::Shape(error)) => {
                self.screen.refused(&Failure::Fleet(fleet.refuse(self.follow.path(), &error)));
            }
            Err(error) => self.screen.refused(&Failure::Failed(anyhow!(error))),
        }
    }

    /// Reads the certificates of the interface again: those that a renewal put there.
    pub fn read_certificates_again(&mut self) {
        match self.server.read_certificates_again() {
            Ok(false) => {}
            Ok(true) => self.screen.note("the certificates of --listen were read again"),
            Err(error) => self.screen.note(&format!("{error}; the certificates that were read before stay in force")),
        }
    }

    /// After the host has ended.
    pub async fn close(mut self, patience: Duration) {
        self.server.shutdown(LAST_ANSWERS).await;
        self.screen.close();
        let _ = tokio::time::timeout(patience, self.backend.shutdown()).await;
    }
}

fn declaration(fleet: &Fleet) -> Declaration {
    let mut shape = fleet.shape.clone();
    shape.generation = fleet.generation.unwrap_or(1);
    Declaration { shape, numbered: fleet.generation.is_some(), policy: fleet.policy }
}

/// The state directory, its database and its key; nothing is made anew where something is missing or damaged.
fn open(dir: &Path) -> Result<(SqliteStore, Secret), Failure> {
    let opened = || -> Result<_, store::StoreError> {
        let held = StateDir::open(dir)?;
        let mut store = SqliteStore::open(&held)?;
        let secret = Secret::open(&held, &mut store)?;
        Ok((store, secret))
    };
    Ok(opened().map_err(|error| anyhow!(error))?)
}

async fn about(host: &HostHandle) -> Result<inspect::About, Failure> {
    let known = host.deciders().await.map_err(|error| anyhow!(error))?;
    Ok(inspect::About {
        started_ms: Clock::system().now_ms(),
        version: env!("CARGO_PKG_VERSION").into(),
        decider: crate::control::decider_status(&known.document),
    })
}

/// The file that the decider comes from, where it is watched.
pub(super) struct WatchedDecider {
    follow: Option<FollowDecider>,
    /// What is being judged.
    taken: Option<tokio::task::JoinHandle<Vec<String>>>,
}

impl WatchedDecider {
    /// Waits until the file changes, or until what it held was judged; says what came of that. May be dropped at any time.
    pub async fn next(&mut self, host: &HostHandle) -> Vec<String> {
        loop {
            let judged = async {
                match &mut self.taken {
                    Some(taken) => taken.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                (path, bytes) = FollowDecider::next(&mut self.follow) => {
                    // What is judged now is superseded by it, and has nothing more to say.
                    self.taken = Some(tokio::spawn(appoint::take_over(host.clone(), path, bytes)));
                }
                lines = judged => {
                    self.taken = None;
                    return lines.unwrap_or_default();
                }
            }
        }
    }
}

/// Opens the interface: a socket for the owner, and an address for whoever has the token or a certificate.
async fn serve(
    dir: &Path,
    desk: Desk,
    secret: Secret,
    metrics: Arc<Metrics>,
    args: &ApiArgs,
) -> Result<Server, Failure> {
    let session_key = secret.token("session").into_bytes();
    let tokens = Tokens::new(move |token| secret.accepts(API_TOKEN, token), session_key);
    let files = |(certificate, key): (&PathBuf, &PathBuf)| TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_ca: args.tls_client_ca.clone(),
    };
    let tls = args.tls_cert.as_ref().zip(args.tls_key.as_ref()).map(files);
    let listen = |address| Listen { address, tokens: Some(tokens), tls, names: args.listen_name.clone() };
    let config = Config {
        socket: Some(dir.join(SOCKET)),
        listen: args.listen.map(listen),
        limits: Limits::default(),
        on_answer: Some(Arc::new(move |path, code| metrics.request(path, code.as_u16()))),
    };
    let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
    let feed = desk.feed().clone();
    let server = Server::start(Arc::new(desk), config).await.map_err(|error| anyhow!(error))?;
    feed.listens_at(server.address().map(|address| format!("{scheme}://{address}")).into_iter().collect());
    Ok(server)
}
