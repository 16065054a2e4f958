//! Keeps a fleet: what `up` and `daemon` have in common. They differ in how they end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use api::metrics::Metrics;
use api::wire::RefusedFile;
use api::{Config, Limits, Listen, Server, TlsFiles, Tokens};
use clap::{Args, ValueHint};
use inspect::{DecisionLog, Feed};
use step::text::counted;
use store::{Secret, SqliteStore, StateDir};
use tokio::runtime::Runtime;

use super::appoint::{self, Appointed, DeciderArgs, FollowDecider};
use super::origin::{self, Origin};
use super::up::{Edit, Follow, Screen, raise_open_files, state_dir};
use super::{Failure, Terminal};
use crate::backends::Backend;
use crate::backends::process::{ProcessBackend, ProcessConfig};
use crate::clock::Clock;
use crate::control::{Desk, Parts};
use crate::fleet::{Fleet, FleetError};
use crate::journal::JournalFile;
use crate::registry::Registry;
use crate::runtime::{Declaration, Host, HostError, HostHandle, Intervals};

/// The label of the API token (see [`Secret::token`]).
pub(super) const API_TOKEN: &str = "api";
/// The interface's socket in the state directory.
pub(super) const SOCKET: &str = "api.sock";
/// What is said of a refused file at most, in characters.
const REASON_CHARS: usize = 400;
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
    /// Whether the fleet goes on as it was where its file cannot be taken over at the start.
    pub goes_on: bool,
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
    feed: Arc<Feed>,
    server: Server,
    _threads: ApiThreads,
}

impl Kept {
    /// Starts: state, backend, host, interface, in this order. Nothing is made anew where something is missing or damaged.
    pub async fn start(
        wanted: Wanted<'_>,
        terminal: &Terminal,
        origin: &Origin,
        decider: Appointed,
    ) -> Result<Self, Failure> {
        let exe = std::env::current_exe().context("finding this program")?;
        let dir = state_dir(wanted.state)?.join(origin.run());
        let (store, secret) = open(&dir)?;
        let (registry, built_in, declared) = decider.settle(&dir, &secret)?;
        let config = ProcessConfig { open_files: raise_open_files(), ..ProcessConfig::new(&dir, exe) };
        let backend = Arc::new(ProcessBackend::open(config).map_err(|error| anyhow!(error))?);
        let metrics = Arc::new(Metrics::new(origin.run(), env!("CARGO_PKG_VERSION")).map_err(|error| anyhow!(error))?);
        let decisions = Arc::new(DecisionLog::default());
        let mut builder = Host::builder(origin.run())
            .shared_backend("process", backend.clone())
            .shared_decider(built_in.decider)
            .registry(registry.clone())
            .read_beside(&dir)
            .intervals(wanted.intervals)
            .decisions(decisions.clone())
            .metrics(metrics.clone())
            .store(store);
        if let Some(fleet) = origin.fleet() {
            builder = builder.declare(declaration(fleet));
        }
        if wanted.goes_on {
            builder = builder.go_on();
        }
        if let Some(declared) = declared {
            builder = builder.declare_decider(declared);
        }
        if let Some(copy) = wanted.copy {
            builder = builder.history(copy);
        }
        let read = match origin {
            Origin::File(fleet) => Ok(&**fleet),
            Origin::State { why, .. } => Err(why),
        };
        let follow = Follow::start(wanted.file, read);
        let deciders = WatchedDecider { follow: FollowDecider::start(wanted.decider, &registry), taken: None };
        let host = match builder.start().await {
            Ok(host) => host,
            Err(error) => return Err(not_started(wanted.file, origin, error)),
        };
        // At once, so that it misses nothing.
        let mut screen = Screen::new(terminal, &host);
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
        let feed = desk.feed().clone();
        let refused = host.refused().zip(origin.fleet()).map(|(error, fleet)| fleet.refuse(wanted.file, error));
        let refused = refused.as_ref().or(read.err());
        if let Some(why) = refused {
            // Before anybody can ask.
            refuse(&feed, &host, wanted.file, why);
        }
        let threads = ApiThreads::start()?;
        let server = serve(&dir, desk, secret, metrics, wanted.api, &threads).await?;
        screen.open(&host);
        let mut kept = Kept { host, backend, follow, deciders, registry, screen, feed, server, _threads: threads };
        if let Err(error) = origin::remember(&dir, wanted.file) {
            kept.screen
                .warn(&format!("{}: which file declares the run cannot be written down: {error}", dir.display()));
        }
        if let Some(why) = refused {
            kept.goes_on(why);
        }
        Ok(kept)
    }

    /// The file cannot be taken over at the start.
    fn goes_on(&mut self, why: &FleetError) {
        self.screen.cannot(&Failure::Fleet(why.clone()));
        let (file, generation) = (self.follow.path().display(), self.host.view().generation);
        let text = format!(
            "{file} cannot be taken over: the fleet goes on as it was, in generation {generation}, and takes the file over \
             as soon as it can be"
        );
        self.screen.warn(&text);
    }

    /// How it is, for a service's overview.
    pub fn in_a_word(&self) -> &'static str {
        match self.feed.status().refused_file {
            None => "keeping the fleet",
            Some(_) => "keeping the fleet as it was: its file cannot be taken over",
        }
    }

    /// What is kept and where it can be reached, in a few lines.
    pub async fn describe(&self, file: &Path, origin: &Origin) -> String {
        let view = self.host.view();
        let known = view.nodes.iter().filter(|node| node.attempt.is_some()).count() as u64;
        let groups = origin.fleet().map(|fleet| fleet.shape.groups.clone());
        let same = self.host.look(move |driver| {
            groups.is_none_or(|groups| driver.state().desired.as_ref().is_some_and(|it| it.groups == groups))
        });
        let words = match same.await {
            _ if self.feed.status().refused_file.is_some() => {
                format!("generation {}, as it was before", view.generation)
            }
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
        format!("run {}, process {pid}: {} known, socket {socket}{listens}\n{words}", view.run, counted(known, "node"))
    }

    /// Takes an edit of the file over, whole, or says why not.
    pub async fn adopt_edit(&mut self, edit: Edit) {
        let fleet = match edit {
            Edit::Refused(error) => return self.refused(error),
            Edit::Fleet(fleet) => fleet,
        };
        match self.host.declare(declaration(&fleet)).await {
            Ok(generation) => {
                self.feed.file_is(self.host.now_ms(), None);
                self.screen.note(&format!("{}: generation {generation}", self.follow.path().display()));
            }
            Err(HostError::Shape(error)) => {
                self.refused(fleet.refuse(self.follow.path(), &error));
            }
            Err(error) => self.screen.refused(&Failure::Failed(anyhow!(error))),
        }
    }

    fn refused(&mut self, why: FleetError) {
        refuse(&self.feed, &self.host, self.follow.path(), &why);
        self.screen.refused(&Failure::Fleet(why));
    }

    /// Reads the certificates of the interface again: those that a renewal put there.
    pub fn read_certificates_again(&mut self) {
        match self.server.read_certificates_again() {
            Ok(false) => {}
            Ok(true) => self.screen.note("the certificates of --listen were read again"),
            Err(error) => self.screen.warn(&format!("{error}; the certificates that were read before stay in force")),
        }
    }

    /// After the host has ended.
    pub async fn close(mut self, patience: Duration) {
        self.server.shutdown(LAST_ANSWERS).await;
        self.screen.close();
        let _ = tokio::time::timeout(patience, self.backend.shutdown()).await;
    }
}

/// Says to whoever asks that the file is refused.
fn refuse(feed: &Feed, host: &HostHandle, file: &Path, why: &FleetError) {
    let now_ms = host.now_ms();
    let known = feed.status().refused_file.as_ref().map(|known| known.since_ms);
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let refused = RefusedFile {
        file: file.display().to_string(),
        reason: crate::fleet::cut(&why.to_string(), REASON_CHARS),
        since_ms: known.unwrap_or(now_ms),
    };
    feed.file_is(now_ms, Some(refused));
}

fn not_started(file: &Path, origin: &Origin, error: HostError) -> Failure {
    match (error, origin) {
        (HostError::Shape(error), Origin::File(fleet)) => Failure::Fleet(fleet.refuse(file, &error)),
        // The state knows nothing either: what is wrong is the file.
        (HostError::NoShape, Origin::State { why, .. }) => Failure::Fleet(why.clone()),
        (error, _) => anyhow!(error).into(),
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

/// The interface has a thread of its own, so that a crowd that asks or watches takes none from the loop.
struct ApiThreads(Option<Runtime>);

impl ApiThreads {
    fn start() -> Result<Self, Failure> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        let threads = threads.worker_threads(1).thread_name("api").enable_all().build();
        Ok(ApiThreads(Some(threads.context("the interface's thread")?)))
    }

    /// Starts to serve on it.
    async fn serve(&self, desk: Desk, config: Config) -> Result<Server, Failure> {
        let Some(threads) = &self.0 else { return Err(anyhow!("the interface's thread has ended").into()) };
        let started = threads.spawn(async move { Server::start(Arc::new(desk), config).await }).await;
        Ok(started.map_err(|error| anyhow!(error))?.map_err(|error| anyhow!(error))?)
    }
}

impl Drop for ApiThreads {
    fn drop(&mut self) {
        // Whoever drops it may not wait.
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
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
    threads: &ApiThreads,
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
    let server = threads.serve(desk, config).await?;
    feed.listens_at(server.address().map(|address| format!("{scheme}://{address}")).into_iter().collect());
    Ok(server)
}
