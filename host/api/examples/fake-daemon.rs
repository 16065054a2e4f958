//! Serves a fleet that is not there: for trying out clients.
//!
//! `fake-daemon [--socket PATH] [--listen ADDR --token TOKEN] [--nodes N] [--tick MS] [--hostile] [--steps N] [--epoch E]`;
//! it ends at ^C or SIGTERM, or when its standard input is closed with `--until-eof`.

mod fake;

use std::error::Error;
use std::time::Duration;

use api::{Config, Listen, Server, Tokens};
use fake::{Fake, Options};
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut options, mut tick, mut steps, mut until_eof) = (Options::default(), 500, 0, false);
    let (mut socket, mut listen, mut token) = (None, None, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--socket" => socket = Some(value()?.into()),
            "--listen" => listen = Some(value()?.parse()?),
            "--token" => token = Some(value()?),
            "--nodes" => options.groups.push(("many".into(), value()?.parse()?)),
            "--tick" => tick = value()?.parse()?,
            "--steps" => steps = value()?.parse()?,
            "--epoch" => options.epoch = value()?,
            "--hostile" => options.hostile = true,
            "--until-eof" => until_eof = true,
            other => return Err(format!("{other} is not known").into()),
        }
    }
    let fake = Fake::new(options);
    (0..steps).for_each(|_| fake.step());
    let listen = listen.map(|address| {
        // Not in constant time, and good enough for a fake. Without a token the server does not start.
        let tokens = token.map(|token| Tokens::new(move |shown: &str| shown == token, [7; 32]));
        Listen { address, tokens, tls: None, names: Vec::new() }
    });
    let config = Config { socket, listen, ..Config::default() };
    let server = Server::start(fake.clone(), config).await?;
    if let Some(path) = server.socket() {
        println!("socket {}", path.display());
    }
    if let Some(address) = server.address() {
        println!("listening {address}");
    }
    let mut terminated = signal(SignalKind::terminate())?;
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
        _ = terminated.recv() => {}
    }
    server.shutdown(Duration::from_secs(2)).await;
    Ok(())
}
