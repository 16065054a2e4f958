//! The table of what can be asked. The router and the document are both made from it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Response};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use tokio::time::timeout;

use crate::asked;
use crate::control::Refusal;
use crate::deciders;
use crate::problem::{Fault, quoted};
use crate::shared::Shared;
use crate::watch;
use crate::wire::{
    CommandRequest, CommandResult, DeciderDetail, DeciderRequest, DeciderResult, Deciders, Decisions, DecisionsQuery,
    Diagnosis, Explanation, Export, History, HistoryQuery, Logs, LogsQuery, NodeDetail, Plan, PlanRequest, Status,
    SwapDetail, Swaps, SwapsQuery, Uploaded, WatchQuery,
};

/// The longest name of a node that is looked up, in bytes.
const MAX_NODE_BYTES: usize = 128;

/// The longest id of a command (SPEC 10), in bytes.
const MAX_COMMAND_ID_BYTES: usize = 64;

/// Makes a type's schema, with its parts registered.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Something that can be asked.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Its name in the document.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// Its query, by the properties of a type.
    pub(crate) query: Option<SchemaOf>,
    pub(crate) body: Asked,
    pub(crate) answer: Answer,
    /// How it may refuse, besides what every request may be refused for.
    pub(crate) refusals: &'static [u16],
    route: fn() -> MethodRouter<Arc<Shared>>,
}

/// What is sent with it.
pub(crate) enum Asked {
    Nothing,
    /// JSON of this type.
    Json(SchemaOf),
    /// Bytes of this type.
    Bytes(&'static str),
}

/// What comes back.
pub(crate) enum Answer {
    /// JSON of this type.
    Json(SchemaOf),
    /// Some JSON object.
    Object,
    /// Text of this type.
    Text(&'static str),
    /// `text/event-stream`.
    Events,
}

fn reference<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn inline<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

const NODE: &[u16] = &[404];
/// Refused where the decider cannot be swapped.
const KEEPS_ONE: &[u16] = &[409];
const QUERY: &[u16] = &[422];
const COMMAND: &[u16] = &[404, 408, 409, 413, 415, 422];

/// All of it.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        id: "status",
        summary: "The whole fleet, as it is now.",
        answer: Answer::Json(reference::<Status>),
        ..read("/v1/status", || get(status))
    },
    Endpoint {
        id: "node",
        summary: "All that is known of a node.",
        answer: Answer::Json(reference::<NodeDetail>),
        refusals: NODE,
        ..read("/v1/nodes/{node}", || get(node))
    },
    Endpoint {
        id: "explanation",
        summary: "Why a node is where it is, what ends that, and what a person can do.",
        answer: Answer::Json(reference::<Explanation>),
        refusals: NODE,
        ..read("/v1/nodes/{node}/explanation", || get(explanation))
    },
    Endpoint {
        id: "logs",
        summary: "What a node wrote: the last lines.",
        query: Some(inline::<LogsQuery>),
        answer: Answer::Json(reference::<Logs>),
        refusals: &[404, 422],
        ..read("/v1/nodes/{node}/logs", || get(logs))
    },
    Endpoint {
        id: "history",
        summary: "What happened, oldest first: to a node, across its attempts, or to the fleet.",
        query: Some(inline::<HistoryQuery>),
        answer: Answer::Json(reference::<History>),
        refusals: &[404, 422],
        ..read("/v1/history", || get(history))
    },
    Endpoint {
        id: "decisions",
        summary: "What was decided lately, newest first.",
        query: Some(inline::<DecisionsQuery>),
        answer: Answer::Json(reference::<Decisions>),
        refusals: QUERY,
        ..read("/v1/decisions", || get(decisions))
    },
    Endpoint {
        method: "POST",
        id: "plan",
        summary: "What a command would do. Nothing changes.",
        body: Asked::Json(reference::<PlanRequest>),
        answer: Answer::Json(reference::<Plan>),
        refusals: COMMAND,
        ..read("/v1/plan", || post(plan))
    },
    Endpoint {
        method: "POST",
        id: "command",
        summary: "Does something, once for each id. It is durable when this is answered.",
        body: Asked::Json(reference::<CommandRequest>),
        answer: Answer::Json(reference::<CommandResult>),
        refusals: COMMAND,
        ..read("/v1/commands", || post(command))
    },
    Endpoint {
        id: "watch",
        summary: "The changes as they come; at first the whole list, or the changes after a revision.",
        query: Some(inline::<WatchQuery>),
        answer: Answer::Events,
        ..read("/v1/watch", || get(watch_changes))
    },
    Endpoint {
        id: "deciders",
        summary: "The deciders that are kept: the one in force first.",
        answer: Answer::Json(reference::<Deciders>),
        refusals: KEEPS_ONE,
        ..read("/v1/deciders", || get(deciders::list))
    },
    Endpoint {
        method: "POST",
        id: "upload-decider",
        summary: "Takes a component in, checks it, and keeps it under its digest. Nothing is put in force.",
        body: Asked::Bytes(deciders::WASM),
        answer: Answer::Json(reference::<Uploaded>),
        refusals: &[408, 409, 413, 415, 422],
        ..read("/v1/deciders", || post(deciders::upload))
    },
    Endpoint {
        method: "POST",
        id: "decider-command",
        summary: "Does something about deciders, once for each id; a swap then goes on by itself.",
        body: Asked::Json(reference::<DeciderRequest>),
        answer: Answer::Json(reference::<DeciderResult>),
        refusals: COMMAND,
        ..read("/v1/deciders/commands", || post(deciders::command))
    },
    Endpoint {
        id: "decider",
        summary: "All that is known of a decider: by its digest, the beginning of one, `active`, `previous` or `built-in`.",
        answer: Answer::Json(reference::<DeciderDetail>),
        refusals: &[404, 409],
        ..read("/v1/deciders/{decider}", || get(deciders::one))
    },
    Endpoint {
        id: "swaps",
        summary: "Swaps and shadows, newest first.",
        query: Some(inline::<SwapsQuery>),
        answer: Answer::Json(reference::<Swaps>),
        refusals: &[409, 422],
        ..read("/v1/swaps", || get(deciders::swaps))
    },
    Endpoint {
        id: "swap",
        summary: "A swap or a shadow, with all that it found.",
        answer: Answer::Json(reference::<SwapDetail>),
        refusals: &[404, 409],
        ..read("/v1/swaps/{swap}", || get(deciders::swap))
    },
    Endpoint {
        id: "snapshot",
        summary: "What is known, to be put somewhere else.",
        answer: Answer::Json(reference::<Export>),
        ..read("/v1/snapshot", || get(snapshot))
    },
    Endpoint {
        id: "diagnosis",
        summary: "Whether everything is as it should be.",
        answer: Answer::Json(reference::<Diagnosis>),
        ..read("/v1/diagnosis", || get(diagnosis))
    },
    Endpoint {
        id: "openapi",
        summary: "This document.",
        answer: Answer::Object,
        ..read("/v1/openapi.json", || get(document))
    },
    Endpoint {
        id: "metrics",
        summary: "The metrics, in the text format of Prometheus.",
        answer: Answer::Text("text/plain; version=0.0.4; charset=utf-8"),
        ..read("/metrics", || get(metrics))
    },
    Endpoint {
        id: "healthz",
        summary: "Whether the server answers.",
        answer: Answer::Text("text/plain; charset=utf-8"),
        ..read("/healthz", || get(healthz))
    },
];

const fn read(path: &'static str, route: fn() -> MethodRouter<Arc<Shared>>) -> Endpoint {
    Endpoint {
        method: "GET",
        path,
        id: "",
        summary: "",
        query: None,
        body: Asked::Nothing,
        answer: Answer::Object,
        refusals: &[],
        route,
    }
}

/// The router of all that is in the table, and of the pages for browsers.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    ENDPOINTS
        .iter()
        .fold(Router::new(), |router, endpoint| router.route(endpoint.path, (endpoint.route)()))
        .merge(crate::dashboard::router())
        .fallback(async |request: axum::extract::Request| {
            Fault::not_found(format!("there is nothing at {}; see /v1/openapi.json", quoted(request.uri().path())))
        })
        .with_state(shared)
}

/// The path as the table has it.
pub(crate) fn known_path(path: &str) -> &'static str {
    let fits = |known: &str| {
        let (mut known, mut given) = (known.split('/'), path.split('/'));
        loop {
            match (known.next(), given.next()) {
                (None, None) => return true,
                (Some(part), Some(there)) if part == there || (part.starts_with('{') && !there.is_empty()) => {}
                _ => return false,
            }
        }
    };
    ENDPOINTS.iter().map(|endpoint| endpoint.path).find(|known| fits(known)).unwrap_or("other")
}

pub(crate) type Answered = Result<Response<Body>, Fault>;
pub(crate) type Here = State<Arc<Shared>>;

async fn status(State(shared): Here) -> Answered {
    let (_, text) = shared.status().map_err(|error| Fault::failed(format!("writing the status: {error}")))?;
    Ok(typed("application/json", Body::from(text)))
}

async fn node(State(shared): Here, name: Result<Path<String>, PathRejection>) -> Answered {
    let name = node_name(name)?;
    answer(&shared, shared.control.node(&name)).await
}

async fn explanation(State(shared): Here, name: Result<Path<String>, PathRejection>) -> Answered {
    let name = node_name(name)?;
    answer(&shared, shared.control.explain(&name)).await
}

async fn logs(
    State(shared): Here,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<LogsQuery>, QueryRejection>,
) -> Answered {
    let node = node_name(name)?;
    let query = LogsQuery { node, ..asked_for(query)? };
    within("lines", query.lines, 10_000)?;
    answer(&shared, shared.control.logs(query)).await
}

async fn history(State(shared): Here, query: Result<Query<HistoryQuery>, QueryRejection>) -> Answered {
    let query = asked_for(query)?;
    within("limit", query.limit, 1_000)?;
    if let Some(node) = &query.node {
        short_enough(node)?;
    }
    answer(&shared, shared.control.history(query)).await
}

async fn decisions(State(shared): Here, query: Result<Query<DecisionsQuery>, QueryRejection>) -> Answered {
    let query = asked_for(query)?;
    within("limit", query.limit, 1_000)?;
    answer(&shared, shared.control.decisions(query.limit.unwrap_or(100))).await
}

async fn plan(State(shared): Here, headers: HeaderMap, body: Body) -> Answered {
    let request: PlanRequest = asked::json(&shared, &headers, body).await?;
    answer(&shared, shared.control.plan(request)).await
}

async fn command(State(shared): Here, headers: HeaderMap, body: Body) -> Answered {
    let request: CommandRequest = asked::json(&shared, &headers, body).await?;
    command_id(&request.id)?;
    turn(&shared)?;
    // A task of its own: whether the caller hangs up makes no difference to what was begun.
    let control = shared.control.clone();
    to_the_end(&shared, async move { control.command(request).await }).await
}

/// Waits for what goes on whether or not its caller waits.
pub(crate) async fn to_the_end<T: Serialize + Send + 'static>(
    shared: &Shared,
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Answered {
    to_the_end_within(shared.limits.answer_time, work).await
}

/// The same, within another time.
pub(crate) async fn to_the_end_within<T: Serialize + Send + 'static>(
    limit: Duration,
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Answered {
    let done = tokio::spawn(work);
    let made = async { done.await.unwrap_or_else(|error| Err(Refusal::Failed(format!("the command: {error}")))) };
    json(&made_within(limit, made).await?)
}

/// An id as a command has it.
pub(crate) fn command_id(id: &str) -> Result<(), Fault> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if id.is_empty() || id.len() > MAX_COMMAND_ID_BYTES || !id.bytes().all(allowed) {
        let what = format!("1 to {MAX_COMMAND_ID_BYTES} letters, digits, `-` and `_`");
        return Err(Fault::invalid(format!("id: {} is not {what}", quoted(id))));
    }
    Ok(())
}

/// A command's turn, of everybody's.
pub(crate) fn turn(shared: &Shared) -> Result<(), Fault> {
    let taken = shared.commands.take();
    taken.map_err(|seconds| Fault::rate("too many commands at once, of everybody together", seconds))
}

async fn watch_changes(
    State(shared): Here,
    headers: HeaderMap,
    query: Result<Query<WatchQuery>, QueryRejection>,
) -> Answered {
    watch::watch(&shared, &asked_for(query)?, &headers)
}

async fn snapshot(State(shared): Here) -> Answered {
    answer(&shared, shared.control.export()).await
}

async fn diagnosis(State(shared): Here) -> Answered {
    answer(&shared, shared.control.diagnose()).await
}

async fn document() -> Answered {
    json(&crate::openapi::document())
}

async fn metrics(State(shared): Here) -> Answered {
    let text = in_time(&shared, shared.control.metrics()).await?;
    Ok(typed("text/plain; version=0.0.4; charset=utf-8", Body::from(text)))
}

async fn healthz() -> Answered {
    Ok(typed("text/plain; charset=utf-8", Body::from("ok\n")))
}

/// Waits for the answer, but not for ever, and writes it.
pub(crate) async fn answer<T: Serialize>(shared: &Shared, made: impl Future<Output = Result<T, Refusal>>) -> Answered {
    json(&in_time(shared, made).await?)
}

async fn in_time<T>(shared: &Shared, made: impl Future<Output = Result<T, Refusal>>) -> Result<T, Fault> {
    made_within(shared.limits.answer_time, made).await
}

async fn made_within<T>(limit: Duration, made: impl Future<Output = Result<T, Refusal>>) -> Result<T, Fault> {
    match timeout(limit, made).await {
        Ok(made) => Ok(made?),
        Err(_) => {
            let detail =
                format!("no answer within {} s; a command with the same id may be sent again", limit.as_secs_f64());
            Err(Fault::unavailable(detail, 1))
        }
    }
}

fn json<T: Serialize>(value: &T) -> Answered {
    let text = serde_json::to_vec(value).map_err(|error| Fault::failed(format!("writing the answer: {error}")))?;
    Ok(typed("application/json", Body::from(text)))
}

fn typed(media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = body.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn node_name(name: Result<Path<String>, PathRejection>) -> Result<String, Fault> {
    let Path(name) = name.map_err(|error| Fault::malformed(format!("the path: {}", error.body_text())))?;
    short_enough(&name)?;
    Ok(name)
}

fn short_enough(name: &str) -> Result<(), Fault> {
    match name.len() > MAX_NODE_BYTES {
        true => Err(Fault::not_found(format!("there is no node {}", quoted(name)))),
        false => Ok(()),
    }
}

pub(crate) fn asked_for<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Fault> {
    query.map(|Query(query)| query).map_err(|error| Fault::malformed(format!("the query: {}", error.body_text())))
}

pub(crate) fn within(name: &str, value: Option<usize>, most: usize) -> Result<(), Fault> {
    match value {
        Some(value) if value == 0 || value > most => {
            Err(Fault::invalid(format!("{name}: {value} is not from 1 to {most}")))
        }
        _ => Ok(()),
    }
}
