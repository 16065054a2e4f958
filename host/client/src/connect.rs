//! Opens the way to a daemon, and says why it is not open.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::error::ClientError;
use crate::place::Place;
use crate::tls;

/// What a socket's address holds, the zero at its end included.
const MAX_SOCKET_PATH: usize = 108;

/// Bytes both ways.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Bytes both ways, to a peer that may answer before it has read all and hang up: what it says is read, where otherwise only
/// the broken pipe would be told.
pub(crate) struct HearsOut<W>(W);

impl<W: AsyncRead + Unpin> AsyncRead for HearsOut<W> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for HearsOut<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes).map(|wrote| match wrote {
            // The end of what it says comes with the next reads.
            Err(error) if has_hung_up(&error) => Ok(bytes.len()),
            wrote => wrote,
        })
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context).map(|flushed| flushed.or_else(forgiven))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context).map(|shut| shut.or_else(forgiven))
    }
}

fn has_hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

fn forgiven(error: io::Error) -> io::Result<()> {
    if has_hung_up(&error) { Ok(()) } else { Err(error) }
}

/// Connects.
pub(crate) async fn connect(place: &Place) -> Result<HearsOut<Box<dyn Wire>>, ClientError> {
    wire(place).await.map(HearsOut)
}

async fn wire(place: &Place) -> Result<Box<dyn Wire>, ClientError> {
    let refused = |error: io::Error| unreachable(place, &error);
    match place {
        Place::Socket { path, .. } => Ok(Box::new(socket(path).await.map_err(refused)?)),
        Place::Address { host, port, tls, .. } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(refused)?;
            stream.set_nodelay(true)?;
            match tls {
                None => Ok(Box::new(stream)),
                Some(files) => {
                    let name = ServerName::try_from(host.clone())
                        .map_err(|_| ClientError::Usage(format!("--address: {host:?} is no name of a host")))?;
                    let connector = TlsConnector::from(Arc::new(tls::config(files)?));
                    let secured = connector.connect(name, stream).await;
                    Ok(Box::new(
                        secured.map_err(|error| tls::refused(place, &error).unwrap_or_else(|| refused(error)))?,
                    ))
                }
            }
        }
    }
}

async fn socket(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().as_bytes().len() < MAX_SOCKET_PATH {
        return UnixStream::connect(path).await;
    }
    // A path that no address has room for: through the folder, opened.
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no path of a socket"));
    };
    let folder = std::fs::File::open(folder)?;
    UnixStream::connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)).await
}

/// Why nobody answers, and what to do.
pub(crate) fn unreachable(place: &Place, error: &io::Error) -> ClientError {
    let start = match place {
        Place::Socket { run: Some(run), .. } => {
            format!(
                "start it with `homeostat daemon FILE` (run {run}); `homeostat doctor --run {run}` looks at its state"
            )
        }
        Place::Socket { run: None, .. } => "start it with `homeostat daemon FILE`, or give another --socket".into(),
        Place::Address { .. } => {
            "look whether the daemon runs there with `--listen`, and whether the address is right".into()
        }
    };
    let (why, remedy) = match (place, error.kind()) {
        (Place::Socket { .. }, io::ErrorKind::NotFound) => ("there is no such socket: no daemon runs".into(), start),
        (Place::Socket { .. }, io::ErrorKind::ConnectionRefused) => {
            ("nobody listens at the socket: the daemon that made it has ended".into(), start)
        }
        (Place::Socket { .. }, io::ErrorKind::PermissionDenied) => (
            "permission denied: the socket is its owner's alone".into(),
            "run as the user that the daemon runs as".into(),
        ),
        _ => (error.to_string(), start),
    };
    ClientError::Unreachable { tried: place.words(), why, remedy }
}
