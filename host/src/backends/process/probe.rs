//! The join probes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use engine::shape::{Join, Probe};
use regex::Regex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::placeholders::Values;
use super::spawn;
use crate::backends::Fault;

/// The least time between two tries.
const INTERVAL_LEAST: Duration = Duration::from_millis(5);
/// How much of an answer is read for its first line.
const STATUS_LINE_MAX_BYTES: usize = 1024;

/// A probe with everything filled in.
#[derive(Debug)]
pub struct Prober {
    kind: Kind,
    interval: Duration,
    timeout: Duration,
}

#[derive(Debug)]
enum Kind {
    Http(Http),
    Tcp(String),
    Exec(Exec),
    Stdout(Regex),
}

#[derive(Debug)]
struct Exec {
    command: Vec<String>,
    env: BTreeMap<String, String>,
    work: PathBuf,
}

impl Prober {
    /// Fills in a join's texts.
    pub fn new(join: &Join, values: &Values, env: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let expand = |text: &String| values.expand(text).map_err(|why| Fault::permanent(why.to_string()));
        let kind = match &join.probe {
            Probe::Http(url) => Kind::Http(Http::parse(&expand(url)?).map_err(Fault::permanent)?),
            Probe::Tcp(address) => Kind::Tcp(expand(address)?),
            Probe::Exec(words) => Kind::Exec(Exec {
                command: words.iter().map(expand).collect::<Result<_, _>>()?,
                env: env.clone(),
                work: values.dir.clone().into(),
            }),
            Probe::Stdout(pattern) => {
                let pattern = values.expand_regex(pattern);
                Kind::Stdout(Regex::new(&pattern).map_err(|why| Fault::permanent(why.to_string()))?)
            }
        };
        let interval = Duration::from_millis(join.interval_ms).max(INTERVAL_LEAST);
        Ok(Prober { kind, interval, timeout: Duration::from_millis(join.timeout_ms) })
    }

    /// The expression that a line of output has to match, for that kind of probe.
    pub fn pattern(&self) -> Option<&Regex> {
        match &self.kind {
            Kind::Stdout(pattern) => Some(pattern),
            Kind::Http(_) | Kind::Tcp(_) | Kind::Exec(_) => None,
        }
    }

    /// Tries until it holds; `trouble` says why it does not yet, from the second try on: the first often comes too early,
    /// which is no news. Never returns for a pattern.
    pub async fn until_held(&self, trouble: &watch::Sender<String>) {
        let mut is_first = true;
        loop {
            let began = tokio::time::Instant::now();
            let tried = async {
                match &self.kind {
                    Kind::Http(http) => http.get().await,
                    Kind::Tcp(address) => connect(address).await,
                    Kind::Exec(exec) => exec.run().await,
                    Kind::Stdout(_) => std::future::pending().await,
                }
            };
            let result = match &self.kind {
                Kind::Stdout(_) => tried.await,
                _ => tokio::time::timeout(self.timeout, tried)
                    .await
                    .unwrap_or_else(|_| Err(format!("no answer within {} ms", self.timeout.as_millis()))),
            };
            match result {
                Ok(()) => return,
                Err(_) if is_first => is_first = false,
                Err(why) => {
                    trouble.send_if_modified(|known| {
                        let changed = *known != why;
                        *known = why;
                        changed
                    });
                }
            }
            tokio::time::sleep_until(began + self.interval).await;
        }
    }
}

async fn connect(address: &str) -> Result<(), String> {
    let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
    // On loopback a connection to a port that nobody listens on can meet itself.
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(local), Ok(peer)) if local == peer => Err(format!("{address}: nobody listens")),
        _ => Ok(()),
    }
}

/// A plain `http://` URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    authority: String,
    address: String,
    path: String,
}

impl Http {
    /// Takes `http://host[:port][/path][?query]` apart.
    pub fn parse(url: &str) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").ok_or("expected a URL that starts with http://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if authority.is_empty() || authority.contains('@') || url.contains(|char: char| char <= ' ' || char == '\x7f') {
            return Err("expected http://host[:port]/path".into());
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().map_err(|_| "not a port")?),
            _ => (authority, 80),
        };
        if host.is_empty() || port == 0 {
            return Err("expected http://host[:port]/path".into());
        }
        Ok(Http { authority: authority.into(), address: format!("{host}:{port}"), path })
    }

    async fn get(&self) -> Result<(), String> {
        let at = |error: std::io::Error| format!("{}: {error}", self.authority);
        let mut stream = TcpStream::connect(&self.address).await.map_err(at)?;
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: homeostat\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            self.path, self.authority
        );
        stream.write_all(request.as_bytes()).await.map_err(at)?;
        let mut answer = Vec::new();
        while !answer.contains(&b'\n') && answer.len() < STATUS_LINE_MAX_BYTES {
            let mut chunk = [0; 256];
            match stream.read(&mut chunk).await.map_err(at)? {
                0 => break,
                count => answer.extend_from_slice(&chunk[..count]),
            }
        }
        match status(&answer) {
            Some(200..=299) => Ok(()),
            Some(status) => Err(format!("GET {} answered {status}", self.path)),
            None => Err(format!("{}: the answer is not HTTP", self.authority)),
        }
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    words.next().filter(|version| version.starts_with("HTTP/"))?;
    words.next().filter(|code| code.len() == 3)?.parse().ok()
}

impl Exec {
    async fn run(&self) -> Result<(), String> {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let mut command = spawn::command(&self.command, &self.env, &self.work);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut command = tokio::process::Command::from(command);
        command.kill_on_drop(true);
        let mut child = spawn::alone(|| command.spawn()).map_err(|error| format!("{program}: {error}"))?;
        // Given up, all that it started ends with it.
        let mut group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let status = child.wait().await;
        group.0 = None;
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{program}: {status}")),
            Err(error) => Err(format!("{program}: {error}")),
        }
    }
}

/// Kills the group of a child that has not been waited for, so that the number is certainly its own.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let parts = |url: &str| Http::parse(url).map(|http| (http.address, http.path));
        assert_eq!(parts("http://127.0.0.1:8/x?y#z"), Ok(("127.0.0.1:8".into(), "/x?y".into())));
        assert_eq!(parts("http://host"), Ok(("host:80".into(), "/".into())));
        assert_eq!(parts("http://[::1]?q"), Ok(("[::1]:80".into(), "/?q".into())));
        assert_eq!(parts("http://[::1]:9/"), Ok(("[::1]:9".into(), "/".into())));
        for bad in ["https://x/", "http://", "http://:1/", "http://a:b/", "http://a:0/", "http://a b/", "http://u@h/"] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_status_line_is_an_answer() {
        assert_eq!(status(b"HTTP/1.1 204 No Content\r\n\r\n"), Some(204));
        assert_eq!(status(b"HTTP/1.0 503\n"), Some(503));
        for bad in [&b""[..], b"SSH-2.0-x\r\n", b"HTTP/1.1 2000 x\n", b"HTTP/1.1 abc\n", b"\xff\xfe\n"] {
            assert_eq!(status(bad), None);
        }
    }
}
