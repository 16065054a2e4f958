//! TLS: from which files, and why one side does not take the other.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error as TlsError, RootCertStore, crypto,
};

use crate::error::ClientError;
use crate::place::{Place, TlsFiles};

/// How the other side is met.
pub(crate) fn config(files: &TlsFiles) -> Result<ClientConfig, ClientError> {
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

/// Why the handshake failed, or what the server said instead of an answer; `None` where TLS has nothing to do with it.
pub(crate) fn refused(place: &Place, error: &(dyn Error + 'static)) -> Option<ClientError> {
    let error = cause(error)?;
    let own = matches!(place, Place::Address { tls: Some(TlsFiles { own: Some(_), .. }), .. });
    let (why, remedy) = match error {
        TlsError::InvalidCertificate(wrong) => server(wrong),
        TlsError::AlertReceived(alert) => client(*alert, own),
        TlsError::InvalidMessage(_) => {
            ("it does not speak TLS".into(), "use http:// where the daemon listens without a certificate".into())
        }
        other => (other.to_string(), "look at both sides' certificates".into()),
    };
    Some(ClientError::Unreachable { tried: place.words(), why, remedy })
}

/// What TLS says, wherever in an error it stands.
fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e TlsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<TlsError>() {
            return Some(found);
        }
        // What an error of the system carries is not its source, but itself.
        let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(found) = carried.and_then(|carried| carried.downcast_ref::<TlsError>()) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// We do not take the server's certificate.
fn server(wrong: &CertificateError) -> (String, String) {
    match wrong {
        // An authority of the same name, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            "its certificate is of no authority in --ca".into(),
            "give the certificate of the authority that signed it; if that is right, somebody else answers there"
                .into(),
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            "its certificate has expired".into(),
            "renew it where the daemon runs, then `systemctl reload homeostat` (or SIGHUP)".into(),
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("its certificate is not valid yet".into(), "look at the clocks of both machines".into())
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            format!("its certificate is for another name ({wrong})"),
            "ask it under a name that its certificate has, or have one made for this name".into(),
        ),
        other => {
            (format!("its certificate is no use: {other}"), "look at the certificate where the daemon runs".into())
        }
    }
}

/// The server does not take ours.
fn client(alert: AlertDescription, own: bool) -> (String, String) {
    let give = "give a certificate of its client authority with --cert and --key";
    match alert {
        AlertDescription::CertificateRequired => ("it asks for a client certificate".into(), give.into()),
        AlertDescription::CertificateExpired if own => {
            ("it refuses our certificate: it has expired, or is not valid yet".into(), "renew the one of --cert".into())
        }
        AlertDescription::UnknownCA if own => {
            ("it refuses our certificate: it is of another authority".into(), give.into())
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied
            if own =>
        {
            (format!("it refuses our certificate ({alert:?})"), format!("{give}; one for clients, not for servers"))
        }
        other => (format!("it ends the handshake ({other:?})"), "look at both sides' certificates".into()),
    }
}
