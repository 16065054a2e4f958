//! TLS, and certificates instead of a token.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::{Config, Listen, ServeError, Server, TlsFiles};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::fake::{Fake, Options};
use crate::raw::{ask, request, send};
use crate::{TOKEN, listen};

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    /// Writes `name.pem` and `name.key`.
    fn sign(&self, dir: &Path, name: &str, purpose: ExtendedKeyUsagePurpose) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["fleet.test".to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let paths = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
        std::fs::write(&paths.0, certificate.pem()).unwrap();
        std::fs::write(&paths.1, key.serialize_pem()).unwrap();
        paths
    }

    fn write(&self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, self.issuer.pem()).unwrap();
        path
    }
}

struct Setting {
    dir: TempDir,
    authority: Authority,
    files: TlsFiles,
}

fn setting(with_client_ca: bool) -> Setting {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.sign(dir.path(), "server", ExtendedKeyUsagePurpose::ServerAuth);
    let client_ca = with_client_ca.then(|| authority.write(dir.path(), "ca.pem"));
    Setting { files: TlsFiles { certificate, key, client_ca }, authority, dir }
}

async fn start(listen: Listen) -> Result<Server, ServeError> {
    Server::start(Fake::new(Options::default()), Config { listen: Some(listen), ..Config::default() }).await
}

/// Whoever trusts the authority, and shows a certificate if it has one.
async fn connect(
    server: &Server,
    trusted: &Authority,
    shown: Option<&(PathBuf, PathBuf)>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.issuer.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap()
        }
    };
    let stream = TcpStream::connect(server.address().unwrap()).await?;
    TlsConnector::from(Arc::new(config)).connect("fleet.test".try_into().unwrap(), stream).await
}

fn status_request(headers: &[(&str, &str)]) -> Vec<u8> {
    request("GET", "/v1/status", headers, b"")
}

#[tokio::test]
async fn the_token_crosses_the_network_under_tls() {
    let setting = setting(false);
    let address = "0.0.0.0:0".parse().unwrap();
    let server = start(Listen { address, tls: Some(setting.files.clone()), ..listen() }).await.unwrap();
    let stream = connect(&server, &setting.authority, None).await.unwrap();
    ask(stream, &status_request(&[])).await.problem(401, "unauthorized");
    let authorization = format!("Bearer {TOKEN}");
    let stream = connect(&server, &setting.authority, None).await.unwrap();
    let headers = [("Authorization", authorization.as_str()), ("Host", "fleet.test")];
    assert_eq!(ask(stream, &status_request(&headers)).await.status, 200);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let stream = connect(&server, &setting.authority, None).await.unwrap();
    let opened = ask(stream, &request("POST", "/login", &form, format!("token={TOKEN}").as_bytes())).await;
    let cookie = opened.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-homeostat-") && cookie.ends_with("; Secure"), "{cookie}");
    assert!(connect(&server, &Authority::new(), None).await.is_err(), "another authority");
    // Whoever speaks plainly gets nothing.
    let plain = TcpStream::connect(("127.0.0.1", server.address().unwrap().port())).await.unwrap();
    let read = send(plain, &status_request(&headers)).await;
    assert!(!String::from_utf8_lossy(&read).contains("HTTP"), "{read:?}");
}

#[tokio::test]
async fn a_certificate_opens_it_and_only_one_of_the_authority() {
    let setting = setting(true);
    let dir = setting.dir.path();
    let server = start(Listen { tokens: None, tls: Some(setting.files.clone()), ..listen() }).await.unwrap();
    let ours = setting.authority.sign(dir, "client", ExtendedKeyUsagePurpose::ClientAuth);
    let stream = connect(&server, &setting.authority, Some(&ours)).await.unwrap();
    assert_eq!(ask(stream, &status_request(&[])).await.status, 200);
    // The browser of somebody who has it, led astray.
    let astray = [("Content-Type", "application/json"), ("Sec-Fetch-Site", "cross-site")];
    let stream = connect(&server, &setting.authority, Some(&ours)).await.unwrap();
    ask(stream, &request("POST", "/v1/plan", &astray, b"{}")).await.problem(403, "forbidden");
    let foreign = Authority::new().sign(dir, "foreign", ExtendedKeyUsagePurpose::ClientAuth);
    let not_for_clients = setting.authority.sign(dir, "wrong", ExtendedKeyUsagePurpose::ServerAuth);
    for shown in [None, Some(&foreign), Some(&not_for_clients)] {
        // TLS 1.3 tells the client only after its side is done.
        if let Ok(stream) = connect(&server, &setting.authority, shown).await {
            assert!(send(stream, &status_request(&[])).await.is_empty(), "{shown:?}");
        }
    }
}

#[tokio::test]
async fn a_certificate_or_the_token() {
    let setting = setting(true);
    let server = start(Listen { tls: Some(setting.files.clone()), ..listen() }).await.unwrap();
    let ours = setting.authority.sign(setting.dir.path(), "client", ExtendedKeyUsagePurpose::ClientAuth);
    let authorization = format!("Bearer {TOKEN}");
    let cases =
        [(Some(&ours), vec![], 200), (None, vec![("Authorization", authorization.as_str())], 200), (None, vec![], 401)];
    for (shown, headers, status) in cases {
        let stream = connect(&server, &setting.authority, shown).await.unwrap();
        assert_eq!(ask(stream, &status_request(&headers)).await.status, status);
    }
}

#[tokio::test]
async fn renewed_certificates_are_in_force_when_they_are_read_again() {
    let setting = setting(true);
    let dir = setting.dir.path();
    let server = start(Listen { tokens: None, tls: Some(setting.files.clone()), ..listen() }).await.unwrap();
    let ours = setting.authority.sign(dir, "client", ExtendedKeyUsagePurpose::ClientAuth);
    let open = connect(&server, &setting.authority, Some(&ours)).await.unwrap();
    // Another authority signs both sides from now on.
    let next = Authority::new();
    next.sign(dir, "server", ExtendedKeyUsagePurpose::ServerAuth);
    next.write(dir, "ca.pem");
    let theirs = next.sign(dir, "client2", ExtendedKeyUsagePurpose::ClientAuth);
    assert!(connect(&server, &next, Some(&theirs)).await.is_err(), "not before they are read");
    assert!(server.read_certificates_again().unwrap());
    let stream = connect(&server, &next, Some(&theirs)).await.unwrap();
    assert_eq!(ask(stream, &status_request(&[])).await.status, 200);
    assert!(connect(&server, &setting.authority, Some(&ours)).await.is_err());
    assert_eq!(ask(open, &status_request(&[])).await.status, 200, "what is open stays so");
    // One that is no use changes nothing.
    std::fs::write(dir.join("server.pem"), "").unwrap();
    let refused = server.read_certificates_again().unwrap_err().to_string();
    assert!(refused.contains("server.pem: there is no certificate"), "{refused}");
    let stream = connect(&server, &next, Some(&theirs)).await.unwrap();
    assert_eq!(ask(stream, &status_request(&[])).await.status, 200);
}

#[tokio::test]
async fn files_that_are_no_use_are_named() {
    let setting = setting(false);
    let dir = setting.dir.path();
    let empty = dir.join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let other = Authority::new().sign(dir, "other", ExtendedKeyUsagePurpose::ServerAuth);
    let good = &setting.files;
    let cases = [
        (TlsFiles { certificate: dir.join("missing.pem"), ..good.clone() }, "missing.pem"),
        (TlsFiles { certificate: empty.clone(), ..good.clone() }, "empty.pem: there is no certificate"),
        (TlsFiles { key: empty.clone(), ..good.clone() }, "empty.pem"),
        (TlsFiles { key: other.1, ..good.clone() }, "server.pem"),
        (TlsFiles { client_ca: Some(empty), ..good.clone() }, "empty.pem: there is no certificate"),
    ];
    for (files, words) in cases {
        let refused = start(Listen { tls: Some(files), ..listen() }).await.err().unwrap();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}
