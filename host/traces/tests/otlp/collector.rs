//! A collector: keeps whatever is posted to it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};

#[derive(Debug)]
pub struct Posted {
    pub line: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

pub struct Collector {
    at: SocketAddr,
    ends: Arc<AtomicBool>,
    posted: Arc<Mutex<Vec<Posted>>>,
    thread: JoinHandle<()>,
}

impl Collector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (ends, posted) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (ended, kept) = (ends.clone(), posted.clone());
        let thread = spawn(move || {
            for client in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let kept = kept.clone();
                let client = client.unwrap();
                spawn(move || serve(client, &kept));
            }
        });
        Collector { at, ends, posted, thread }
    }

    pub fn url(&self) -> String {
        // A slash at the end is no other address.
        format!("http://{}/", self.at)
    }

    /// Nobody listens any more; gives what arrived.
    pub fn stop(self) -> Vec<Posted> {
        self.ends.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.at));
        self.thread.join().unwrap();
        std::mem::take(&mut *self.posted.lock().unwrap())
    }
}

fn serve(client: TcpStream, kept: &Mutex<Vec<Posted>>) {
    let mut answers = client.try_clone().unwrap();
    let mut asks = BufReader::new(client);
    loop {
        let mut line = String::new();
        if asks.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            asks.read_line(&mut header).unwrap();
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let mut body = vec![0; headers.get("content-length").expect("a length").parse().unwrap()];
        asks.read_exact(&mut body).unwrap();
        kept.lock().unwrap().push(Posted { line: line.trim_end().to_owned(), headers, body });
        answers.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}
