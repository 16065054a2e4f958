//! Opens the way to a daemon, and says why it is not open.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::error::ClientError;
use crate::place::{Place, TlsFiles};

/// What a socket's address holds, the zero at its end included.
const MAX_SOCKET_PATH: usize = 108;

/// Bytes both ways.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Connects.
pub(crate) async fn connect(place: &Place) -> Result<Box<dyn Wire>, ClientError> {
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
                    let connector = TlsConnector::from(Arc::new(tls_config(files)?));
                    Ok(Box::new(connector.connect(name, stream).await.map_err(refused)?))
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

fn tls_config(files: &TlsFiles) -> Result<ClientConfig, ClientError> {
    let wrong =
        |option: &str, file: &Path, why: String| ClientError::Usage(format!("{option}: {}: {why}", file.display()));
    let certificates = |option: &str, file: &Path| -> Result<Vec<CertificateDer<'static>>, ClientError> {
        let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let found = read.map_err(|error| wrong(option, file, error.to_string()))?;
        match found.is_empty() {
            true => Err(wrong(option, file, "it holds no certificate".into())),
            false => Ok(found),
        }
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("--ca", &files.ca)? {
        roots.add(certificate).map_err(|error| wrong("--ca", &files.ca, error.to_string()))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Failed(format!("TLS: {error}")))?
        .with_root_certificates(roots);
    Ok(match &files.own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates("--cert", certificate)?;
            let own = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong("--key", key, error.to_string()))?;
            builder
                .with_client_auth_cert(chain, own)
                .map_err(|error| wrong("--cert", certificate, error.to_string()))?
        }
    })
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
