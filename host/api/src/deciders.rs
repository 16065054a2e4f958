//! What can be asked and done about deciders and swaps.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};

use crate::asked;
use crate::problem::{Fault, quoted};
use crate::routes::{Answered, Here, answer, asked_for, command_id, to_the_end, to_the_end_within, turn, within};
use crate::wire::{DeciderCommand, DeciderName, DeciderRequest, SwapsQuery};

/// The media type of a component.
pub(crate) const WASM: &str = "application/wasm";

/// How every component begins: the magic number of WebAssembly.
const MAGIC: &[u8] = b"\0asm";

/// The longest that history, a shadow or a watch may be asked to last, in milliseconds: a year.
const MOST_MS: u64 = 366 * 24 * 3_600_000;

/// Things that one swap accepts, at most.
const MOST_ACCEPTED: usize = 64;

pub(crate) async fn list(State(shared): Here) -> Answered {
    answer(&shared, shared.control.deciders()).await
}

pub(crate) async fn upload(State(shared): Here, headers: HeaderMap, body: Body) -> Answered {
    asked::content_type(&headers, WASM)?;
    turn(&shared)?;
    // The turn is kept until it is checked: that costs more than receiving it.
    let one = tokio::time::timeout(shared.limits.body_time, shared.components.clone().acquire_owned()).await;
    let Ok(Ok(one)) = one else { return Err(Fault::unavailable("other components are being received or checked", 2)) };
    let component = asked::receive(&shared, &headers, body, shared.limits.component_bytes).await?;
    if !component.starts_with(MAGIC) {
        return Err(Fault::invalid("the body is no WebAssembly: it does not begin as a component does"));
    }
    let control = Arc::clone(&shared.control);
    let work = async move {
        let uploaded = control.upload(component).await;
        drop(one);
        uploaded
    };
    to_the_end_within(shared.limits.compile_time, work).await
}

pub(crate) async fn one(State(shared): Here, name: Result<Path<String>, PathRejection>) -> Answered {
    let Path(name) = name.map_err(|error| Fault::malformed(format!("the path: {}", error.body_text())))?;
    let name =
        name.parse::<DeciderName>().map_err(|why| Fault::not_found(format!("there is no such decider: {why}")))?;
    answer(&shared, shared.control.decider(name)).await
}

pub(crate) async fn command(State(shared): Here, headers: HeaderMap, body: Body) -> Answered {
    let request: DeciderRequest = asked::json(&shared, &headers, body).await?;
    command_id(&request.id)?;
    check(&request.command)?;
    turn(&shared)?;
    let control = shared.control.clone();
    to_the_end(&shared, async move { control.decider_command(request).await }).await
}

/// What is wrong with a command whatever is in force.
fn check(command: &DeciderCommand) -> Result<(), Fault> {
    let named = |field: &str, name: &str| match name.parse::<DeciderName>() {
        Ok(_) => Ok(()),
        Err(why) => Err(Fault::invalid(format!("command.{field}: {why}"))),
    };
    let lasting = |field: &str, ms: u64| match ms > MOST_MS {
        true => Err(Fault::invalid(format!("command.{field}: {ms} ms is longer than a year"))),
        false => Ok(()),
    };
    match command {
        DeciderCommand::Swap { decider, terms } => {
            named("decider", decider)?;
            lasting("terms.replay_ms", terms.replay_ms)?;
            lasting("terms.shadow_ms", terms.shadow_ms)?;
            lasting("terms.watch_ms", terms.watch_ms)?;
            if terms.watch_failed.is_some() && terms.watch_ms == 0 {
                return Err(Fault::invalid("command.terms.watch_failed: nothing is watched, because watch_ms is 0"));
            }
            match terms.accept.len() > MOST_ACCEPTED {
                true => Err(Fault::invalid(format!("command.terms.accept: it has more than {MOST_ACCEPTED} parts"))),
                false => Ok(()),
            }
        }
        DeciderCommand::Shadow { decider, replay_ms } => {
            named("decider", decider)?;
            lasting("replay_ms", *replay_ms)
        }
        DeciderCommand::Pin { decider: Some(decider) } => named("decider", decider),
        DeciderCommand::Cancel { swap } => command_id(swap).map_err(|_| no_swap(swap)),
        DeciderCommand::Pin { decider: None }
        | DeciderCommand::StopShadow {}
        | DeciderCommand::Rollback {}
        | DeciderCommand::Unpin {} => Ok(()),
    }
}

pub(crate) async fn swaps(State(shared): Here, query: Result<Query<SwapsQuery>, QueryRejection>) -> Answered {
    let query = asked_for(query)?;
    within("limit", query.limit, 100)?;
    answer(&shared, shared.control.swaps(query.limit.unwrap_or(20))).await
}

pub(crate) async fn swap(State(shared): Here, id: Result<Path<String>, PathRejection>) -> Answered {
    let Path(id) = id.map_err(|error| Fault::malformed(format!("the path: {}", error.body_text())))?;
    command_id(&id).map_err(|_| no_swap(&id))?;
    answer(&shared, shared.control.swap(&id)).await
}

fn no_swap(id: &str) -> Fault {
    Fault::new(StatusCode::NOT_FOUND, "not-found", format!("there is no swap {}", quoted(id)))
}
