//! Follows a fleet through its stream of changes, over lost connections and restarts of the daemon.

use std::collections::VecDeque;
use std::time::Duration;

use api::wire::{Change, Status};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::error::ClientError;
use crate::session::{Session, encoded};
use crate::sse::{Message, Parser};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What is new.
#[derive(Clone, Debug)]
pub enum Update {
    /// The whole fleet: at the beginning, and whenever changes were missed. All that was known before is void.
    List(Box<Status>),
    /// One change.
    Change(Box<Change>),
    /// Changes were missed, for this reason; a list follows.
    Relist(String),
    /// The connection is lost: what is known gets old. It is tried again, also after this.
    Lost(String),
    /// It is back: nothing was missed unless a list follows.
    Back,
}

/// Follows.
#[derive(Debug)]
pub struct Follow {
    session: Session,
    body: Option<Incoming>,
    parser: Parser,
    ready: VecDeque<Update>,
    revision: Option<String>,
    is_lost: bool,
    pause: Duration,
    began: bool,
}

impl Follow {
    /// From the fleet as it is. Nothing is asked yet.
    pub fn new(session: Session) -> Self {
        Follow {
            session,
            body: None,
            parser: Parser::default(),
            ready: VecDeque::new(),
            revision: None,
            is_lost: false,
            pause: FIRST_PAUSE,
            began: false,
        }
    }

    /// What is new. It may be dropped and called again: nothing is lost.
    ///
    /// # Errors
    ///
    /// The daemon cannot be reached at the beginning, or it does not let us in, or what answers is no daemon.
    pub async fn next(&mut self) -> Result<Update, ClientError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(update);
            }
            let ended = match self.body.as_mut() {
                None => match self.open().await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Some(body) => match tokio::time::timeout(self.session.waits().silence, body.frame()).await {
                    Err(_) => lost("it fell silent"),
                    Ok(None) => lost("it hung up"),
                    Ok(Some(Err(error))) => lost(&format!("the connection broke ({error})")),
                    Ok(Some(Ok(frame))) => {
                        let Ok(bytes) = frame.into_data() else { continue };
                        let messages = self.parser.push(&bytes).map_err(|why| self.foreign(why))?;
                        for message in messages {
                            self.take(&message)?;
                        }
                        continue;
                    }
                },
            };
            self.body = None;
            let why = match &ended {
                ClientError::Unreachable { why, .. } if self.began => why.clone(),
                ClientError::Refused(problem) if self.began && problem.status >= 429 => problem.detail.clone(),
                _ => return Err(ended),
            };
            if !std::mem::replace(&mut self.is_lost, true) {
                return Ok(Update::Lost(why));
            }
            tokio::time::sleep(self.pause).await;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn open(&mut self) -> Result<(), ClientError> {
        let path = match &self.revision {
            Some(revision) => format!("/v1/watch?from={}", encoded(revision)),
            None => "/v1/watch".to_owned(),
        };
        self.body = Some(self.session.stream(&path).await?);
        self.parser = Parser::default();
        self.began = true;
        if std::mem::take(&mut self.is_lost) {
            self.ready.push_back(Update::Back);
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) -> Result<(), ClientError> {
        let unreadable = |error: serde_json::Error| self.foreign(format!("a {:?} event: {error}", message.event));
        match message.event.as_str() {
            "list" => {
                let status: Status = serde_json::from_str(&message.body).map_err(unreadable)?;
                self.revision = Some(status.revision.clone());
                self.ready.push_back(Update::List(Box::new(status)));
            }
            "change" => {
                let change: Change = serde_json::from_str(&message.body).map_err(unreadable)?;
                self.revision = Some(change.revision.clone());
                self.ready.push_back(Update::Change(Box::new(change)));
            }
            "relist" => {
                self.revision = None;
                self.ready.push_back(Update::Relist(reason(&message.body)));
            }
            // What ends the stream is seen by its end; kinds that are not known are for newer clients.
            _ => {}
        }
        self.pause = FIRST_PAUSE;
        Ok(())
    }

    fn foreign(&self, why: String) -> ClientError {
        ClientError::Foreign { from: self.session.place().words(), why }
    }
}

fn lost(why: &str) -> ClientError {
    ClientError::Unreachable { tried: String::new(), why: why.to_owned(), remedy: String::new() }
}

/// `{"reason": "…"}`, or the words themselves.
fn reason(body: &str) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let field = parsed.as_ref().and_then(|value| value.get("reason")).and_then(serde_json::Value::as_str);
    field.unwrap_or(body).to_owned()
}
