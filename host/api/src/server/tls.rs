//! TLS 1.3, with the certificates of files.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::{ServeError, TlsFiles};

/// What is read of somebody whose handshake failed, and for how long.
const LAST_BYTES: u64 = 64 * 1024;
const LAST_TIME: Duration = Duration::from_secs(1);

/// The certificates in force. They can be read again: connections that are open keep theirs.
pub(super) struct Certificates {
    files: TlsFiles,
    only_certificates: bool,
    acceptor: RwLock<TlsAcceptor>,
}

impl Certificates {
    /// Reads them for the first time.
    pub fn read(files: &TlsFiles, only_certificates: bool) -> Result<Self, ServeError> {
        let acceptor = RwLock::new(acceptor(files, only_certificates)?);
        Ok(Certificates { files: files.clone(), only_certificates, acceptor })
    }

    /// Reads them again. Those before stay in force where one of the files is no use.
    pub fn read_again(&self) -> Result<(), ServeError> {
        let read = acceptor(&self.files, self.only_certificates)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// For the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Ends a connection whose handshake failed. What the other side has sent already is read, or its system would throw the alert
/// away that says why.
pub(super) async fn part(mut stream: TcpStream) {
    let parted = async {
        let _ = stream.shutdown().await;
        let _ = tokio::io::copy(&mut stream.take(LAST_BYTES), &mut tokio::io::sink()).await;
    };
    let _ = timeout(LAST_TIME, parted).await;
}

/// Reads the files. `only_certificates`: a client without a certificate is not let in at all.
fn acceptor(files: &TlsFiles, only_certificates: bool) -> Result<TlsAcceptor, ServeError> {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(wrong(&files.certificate))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(wrong(path))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if only_certificates { verifier } else { verifier.allow_unauthenticated() };
            builder.with_client_cert_verifier(verifier.build().map_err(wrong(path))?)
        }
    };
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(wrong(&files.key))?;
    let mut config =
        builder.with_single_cert(certificates(&files.certificate)?, key).map_err(wrong(&files.certificate))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let all: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(wrong(path))?.collect::<Result<_, _>>().map_err(wrong(path))?;
    if all.is_empty() {
        return Err(wrong(path)("there is no certificate in it"));
    }
    Ok(all)
}

fn wrong<E: ToString>(path: &Path) -> impl Fn(E) -> ServeError {
    move |error| ServeError::Tls { path: path.to_owned(), why: error.to_string() }
}
