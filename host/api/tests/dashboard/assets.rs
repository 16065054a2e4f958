//! The files as they are served.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use api::dashboard::ASSETS;

use crate::fake::Options;
use crate::{Daemon, TOKEN};

/// Status line and headers in lower case, then the body.
fn get(daemon: &Daemon, path: &str, more: &str) -> (String, String) {
    let mut stream = TcpStream::connect(daemon.address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n{more}\r\n",
        daemon.address
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

#[test]
fn they_are_named_by_what_is_in_them_and_asked_for_each_time() {
    let daemon = Daemon::start(Options::default());
    for asset in ASSETS {
        let (head, body) = get(&daemon, asset.path, "");
        assert!(head.starts_with("http/1.1 200"), "{}: {head}", asset.path);
        assert_eq!(body, asset.text, "{}", asset.path);
        for header in ["cache-control: no-cache", "x-content-type-options: nosniff", "default-src 'self'"] {
            assert!(head.contains(header), "{}: {header}: {head}", asset.path);
        }
        assert!(head.contains(&format!("content-type: {}", asset.media)), "{head}");
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        let (head, body) = get(&daemon, asset.path, &format!("If-None-Match: \"other\", W/{tag}\r\n"));
        assert!(head.starts_with("http/1.1 304") && body.is_empty(), "{head}");
        let (head, _) = get(&daemon, asset.path, "If-None-Match: \"other\"\r\n");
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }
    let (head, _) = get(&daemon, "/assets/none.js", "");
    assert!(head.starts_with("http/1.1 404"), "{head}");
}

#[test]
fn they_load_nothing_from_elsewhere_and_have_no_script_or_style_inside() {
    let paths: BTreeSet<&str> = ASSETS.iter().map(|asset| asset.path).collect();
    assert_eq!(paths.len(), ASSETS.len());
    for asset in ASSETS {
        let text = asset.text;
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "http:",
            "https:",
            "style=\"",
            "onclick=\"",
            "@import",
            "url(",
        ] {
            let plain = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
            assert!(!plain.contains(forbidden), "{}: {forbidden}", asset.path);
        }
        for import in text.split("from \"./").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(paths.contains(format!("/assets/{import}").as_str()), "{}: {import} is not served", asset.path);
        }
        for link in text.split(['"', '\'']).filter(|word| word.starts_with("/assets/")) {
            assert!(paths.contains(link), "{}: {link} is not served", asset.path);
        }
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), ASSETS.len(), "each file is served");
}
