//! Over https: who is let in, and what is said to whoever is not.

use std::path::{Path, PathBuf};

use api::{Config, Listen, Server, TlsFiles, Tokens};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

use super::fake::{Fake, Options};
use super::{Ran, operate};

const TOKEN: &str = "8d5957a4b1f0c2e67788990011223344556677889900aabbccddeeff00112233";

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes `name.pem` and `name.key`.
    fn sign(&self, dir: &Path, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let paths = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
        std::fs::write(&paths.0, certificate.pem()).unwrap();
        std::fs::write(&paths.1, key.serialize_pem()).unwrap();
        paths
    }

    fn write(&self, dir: &Path, name: &str) {
        std::fs::write(dir.join(name), self.0.pem()).unwrap();
    }
}

fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2019, 1, 1);
    params.not_after = date_time_ymd(2020, 1, 1);
}

struct Site {
    dir: TempDir,
    authority: Authority,
    port: u16,
    _runtime: tokio::runtime::Runtime,
    _server: Server,
}

impl Site {
    /// A daemon at an address that takes its token, a certificate, or either.
    fn new(token: bool, certificates: bool, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        authority.write(dir.path(), "ca.pem");
        std::fs::write(dir.path().join("token"), TOKEN).unwrap();
        std::fs::write(dir.path().join("other-token"), TOKEN.replace('8', "9")).unwrap();
        let (certificate, key) = authority.sign(dir.path(), "server", change);
        let client_ca = certificates.then(|| dir.path().join("ca.pem"));
        let tokens = token.then(|| Tokens::new(|shown: &str| shown == TOKEN, *b"a key of at least thirty-two bytes"));
        let tls = Some(TlsFiles { certificate, key, client_ca });
        let listen = Listen { address: "127.0.0.1:0".parse().unwrap(), tokens, tls, names: Vec::new() };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let fake = Fake::new(Options::default());
        (0..8).for_each(|_| fake.step());
        let config = Config { listen: Some(listen), ..Config::default() };
        let server = runtime.block_on(Server::start(fake, config)).unwrap();
        let port = server.address().unwrap().port();
        Site { dir, authority, port, _runtime: runtime, _server: server }
    }

    fn plain(token: bool, certificates: bool) -> Self {
        Site::new(token, certificates, |_| {})
    }

    /// Asks with files of the site's folder.
    fn ask(&self, verb: &[&str], files: &[(&str, &str)]) -> Ran {
        self.ask_at(&format!("https://localhost:{}", self.port), verb, files)
    }

    fn ask_at(&self, address: &str, verb: &[&str], files: &[(&str, &str)]) -> Ran {
        let mut args: Vec<String> = verb.iter().map(|word| (*word).to_owned()).collect();
        args.extend(["--address".to_owned(), address.to_owned()]);
        for (option, file) in files {
            args.extend([(*option).to_owned(), self.dir.path().join(file).display().to_string()]);
        }
        operate(&args.iter().map(String::as_str).collect::<Vec<_>>(), "")
    }
}

const CA: (&str, &str) = ("--ca", "ca.pem");
const STATUS: &[&str] = &["status"];

fn own(name: &str) -> [(&'static str, String); 2] {
    [("--cert", format!("{name}.pem")), ("--key", format!("{name}.key"))]
}

impl Site {
    fn with(&self, verb: &[&str], name: &str) -> Ran {
        let own = own(name);
        let files: Vec<(&str, &str)> =
            [CA].into_iter().chain(own.iter().map(|(at, file)| (*at, file.as_str()))).collect();
        self.ask(verb, &files)
    }
}

/// Exit code 4, the reason, and what to do about it.
fn kept_out(ran: &Ran, reason: &str, remedy: &str) {
    assert_eq!((ran.code, ran.out.as_str()), (4, ""), "{}", ran.err);
    assert!(ran.err.starts_with("error: the daemon cannot be reached at https://"), "{}", ran.err);
    assert!(ran.err.contains(reason), "{reason}: {}", ran.err);
    assert!(ran.err.lines().last().unwrap().contains(remedy), "{remedy}: {}", ran.err);
}

#[test]
fn with_its_token_or_a_certificate_one_is_let_in() {
    let site = Site::plain(true, true);
    site.authority.sign(site.dir.path(), "client", |_| {});
    let token = site.ask(STATUS, &[CA, ("--token-file", "token")]);
    assert_eq!(token.code, 0, "{}", token.err);
    let certificate = site.with(STATUS, "client");
    assert_eq!((certificate.code, &certificate.out), (0, &token.out), "{}", certificate.err);
    // Commands, and what goes on for a while, take the same way.
    let killed = site.with(&["kill", "web-0", "--yes"], "client");
    assert_eq!(killed.code, 0, "{}", killed.err);
    let only = Site::plain(false, true);
    only.authority.sign(only.dir.path(), "client", |_| {});
    assert_eq!(only.with(STATUS, "client").code, 0);
}

#[test]
fn without_a_token_or_with_another_one_nobody_is_let_in() {
    let site = Site::plain(true, true);
    for files in [&[CA][..], &[CA, ("--token-file", "other-token")]] {
        kept_out(&site.ask(STATUS, files), "it does not let us in", "`homeostat token` on its machine prints it");
    }
}

#[test]
fn a_server_that_cannot_be_trusted_is_told_nothing() {
    let site = Site::plain(true, false);
    Authority::new().write(site.dir.path(), "other-ca.pem");
    let files = [("--ca", "other-ca.pem"), ("--token-file", "token")];
    kept_out(&site.ask(STATUS, &files), "its certificate is of no authority in --ca", "somebody else answers there");

    let with_token = [CA, ("--token-file", "token")];
    let at = format!("https://127.0.0.1:{}", site.port);
    let ran = site.ask_at(&at, STATUS, &with_token);
    kept_out(&ran, "its certificate is for another name", "under a name that its certificate has");

    let old = Site::new(true, false, expired);
    kept_out(&old.ask(STATUS, &with_token), "its certificate has expired", "renew it");
    let early = Site::new(true, false, |params| params.not_before = date_time_ymd(2900, 1, 1));
    kept_out(&early.ask(STATUS, &with_token), "its certificate is not valid yet", "clocks");
}

#[test]
fn a_certificate_that_the_server_does_not_take_is_named_with_the_reason() {
    let site = Site::plain(false, true);
    let dir = site.dir.path();
    site.authority.sign(dir, "old", expired);
    Authority::new().sign(dir, "foreign", |_| {});
    site.authority.sign(dir, "for-servers", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    for verb in [STATUS, &["kill", "web-0", "--yes"], &["events", "-f"]] {
        // Nothing was carried out, so a command does not leave anybody in doubt.
        kept_out(&site.ask(verb, &[CA]), "it asks for a client certificate", "--cert and --key");
        kept_out(&site.with(verb, "old"), "it refuses our certificate: it has expired", "renew the one of --cert");
        kept_out(&site.with(verb, "foreign"), "it refuses our certificate", "--cert and --key");
        kept_out(&site.with(verb, "for-servers"), "it refuses our certificate", "--cert and --key");
    }
}

#[test]
fn http_and_https_are_not_mixed_up_in_silence() {
    let site = Site::plain(true, false);
    let ran = site.ask_at(&format!("http://localhost:{}", site.port), STATUS, &[("--token-file", "token")]);
    assert!(matches!(ran.code, 1 | 4), "{} {}", ran.code, ran.err);
    assert!(ran.err.contains("https"), "{}", ran.err);

    let listen = Listen {
        address: "127.0.0.1:0".parse().unwrap(),
        tokens: Some(Tokens::new(|shown: &str| shown == TOKEN, *b"a key of at least thirty-two bytes")),
        tls: None,
        names: Vec::new(),
    };
    let config = Config { listen: Some(listen), ..Config::default() };
    let clear = site._runtime.block_on(Server::start(Fake::new(Options::default()), config)).unwrap();
    let at = format!("https://localhost:{}", clear.address().unwrap().port());
    kept_out(&site.ask_at(&at, STATUS, &[CA, ("--token-file", "token")]), "it does not speak TLS", "http://");
}

#[test]
fn files_that_are_no_use_are_named_before_anything_is_sent() {
    let site = Site::plain(true, true);
    let dir = site.dir.path();
    site.authority.sign(dir, "client", |_| {});
    site.authority.sign(dir, "other", |_| {});
    std::fs::write(dir.join("empty.pem"), "").unwrap();
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("--ca", "missing.pem")], "--ca: "),
        (&[("--ca", "empty.pem")], "empty.pem: it holds no certificate"),
        (&[CA, ("--cert", "empty.pem"), ("--key", "client.key")], "empty.pem: it holds no certificate"),
        (&[CA, ("--cert", "client.pem"), ("--key", "empty.pem")], "--key: "),
        (&[CA, ("--cert", "client.pem"), ("--key", "other.key")], "--cert: "),
    ];
    for (files, words) in cases {
        let ran = site.ask(STATUS, files);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
}
