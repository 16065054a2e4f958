//! What a browser is shown at `/`.

use axum::Router;

/// The pages. They ask `/v1` like everybody else.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
}
