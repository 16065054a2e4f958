//! HTTP by hand: what goes over the wire is what the test says.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Option<Answer> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: bytes[end + 4..].to_vec() };
        if status == 100 {
            return Answer::parse(&answer.body);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            let mut chunks = Chunks::default();
            chunks.feed(&answer.body);
            answer.body = chunks.out;
        }
        Some(answer)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, self.text()))
    }

    /// It is a problem of this status and kind; its detail.
    pub fn problem(&self, status: u16, kind: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("urn:homeostat:{kind}"), "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// A request with these headers; `Connection: close` and the length come by themselves.
pub fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += "Host: localhost\r\n";
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    [format!("{head}\r\n").as_bytes(), body].concat()
}

/// Sends these bytes and reads until the other end closes.
pub async fn send(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Vec<u8> {
    timeout(PATIENCE, async {
        // The other end may answer and close before it has read all.
        let _ = stream.write_all(bytes).await;
        let mut read = Vec::new();
        let _ = stream.read_to_end(&mut read).await;
        read
    })
    .await
    .expect("the server closes")
}

pub async fn ask(stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Answer {
    let read = send(stream, bytes).await;
    Answer::parse(&read).unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&read)))
}

pub async fn connect(socket: &Path) -> UnixStream {
    UnixStream::connect(socket).await.unwrap()
}

pub async fn get(socket: &Path, target: &str) -> Answer {
    ask(connect(socket).await, &request("GET", target, &[], b"")).await
}

pub async fn post(socket: &Path, target: &str, body: &str) -> Answer {
    ask(connect(socket).await, &request("POST", target, &[("Content-Type", "application/json")], body.as_bytes())).await
}

/// Sends a component.
pub async fn upload(socket: &Path, component: &[u8]) -> Answer {
    let request = request("POST", "/v1/deciders", &[("Content-Type", "application/wasm")], component);
    ask(connect(socket).await, &request).await
}

/// Undoes the chunked encoding, as far as it has come.
#[derive(Default)]
pub struct Chunks {
    raw: Vec<u8>,
    pub out: Vec<u8>,
    /// How many there were.
    pub pieces: usize,
}

impl Chunks {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.raw.extend_from_slice(bytes);
        while let Some(line) = self.raw.windows(2).position(|two| two == b"\r\n") {
            let size = usize::from_str_radix(std::str::from_utf8(&self.raw[..line]).unwrap(), 16).unwrap();
            let end = line + 2 + size + 2;
            if size == 0 || self.raw.len() < end {
                return;
            }
            self.out.extend_from_slice(&self.raw[line + 2..end - 2]);
            self.raw.drain(..end);
            self.pieces += 1;
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    pub name: String,
    pub id: Option<String>,
    pub payload: Value,
}

/// Somebody who watches.
pub struct Events<S> {
    stream: S,
    chunks: Chunks,
    begun: bool,
    /// Signs of life that were seen.
    pub beats: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Events<S> {
    pub async fn open(mut stream: S, target: &str, headers: &[(&str, &str)]) -> Events<S> {
        stream.write_all(&request("GET", target, headers, b"")).await.unwrap();
        Events { stream, chunks: Chunks::default(), begun: false, beats: 0 }
    }

    /// In how many pieces it came so far.
    pub fn pieces(&self) -> usize {
        self.chunks.pieces
    }

    /// The next event; none when the stream has ended.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            let block = timeout(PATIENCE, self.next_block()).await.expect("an event in time")?;
            if let Some(event) = self.parse(&block) {
                return Some(event);
            }
        }
    }

    /// The next block as it is; none when the stream has ended.
    pub async fn next_block(&mut self) -> Option<String> {
        let mut head = Vec::new();
        loop {
            if let Some(end) = self.chunks.out.windows(2).position(|two| two == b"\n\n") {
                let block = self.chunks.out.drain(..end + 2).collect();
                return Some(String::from_utf8(block).unwrap());
            }
            let mut buffer = [0; 64 * 1024];
            let read = self.stream.read(&mut buffer).await.unwrap_or(0);
            if read == 0 {
                return None;
            }
            if self.begun {
                self.chunks.feed(&buffer[..read]);
                continue;
            }
            head.extend_from_slice(&buffer[..read]);
            if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&head[..end]).into_owned();
                assert!(text.starts_with("HTTP/1.1 200"), "{text}");
                assert!(text.contains("content-type: text/event-stream"), "{text}");
                self.begun = true;
                self.chunks.feed(&head.split_off(end + 4));
            }
        }
    }

    fn parse(&mut self, block: &str) -> Option<Told> {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        if block.starts_with(':') {
            self.beats += 1;
        }
        let name = field("event: ")?;
        let payload = serde_json::from_str(&field("data: ").unwrap()).unwrap();
        Some(Told { name, id: field("id: "), payload })
    }
}
