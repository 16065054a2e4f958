//! The server against a fake daemon, over real sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod access;
mod contract;
mod deciders;
#[path = "../../examples/fake/mod.rs"]
mod fake;
mod limits;
mod raw;
mod socket;
mod tls;
mod troubled;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use api::{Config, Control, Limits, Listen, Server, Tokens};
use fake::{Fake, Options};
use tempfile::TempDir;

pub const TOKEN: &str = "8d5957a4b1f0c2e67788990011223344556677889900aabbccddeeff00112233";

/// A server over a Unix socket.
pub struct Daemon {
    pub fake: Arc<Fake>,
    pub server: Server,
    pub socket: PathBuf,
    _dir: TempDir,
}

pub async fn daemon(limits: Limits) -> Daemon {
    daemon_with(Options::default(), limits).await
}

pub async fn daemon_with(options: Options, limits: Limits) -> Daemon {
    let fake = Fake::new(options);
    let (server, socket, dir) = serve(fake.clone(), limits).await;
    Daemon { fake, server, socket, _dir: dir }
}

pub async fn serve(control: Arc<dyn Control>, limits: Limits) -> (Server, PathBuf, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("api.sock");
    let config = Config { socket: Some(socket.clone()), limits, ..Config::default() };
    (Server::start(control, config).await.unwrap(), socket, dir)
}

pub fn tokens() -> Tokens {
    Tokens::new(|shown: &str| shown == TOKEN, *b"a key of at least thirty-two bytes")
}

pub fn listen() -> Listen {
    Listen {
        address: "127.0.0.1:0".parse().unwrap(),
        tokens: Some(tokens()),
        tls: None,
        names: vec!["fleet.test".into()],
    }
}
