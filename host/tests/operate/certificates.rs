//! Certificates that are renewed while the daemon runs.

use std::path::Path;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustix::process::Signal;

use crate::fixture::Place;
use crate::lab::{HOMEOSTAT, Said, ask, daemon, over, said, web};

/// A new authority as `NAME-ca.pem`, and a certificate of it for the server.
fn renew(dir: &Path, name: &str) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(&key, &authority).unwrap();
    std::fs::write(dir.join(format!("{name}-ca.pem")), authority.pem()).unwrap();
    std::fs::write(dir.join("server.pem"), certificate.pem()).unwrap();
    std::fs::write(dir.join("server.key"), key.serialize_pem()).unwrap();
}

#[test]
fn a_hang_up_puts_renewed_certificates_in_force() {
    let place = Place::with(&web(1));
    let dir = place.path();
    renew(&dir, "first");
    let (certificate, key) = (dir.join("server.pem"), dir.join("server.key"));
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let up = daemon(&place, &["--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key]);
    up.converged(0);
    let status = ask(&place, &["status"]).ok();
    let listens = status["listens"][0].as_str().unwrap();
    let url = format!("https://localhost:{}", listens.rsplit_once(':').unwrap().1);
    let token = ask(&place, &["token"]).ok()["token"].as_str().unwrap().to_owned();
    let over_tls = |authority: &str| -> Said {
        let mut remote = Command::new(HOMEOSTAT);
        remote.args(["status", "-o", "json", "--address", &url, "--ca"]).arg(dir.join(format!("{authority}-ca.pem")));
        remote.env("HOMEOSTAT_TOKEN", &token).env_remove("HOMEOSTAT_STATE");
        said(remote)
    };
    assert_eq!(over_tls("first").ok()["run"], "demo");
    renew(&dir, "second");
    assert_eq!(over_tls("first").code, 0, "what was read stays in force until it is read again");
    let mark = up.mark();
    up.signal(Signal::HUP);
    up.note(mark, "the certificates of --listen were read again");
    assert_eq!(over_tls("second").ok()["run"], "demo");
    let old = over_tls("first");
    assert_eq!(old.code, 4, "{}{}", old.out, old.err);
    // A renewal that went wrong.
    std::fs::write(certificate, "nonsense").unwrap();
    let mark = up.mark();
    up.signal(Signal::HUP);
    let note = up.note(mark, "the certificates that were read before stay in force").to_string();
    assert!(note.contains("server.pem"), "{note}");
    assert_eq!(over_tls("second").ok()["run"], "demo");
    over(&place, up);
}
