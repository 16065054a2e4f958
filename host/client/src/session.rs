//! Questions and answers: one request, one answer, each within a time.

use std::time::Duration;

use api::wire::{CommandRequest, CommandResult, Problem};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connect;
use crate::error::ClientError;
use crate::place::Place;
use crate::tls;

/// No answer is longer: a status of 10,000 nodes has a few million bytes.
const MAX_ANSWER: usize = 256 << 20;
/// How questions and answers are written.
const JSON: &str = "application/json";
/// How often a command is sent before it is given up.
const TRIES: u32 = 4;
/// An answer that a component is compiled for may take so many times as long as another one.
const COMPILING: u32 = 12;

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// A connection.
    pub connect: Duration,
    /// An answer.
    pub answer: Duration,
    /// Between the first two tries of a command; it doubles.
    pub again: Duration,
    /// Silence of a watch, which has a sign of life every 15 s.
    pub silence: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Waits {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(15),
            again: Duration::from_millis(250),
            silence: Duration::from_secs(40),
        }
    }
}

/// A daemon that can be asked.
#[derive(Clone, Debug)]
pub struct Session {
    place: Place,
    waits: Waits,
}

impl Session {
    /// With the daemon there. Nothing is sent yet.
    pub fn new(place: Place, waits: Waits) -> Self {
        Session { place, waits }
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// How long things may take.
    pub fn waits(&self) -> Waits {
        self.waits
    }

    /// Asks for something.
    ///
    /// # Errors
    ///
    /// Nobody answers, or not so; or the daemon refuses.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.answer(Method::GET, path, JSON, Bytes::new()).await
    }

    /// Asks with a body.
    ///
    /// # Errors
    ///
    /// As [`Session::get`].
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        self.answer(Method::POST, path, JSON, encode(body)?).await
    }

    /// Sends a component. The same bytes again change nothing.
    ///
    /// # Errors
    ///
    /// As [`Session::get`].
    pub async fn upload<T: DeserializeOwned>(&self, path: &str, component: Bytes) -> Result<T, ClientError> {
        // It is compiled before it is taken: of a large one, such as an interpreter, that takes a minute on a busy machine.
        self.answer_within(self.waits.answer * COMPILING, Method::POST, path, "application/wasm", component).await
    }

    /// Has a command carried out. What is lost on the way is asked for again under the same id, so that it acts once.
    ///
    /// # Errors
    ///
    /// The daemon refuses, or there is no answer: then it says whether the command may have been carried out.
    pub async fn command(&self, request: &CommandRequest) -> Result<CommandResult, ClientError> {
        self.ordered("/v1/commands", &request.id, request).await
    }

    /// As [`Session::command`], for whatever acts once for each id.
    ///
    /// # Errors
    ///
    /// As [`Session::command`].
    pub async fn ordered<T: DeserializeOwned>(
        &self,
        path: &str,
        id: &str,
        request: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = encode(request)?;
        let mut pause = self.waits.again;
        let mut sent = None;
        for attempt in 1..=TRIES {
            let error = match self.answer(Method::POST, path, JSON, body.clone()).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let again = match &error {
                Failed::Never(_) => sent.is_some(),
                Failed::Sent(_) => {
                    sent = Some(error.words());
                    true
                }
                Failed::Refused(problem) if problem.status == 503 => {
                    // A daemon that ends answers so, also when it has carried out what it can no longer acknowledge.
                    sent = Some(error.words());
                    true
                }
                Failed::Refused(problem) => problem.status == 429,
            };
            if !again || attempt == TRIES {
                return Err(match (error, sent) {
                    (Failed::Refused(problem), Some(why)) if matches!(problem.status, 429 | 503) => {
                        ClientError::Unanswered { id: id.to_owned(), why }
                    }
                    (Failed::Refused(problem), _) => ClientError::Refused(problem),
                    (_, Some(why)) => ClientError::Unanswered { id: id.to_owned(), why },
                    (error, None) => error.into(),
                });
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(ClientError::Failed("no try is left".into()))
    }

    /// Opens a stream of events.
    pub(crate) async fn stream(&self, path: &str) -> Result<Incoming, ClientError> {
        let request = self.request(Method::GET, path, ("text/event-stream", JSON), Bytes::new())?;
        let sent = tokio::time::timeout(self.waits.answer, self.send(request)).await;
        let response = sent.unwrap_or_else(|_| Err(Failed::Sent(self.silent())))?;
        if response.status() != StatusCode::OK {
            return Err(self.refusal(response).await.into());
        }
        Ok(response.into_body())
    }

    async fn answer<T: DeserializeOwned, E: From<Failed>>(
        &self,
        method: Method,
        path: &str,
        media_type: &str,
        body: Bytes,
    ) -> Result<T, E> {
        self.answer_within(self.waits.answer, method, path, media_type, body).await
    }

    async fn answer_within<T: DeserializeOwned, E: From<Failed>>(
        &self,
        patience: Duration,
        method: Method,
        path: &str,
        media_type: &str,
        body: Bytes,
    ) -> Result<T, E> {
        let request = self.request(method, path, (JSON, media_type), body).map_err(Failed::Never)?;
        let whole = async {
            let response = self.send(request).await?;
            if !response.status().is_success() {
                return Err(self.refusal(response).await);
            }
            let body = self.collect(response.into_body()).await?;
            serde_json::from_slice(&body).map_err(|error| Failed::Sent(self.foreign(error.to_string())))
        };
        let answer = tokio::time::timeout(patience, whole).await;
        Ok(answer.unwrap_or_else(|_| Err(Failed::Sent(self.silent())))?)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        (accept, media_type): (&str, &str),
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let host = match &self.place {
            Place::Socket { .. } => "localhost".to_owned(),
            Place::Address { .. } => {
                self.place.words().split_once("//").map(|(_, host)| host.to_owned()).unwrap_or_default()
            }
        };
        let mut builder = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(HOST, host)
            .header(ACCEPT, accept)
            .header(USER_AGENT, concat!("homeostat/", env!("CARGO_PKG_VERSION")));
        if method == Method::POST {
            builder = builder.header(CONTENT_TYPE, media_type);
        }
        if let Place::Address { token: Some(token), .. } = &self.place {
            builder = builder.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        builder.body(Full::new(body)).map_err(|error| ClientError::Usage(format!("{path}: {error}")))
    }

    /// One connection for one request.
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failed> {
        let timed = tokio::time::timeout(self.waits.connect, connect::connect(&self.place)).await;
        let wire = timed.unwrap_or_else(|_| Err(self.silent())).map_err(Failed::Never)?;
        let lost = |error: hyper::Error| {
            // A peer that hangs up says no more than that; one that speaks something else does.
            let foreign = error.is_parse();
            // Nothing is read before the server has taken our certificate.
            if let Some(refused) = tls::refused(&self.place, &error) {
                return Failed::Never(refused);
            }
            let mut words = words_of(&error);
            if foreign && matches!(self.place, Place::Address { tls: None, .. }) {
                words += "; where it has a certificate, it is asked with https:// and --ca";
            }
            Failed::Sent(if foreign { self.foreign(words) } else { self.lost(words) })
        };
        let (mut sender, connection) =
            http1::Builder::new().max_headers(64).handshake(TokioIo::new(wire)).await.map_err(lost)?;
        // It ends with the body that it carries.
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(lost)
    }

    async fn collect(&self, body: Incoming) -> Result<Bytes, Failed> {
        let read = Limited::new(body, MAX_ANSWER).collect().await;
        read.map(http_body_util::Collected::to_bytes).map_err(|error| {
            Failed::Sent(match error.is::<LengthLimitError>() {
                true => self.foreign(format!("the answer is longer than {MAX_ANSWER} bytes")),
                false => self.lost(format!("the answer broke off ({error})")),
            })
        })
    }

    async fn refusal(&self, response: Response<Incoming>) -> Failed {
        let status = response.status();
        let header = |name: HeaderName| -> String {
            response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let (kind, after) = (header(CONTENT_TYPE), header(RETRY_AFTER));
        let body = match self.collect(response.into_body()).await {
            Ok(body) => body,
            Err(failed) => return failed,
        };
        let problem = match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if kind.starts_with("application/problem+json") => problem,
            // A proxy may ask for a token too.
            _ if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                let title = format!("status {status}");
                Problem { status: status.as_u16(), title, ..Problem::default() }
            }
            // Whoever refuses so has not passed it on.
            _ if status.is_client_error() => return Failed::Never(self.foreign(format!("status {status}"))),
            _ => return Failed::Sent(self.foreign(format!("status {status}"))),
        };
        let inside = |remedy: &str| {
            let why = if problem.detail.is_empty() { problem.title.clone() } else { problem.detail.clone() };
            let (tried, remedy) = (self.place.words(), remedy.to_owned());
            Failed::Never(ClientError::Unreachable { tried, why: format!("it does not let us in ({why})"), remedy })
        };
        match status {
            StatusCode::UNAUTHORIZED => inside(
                "give its token with --token-file or $HOMEOSTAT_TOKEN; `homeostat token` on its machine prints it",
            ),
            StatusCode::FORBIDDEN if !crate::error::is_kind(&problem, "guard") => {
                inside("run as the user that the daemon runs as")
            }
            StatusCode::TOO_MANY_REQUESTS if !after.is_empty() => {
                let detail = format!("{} (again after {after} s)", problem.detail);
                Failed::Refused(Box::new(Problem { status: 429, detail, ..problem }))
            }
            _ => Failed::Refused(Box::new(Problem { status: status.as_u16(), ..problem })),
        }
    }

    fn foreign(&self, why: String) -> ClientError {
        ClientError::Foreign { from: self.place.words(), why }
    }

    fn lost(&self, why: String) -> ClientError {
        ClientError::Unreachable {
            tried: self.place.words(),
            why,
            remedy: "it may just be ending or starting: ask again; else look at its messages".into(),
        }
    }

    fn silent(&self) -> ClientError {
        ClientError::Unreachable {
            tried: self.place.words(),
            why: format!("no answer within {} s", self.waits.answer.as_secs_f32()),
            remedy: "it may be busy or hanging: look at its messages and at the load of the machine".into(),
        }
    }
}

fn encode(body: &impl Serialize) -> Result<Bytes, ClientError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(|error| ClientError::Failed(error.to_string()))
}

fn words_of(error: &hyper::Error) -> String {
    let mut words = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        words = format!("{words}: {inner}");
        source = inner.source();
    }
    words
}

/// What went wrong, and whether the request may have arrived.
enum Failed {
    /// It was never sent, or turned away at the door.
    Never(ClientError),
    /// It may have arrived.
    Sent(ClientError),
    /// It was answered.
    Refused(Box<Problem>),
}

impl Failed {
    fn words(&self) -> String {
        match self {
            Failed::Never(error) | Failed::Sent(error) => match error {
                ClientError::Unreachable { why, .. } | ClientError::Foreign { why, .. } => why.clone(),
                other => other.to_string(),
            },
            Failed::Refused(problem) => problem.detail.clone(),
        }
    }
}

impl From<Failed> for ClientError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Never(error) | Failed::Sent(error) => error,
            Failed::Refused(problem) => ClientError::Refused(problem),
        }
    }
}

/// A part of a path or a query, with what has a meaning there written as `%XX`.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}
