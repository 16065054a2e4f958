//! The stream of changes (`text/event-stream`).
//!
//! Each watcher pulls: nothing is made for it before its connection takes it, so that a slow one costs a place in the channel
//! and nothing else. One that falls behind is told to list again.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Response};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Instant, sleep_until};

use crate::problem::Fault;
use crate::shared::{Shared, Watcher, stopped};
use crate::wire::{Change, End, Relist, WatchQuery};

/// How many changes keep their text, for the watchers that come to them a little later.
const RENDERED: usize = 256;

/// The first change after a quiet time goes out at once; those that follow it sooner than this go out together. A crowd that
/// watches a busy fleet is then woken fifty times a second and not for each change.
const TOGETHER: Duration = Duration::from_millis(20);

/// Texts up to this many bytes are put together in one piece, which has hardly more than [`PIECE_BYTES`].
const SMALL_BYTES: usize = 8 * 1024;
const PIECE_BYTES: usize = 64 * 1024;

/// How often a list is taken again that is older than what is remembered.
const LISTS: usize = 8;

/// The longest revision that is looked for, in bytes.
const MAX_REVISION: usize = 128;

/// The texts of the last changes: made once for all watchers.
#[derive(Default)]
pub(crate) struct Rendered(Mutex<VecDeque<(Arc<Change>, Bytes)>>);

impl Rendered {
    fn change(&self, change: &Arc<Change>) -> Bytes {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, text)) = kept.iter().rev().find(|(of, _)| Arc::ptr_eq(of, change)) {
            return text.clone();
        }
        let text = event("change", Some(&change.revision), &serde_json::to_vec(&**change).unwrap_or_default());
        if kept.len() == RENDERED {
            kept.pop_front();
        }
        kept.push_back((change.clone(), text.clone()));
        text
    }
}

/// Answers `watch`.
pub(crate) fn watch(shared: &Arc<Shared>, query: &WatchQuery, headers: &HeaderMap) -> Result<Response<Body>, Fault> {
    let from = match headers.get("last-event-id") {
        Some(value) => {
            let text = value.to_str().map_err(|_| Fault::malformed("Last-Event-ID: it is no text"))?;
            Some(text.to_owned()).filter(|text| !text.is_empty())
        }
        None => query.from.clone(),
    };
    let Some(watcher) = shared.watcher() else {
        let most = shared.limits.watchers;
        return Err(Fault::rate(format!("{most} are watching already, which is the limit"), 10));
    };
    let stream = Stream::open(shared.clone(), watcher, from);
    let body = futures_util::stream::unfold(stream, |mut stream| async move {
        let next = stream.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(next), stream))
    });
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

struct Stream {
    shared: Arc<Shared>,
    _watcher: Watcher,
    changes: Receiver<Arc<Change>>,
    /// What goes out before anything else.
    ready: VecDeque<Bytes>,
    /// Revisions that were told already and may still come through the channel.
    told: HashSet<String>,
    stopping: tokio::sync::watch::Receiver<bool>,
    beat: Instant,
    /// Until then changes are put together.
    together: Instant,
    /// Something went by before it was taken.
    missed: bool,
    ended: bool,
}

impl Stream {
    fn open(shared: Arc<Shared>, watcher: Watcher, from: Option<String>) -> Self {
        let mut stream = Stream {
            // Before anything is read, so that nothing is missed in between.
            changes: shared.control.changes(),
            ready: VecDeque::new(),
            told: HashSet::new(),
            stopping: shared.stopping.clone(),
            beat: Instant::now() + shared.limits.heartbeat,
            together: Instant::now(),
            missed: false,
            ended: false,
            _watcher: watcher,
            shared,
        };
        // A proxy or a browser sees that it is connected before anything happens.
        stream.ready.push_back(Bytes::from_static(b"retry: 2000\n\n"));
        match from {
            None => stream.list(),
            Some(from) => stream.resume(&from),
        }
        stream
    }

    fn resume(&mut self, from: &str) {
        if from.len() > MAX_REVISION || !self.go_on(from) {
            let text = "the changes since that revision are not all remembered: it is of another start of the daemon, or too old";
            self.relist("unknown-revision", text);
        }
    }

    /// Tells what is remembered after the revision, and from then on what comes; false when it is not all remembered.
    fn go_on(&mut self, from: &str) -> bool {
        let Some(changes) = self.shared.control.changes_after(from) else { return false };
        for change in &changes {
            self.ready.push_back(self.shared.rendered.change(change));
        }
        let last = changes.last().map_or_else(|| from.to_owned(), |change| change.revision.clone());
        self.told = changes.into_iter().map(|change| change.revision.clone()).collect();
        self.told.insert(from.to_owned());
        self.skip_told(&last);
        true
    }

    fn relist(&mut self, reason: &str, text: &str) {
        let relist = Relist { schema: "homeostat.relist/v1".into(), reason: reason.to_owned(), text: text.to_owned() };
        self.ready.push_back(event("relist", None, &serde_json::to_vec(&relist).unwrap_or_default()));
        self.list();
    }

    /// The whole list, and the changes after it. One that was sent before this stream was opened, and is not in the list yet, is
    /// in what the fleet remembers.
    fn list(&mut self) {
        for _ in 0..LISTS {
            let Ok((status, text)) = self.shared.status() else { break };
            let before = self.ready.len();
            self.ready.push_back(head("list", Some(&status.revision)));
            // The list is large and shared: it is not copied.
            self.ready.push_back(text);
            self.ready.push_back(Bytes::from_static(b"\n\n"));
            if self.go_on(&status.revision) {
                return;
            }
            // The list was overtaken by more than is remembered: there is a newer one.
            self.ready.truncate(before);
        }
        // Whoever watches comes back.
        self.ended = true;
    }

    /// Drops from the channel what came up to a revision that was told. What is in the channel by now and comes after it is news,
    /// up to a gap: what follows one is not told before the list that it belongs to.
    fn skip_told(&mut self, revision: &str) {
        let (mut waiting, mut missed) = (Vec::new(), false);
        loop {
            match self.changes.try_recv() {
                // Everything before was told, what went by as well.
                Ok(change) if change.revision == revision => (waiting, missed) = (Vec::new(), false),
                Ok(change) if !missed => waiting.push(change),
                Ok(_) => {}
                Err(TryRecvError::Lagged(_)) => missed = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.missed |= missed;
        for change in waiting {
            self.tell(&change);
        }
    }

    fn tell(&mut self, change: &Arc<Change>) {
        if self.told.contains(&change.revision) {
            return;
        }
        // They come in order: what was told is behind.
        self.told.clear();
        self.ready.push_back(self.shared.rendered.change(change));
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.piece() {
                return Some(bytes);
            }
            if self.ended {
                return None;
            }
            if std::mem::take(&mut self.missed) {
                self.lagged();
                continue;
            }
            let change = tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => Err(RecvError::Closed),
                change = self.changes.recv() => change,
                () = sleep_until(self.beat) => {
                    self.beat = Instant::now() + self.shared.limits.heartbeat;
                    return Some(Bytes::from_static(b": alive\n\n"));
                }
            };
            match change {
                Ok(change) => {
                    self.tell(&change);
                    self.gather().await;
                }
                Err(RecvError::Lagged(_)) => self.missed = true,
                Err(RecvError::Closed) => self.end(),
            }
            self.beat = Instant::now() + self.shared.limits.heartbeat;
        }
    }

    /// What follows a change at once goes out with it, up to a gap: whoever broke off with a change from behind one would go on
    /// behind it.
    async fn gather(&mut self) {
        sleep_until(self.together).await;
        loop {
            match self.changes.try_recv() {
                Ok(change) => self.tell(&change),
                Err(TryRecvError::Lagged(_)) => {
                    self.missed = true;
                    break;
                }
                // The next wait sees that it is closed.
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.together = Instant::now() + TOGETHER;
    }

    /// The next thing that goes out. Small ones go together; what is large is shared and not copied.
    fn piece(&mut self) -> Option<Bytes> {
        let first = self.ready.pop_front()?;
        let is_small = |text: &mut Bytes| text.len() <= SMALL_BYTES;
        if first.len() > SMALL_BYTES || !self.ready.front_mut().is_some_and(is_small) {
            return Some(first);
        }
        let mut piece = BytesMut::from(&first[..]);
        while piece.len() < PIECE_BYTES
            && let Some(text) = self.ready.pop_front_if(is_small)
        {
            piece.put_slice(&text);
        }
        Some(piece.freeze())
    }

    fn lagged(&mut self) {
        self.changes = self.changes.resubscribe();
        self.relist("lagged", "changes came faster than they were read");
    }

    fn end(&mut self) {
        let end = End { schema: "homeostat.end/v1".into(), text: "the daemon stops; the fleet goes on".into() };
        self.ready.push_back(event("end", None, &serde_json::to_vec(&end).unwrap_or_default()));
        self.ended = true;
    }
}

/// An event with its payload, which has no line break: it is JSON in one line.
fn event(name: &str, id: Option<&str>, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::from(&head(name, id)[..]);
    out.put_slice(payload);
    out.put_slice(b"\n\n");
    out.freeze()
}

fn head(name: &str, id: Option<&str>) -> Bytes {
    let id = id.map_or_else(String::new, |id| {
        let line: String = id.chars().filter(|character| !character.is_control()).collect();
        format!("id: {line}\n")
    });
    Bytes::from(format!("event: {name}\n{id}data: "))
}
