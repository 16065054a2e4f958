//! The listeners: who may connect, how many at once, and how it ends.

mod connection;
mod stalled;
mod tls;
mod unix;
mod unparsed;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::access::{Door, Peer, Tokens};
use crate::control::Control;
use crate::limits::Limits;
use crate::shared::{OnAnswer, Shared, stopped};
use connection::{Serving, refuse_crowd};
use tls::Certificates;

/// Where to listen, and how much to take.
#[derive(Clone, Default)]
pub struct Config {
    /// The Unix socket. Its directory exists; the socket is for its owner only.
    pub socket: Option<PathBuf>,
    /// A TCP listener, if one is asked for.
    pub listen: Option<Listen>,
    /// How much of the daemon a caller may take.
    pub limits: Limits,
    /// Told of each answer: its path as the document has it, or `other`; and its status.
    #[allow(clippy::type_complexity)]
    pub on_answer: Option<Arc<dyn Fn(&'static str, StatusCode) + Send + Sync>>,
}

/// A TCP listener. It asks for the token, or for a certificate, or for one of the two.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Where. Port 0 takes any that is free.
    pub address: SocketAddr,
    /// What opens it.
    pub tokens: Option<Tokens>,
    /// Its certificate; without, it listens only to this machine.
    pub tls: Option<TlsFiles>,
    /// Names under which it is asked, besides `localhost` and addresses. Only needed without TLS, behind a proxy.
    pub names: Vec<String>,
}

/// Certificate and key, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, then those that lead to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities that sign clients' certificates; a client that shows one needs no token.
    pub client_ca: Option<PathBuf>,
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another process answers at the socket.
    #[error("{}: another process listens there", .0.display())]
    InUse(PathBuf),
    /// There is something else than a socket.
    #[error("{}: it is there and is not a socket; move it away", .0.display())]
    NoSocket(PathBuf),
    /// The operating system refuses.
    #[error("{what}: {error}")]
    Io {
        /// What was tried, and on what.
        what: String,
        /// Its words.
        error: std::io::Error,
    },
    /// A listener that anybody could use.
    #[error("{0}: a TCP listener needs a token or a client authority; it is never open to everybody")]
    Open(SocketAddr),
    /// A token that would cross a network in the clear.
    #[error("{0}: it can be reached from other machines, so it needs TLS (a certificate and its key)")]
    InTheClear(SocketAddr),
    /// A certificate or a key is no use.
    #[error("{}: {why}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl ServeError {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |error| ServeError::Io { what, error }
    }
}

/// A server that runs, until it is shut down or dropped.
pub struct Server {
    socket: Option<unix::Socket>,
    address: Option<SocketAddr>,
    certificates: Option<Arc<Certificates>>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    listeners: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds what is configured, then serves in the background. Nothing is bound when this fails.
    pub async fn start(control: Arc<dyn Control>, config: Config) -> Result<Server, ServeError> {
        let (stop, stopping) = watch::channel(false);
        let on_answer: Option<OnAnswer> = config.on_answer;
        let shared = Arc::new(Shared::new(control, config.limits, stopping, on_answer));
        let serving = Serving::new(shared.clone());
        let tcp = match config.listen {
            Some(listen) => Some(Tcp::bind(listen, &shared.limits).await?),
            None => None,
        };
        let mut server =
            Server { socket: None, address: None, certificates: None, shared, stop, listeners: Vec::new() };
        if let Some(path) = config.socket {
            let (socket, listener) = unix::bind(&path)?;
            server.socket = Some(socket);
            server.listeners.push(tokio::spawn(accept_unix(listener, serving.clone())));
        }
        if let Some(tcp) = tcp {
            server.address = Some(tcp.address);
            server.certificates.clone_from(&tcp.tls);
            server.listeners.push(tokio::spawn(tcp.accept(serving)));
        }
        Ok(server)
    }

    /// The Unix socket.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().map(unix::Socket::path)
    }

    /// The TCP listener, with the port that it got.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Reads the certificates of the TCP listener again, for connections from now on; whether it has any.
    ///
    /// # Errors
    ///
    /// One of the files is no use. Those that were read before stay in force.
    pub fn read_certificates_again(&self) -> Result<bool, ServeError> {
        self.certificates.as_ref().map(|held| held.read_again()).transpose().map(|read| read.is_some())
    }

    /// How many are watching.
    pub fn watchers(&self) -> usize {
        self.shared.watchers()
    }

    /// Takes no more connections, ends the watchers, and gives the requests on their way so much time.
    pub async fn shutdown(mut self, grace: Duration) {
        // First the socket, so that the next daemon finds none.
        self.socket = None;
        let _ = self.stop.send(true);
        let ended = async {
            for listener in &mut self.listeners {
                let _ = listener.await;
            }
        };
        let _ = timeout(grace, ended).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for listener in &self.listeners {
            listener.abort();
        }
    }
}

struct Tcp {
    listener: TcpListener,
    address: SocketAddr,
    door: Arc<Door>,
    tls: Option<Arc<Certificates>>,
}

impl Tcp {
    async fn bind(listen: Listen, limits: &Limits) -> Result<Tcp, ServeError> {
        let client_ca = listen.tls.as_ref().is_some_and(|files| files.client_ca.is_some());
        if listen.tokens.is_none() && !client_ca {
            return Err(ServeError::Open(listen.address));
        }
        if listen.tls.is_none() && !listen.address.ip().is_loopback() {
            return Err(ServeError::InTheClear(listen.address));
        }
        let tls = listen.tls.as_ref().map(|files| Certificates::read(files, listen.tokens.is_none())).transpose()?;
        let tls = tls.map(Arc::new);
        let failed = || ServeError::io(format!("listening at {}", listen.address));
        let listener = TcpListener::bind(listen.address).await.map_err(failed())?;
        let address = listener.local_addr().map_err(failed())?;
        let door = Door::new(listen.tokens, tls.is_some(), address.port(), listen.names, limits.wrong_tokens);
        Ok(Tcp { listener, address, door: Arc::new(door), tls })
    }

    async fn accept(self, serving: Serving) {
        let mut crowd = Crowd::new(&serving);
        while let Some(accepted) = crowd.next(self.listener.accept()).await {
            let Ok((stream, _)) = accepted else { continue };
            let _ = stream.set_nodelay(true);
            let Some(place) = crowd.place() else {
                if self.tls.is_none() {
                    refuse_crowd(stream.into_std());
                }
                continue;
            };
            let (serving, door, tls) =
                (serving.clone(), self.door.clone(), self.tls.as_ref().map(|tls| tls.acceptor()));
            crowd.connections.spawn(async move {
                let _place = place;
                match tls {
                    None => serving.connection(stream, Peer::Remote { door, certified: false }).await,
                    Some(tls) => {
                        let greeted =
                            timeout(serving.limits().handshake_time, tls.accept(stream).into_fallible()).await;
                        let stream = match greeted {
                            Ok(Ok(stream)) => stream,
                            Ok(Err((_, stream))) => return tls::part(stream).await,
                            Err(_) => return,
                        };
                        let certified = stream.get_ref().1.peer_certificates().is_some();
                        serving.connection(stream, Peer::Remote { door, certified }).await;
                    }
                }
            });
        }
        crowd.drain().await;
    }
}

async fn accept_unix(listener: tokio::net::UnixListener, serving: Serving) {
    let mut crowd = Crowd::new(&serving);
    while let Some(accepted) = crowd.next(listener.accept()).await {
        let Ok((stream, _)) = accepted else { continue };
        if !stream.peer_cred().is_ok_and(|peer| unix::may_ask(peer.uid())) {
            connection::refuse_stranger(stream.into_std());
            continue;
        }
        let Some(place) = crowd.place() else {
            refuse_crowd(stream.into_std());
            continue;
        };
        let serving = serving.clone();
        crowd.connections.spawn(async move {
            let _place = place;
            serving.connection(stream, Peer::Owner).await;
        });
    }
    drop(listener);
    crowd.drain().await;
}

/// The connections of one listener.
struct Crowd {
    connections: JoinSet<()>,
    places: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
}

impl Crowd {
    fn new(serving: &Serving) -> Self {
        Crowd {
            connections: JoinSet::new(),
            places: Arc::new(Semaphore::new(serving.limits().connections)),
            stopping: serving.stopping(),
        }
    }

    /// What is accepted next; none once it is time to stop.
    async fn next<T>(&mut self, accepting: impl Future<Output = std::io::Result<T>>) -> Option<std::io::Result<T>> {
        tokio::pin!(accepting);
        loop {
            tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => return None,
                Some(_) = self.connections.join_next() => {}
                accepted = &mut accepting => {
                    if accepted.is_err() {
                        // Such as too many open files: it does not get better by asking at once.
                        sleep(Duration::from_millis(50)).await;
                    }
                    return Some(accepted);
                }
            }
        }
    }

    fn place(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    async fn drain(mut self) {
        while self.connections.join_next().await.is_some() {}
    }
}
