//! A tiny HTTP server, so that the examples need nothing else: `GET /healthz` says `ok`, `GET /` who it is.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// Longest request head, in bytes.
const HEAD_MAX_BYTES: usize = 8 << 10;
/// How long a client may take.
const CLIENT_TIME: Duration = Duration::from_secs(5);
/// How many clients are served at once.
const CLIENTS_MAX: usize = 64;

/// The demo server's arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoServerArgs {
    /// Address to listen on, such as 127.0.0.1:8080.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: String,
    /// Fail at this many starts before the first that works, counted in --fail-file.
    #[arg(long, value_name = "COUNT", requires = "fail_file", default_value_t = 0)]
    pub fail_times: u32,
    /// Where failed starts are counted; removed when a start works.
    #[arg(long, value_name = "FILE")]
    pub fail_file: Option<PathBuf>,
    /// Wait this long before listening, such as 500ms.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "0s")]
    pub start_delay: Duration,
}

/// Serves until SIGTERM or SIGINT.
pub async fn run(args: DemoServerArgs) -> anyhow::Result<()> {
    // First of all, so that a signal that comes early is not missed.
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    if let Some(file) = &args.fail_file {
        fail_first(file, args.fail_times)?;
    }
    let served = async {
        tokio::time::sleep(args.start_delay).await;
        let listener = TcpListener::bind(&args.listen).await.with_context(|| format!("listen on {}", args.listen))?;
        writeln!(std::io::stdout(), "listening on http://{}", listener.local_addr()?)?;
        serve(listener).await
    };
    tokio::select! {
        result = served => result,
        _ = term.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

fn fail_first(file: &Path, times: u32) -> anyhow::Result<()> {
    let failed = match std::fs::read_to_string(file) {
        Ok(text) => text.trim().parse::<u32>().with_context(|| format!("{} holds no count", file.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error).with_context(|| format!("read {}", file.display())),
    };
    if failed < times {
        let failed = failed + 1;
        std::fs::write(file, failed.to_string()).with_context(|| format!("write {}", file.display()))?;
        bail!("failing on purpose, {failed} of {times}");
    }
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", file.display()))
        }
        _ => Ok(()),
    }
}

async fn serve(listener: TcpListener) -> anyhow::Result<()> {
    let page: Arc<str> = page().into();
    let clients = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        let permit = clients.clone().acquire_owned().await?;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Out of descriptors, or a client that left: neither is a reason to stop.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let page = page.clone();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(CLIENT_TIME, answer(stream, &page)).await;
            drop(permit);
        });
    }
}

fn page() -> String {
    let of = |name: &str| std::env::var(name).unwrap_or_else(|_| "-".to_owned());
    format!(
        "{} from run {}, node {}, attempt {}\n",
        of("GREETING"),
        of("HOMEOSTAT_RUN"),
        of("HOMEOSTAT_NODE"),
        of("HOMEOSTAT_ATTEMPT")
    )
}

async fn answer(mut stream: TcpStream, page: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    let whole = loop {
        let mut chunk = [0; 1024];
        let count = stream.read(&mut chunk).await?;
        head.extend_from_slice(&chunk[..count]);
        if head.windows(4).any(|four| four == b"\r\n\r\n") {
            break true;
        }
        if count == 0 || head.len() > HEAD_MAX_BYTES {
            break false;
        }
    };
    let (status, body) = if whole { route(&head, page) } else { ("400 Bad Request", "bad request\n") };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

fn route<'a>(head: &[u8], page: &'a str) -> (&'static str, &'a str) {
    const BAD: (&str, &str) = ("400 Bad Request", "bad request\n");
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else { return BAD };
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words[..] else { return BAD };
    if !version.starts_with("HTTP/1.")
        || !target.starts_with('/')
        || !method.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        return BAD;
    }
    match (method, target.split('?').next().unwrap_or_default()) {
        ("GET", "/healthz") => ("200 OK", "ok\n"),
        ("GET", "/") => ("200 OK", page),
        ("GET", _) => ("404 Not Found", "not found\n"),
        _ => ("405 Method Not Allowed", "only GET\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_routed() {
        let status = |head: &[u8]| route(head, "page").0;
        assert_eq!(route(b"GET / HTTP/1.1\r\n\r\n", "page"), ("200 OK", "page"));
        assert_eq!(status(b"GET /healthz?x HTTP/1.0\r\n\r\n"), "200 OK");
        assert_eq!(status(b"GET /x HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status(b"POST / HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        for bad in [
            &b"\r\n\r\n"[..],
            b"GET /\r\n\r\n",
            b"get / HTTP/1.1\r\n\r\n",
            b"GET x HTTP/1.1\r\n\r\n",
            b"\xff / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(status(bad), "400 Bad Request");
        }
    }
}
