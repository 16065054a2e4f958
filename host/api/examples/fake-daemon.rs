//! Serves a fleet that is not there: for trying out clients.
//!
//! `fake-daemon [--socket PATH] [--listen ADDR --token TOKEN] [--nodes N] [--tick MS] [--hostile] [--steps N] [--epoch E]`;
//! it ends at ^C, or when its standard input is closed with `--until-eof`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;

use std::time::Duration;

use api::{Config, Listen, Server, Tokens};
use fake::{Fake, Options};
use tokio::io::AsyncReadExt;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut options, mut tick, mut steps, mut until_eof) = (Options::default(), 500, 0, false);
    let (mut socket, mut listen, mut token) = (None, None, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
        match argument.as_str() {
            "--socket" => socket = Some(value().into()),
            "--listen" => listen = Some(value().parse().expect("an address")),
            "--token" => token = Some(value()),
            "--nodes" => options.groups.push(("many".into(), value().parse().expect("a number"))),
            "--tick" => tick = value().parse().expect("milliseconds"),
            "--steps" => steps = value().parse().expect("a number"),
            "--epoch" => options.epoch = value(),
            "--hostile" => options.hostile = true,
            "--until-eof" => until_eof = true,
            other => panic!("{other} is not known"),
        }
    }
    let fake = Fake::new(options);
    (0..steps).for_each(|_| fake.step());
    let listen = listen.map(|address| {
        let token = token.expect("--listen needs --token");
        // Not in constant time, and good enough for a fake.
        let tokens = Tokens::new(move |shown: &str| shown == token, [7; 32]);
        Listen { address, tokens: Some(tokens), tls: None, names: Vec::new() }
    });
    let config = Config { socket, listen, ..Config::default() };
    let server = Server::start(fake.clone(), config).await.unwrap_or_else(|error| panic!("{error}"));
    if let Some(path) = server.socket() {
        println!("socket {}", path.display());
    }
    if let Some(address) = server.address() {
        println!("listening {address}");
    }
    let moving = async {
        loop {
            tokio::time::sleep(Duration::from_millis(tick)).await;
            fake.step();
        }
    };
    let closed = async {
        match until_eof {
            true => drop(tokio::io::stdin().read_to_end(&mut Vec::new()).await),
            false => std::future::pending().await,
        }
    };
    tokio::select! {
        () = moving => {}
        () = closed => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    server.shutdown(Duration::from_secs(2)).await;
}
