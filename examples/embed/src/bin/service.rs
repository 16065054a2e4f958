//! Homeostat inside an axum service: the fleet is one more thing that the service keeps.
//!
//! ```console
//! $ cargo run --release -q -p embed --bin service
//! listening on http://127.0.0.1:8080
//! $ curl -X PUT http://127.0.0.1:8080/cells/5
//! $ curl http://127.0.0.1:8080/cells
//! ```

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, put};
use homeostat::backends::fake::FakeBackend;
use homeostat::decide::SandboxedDecider;
use homeostat::engine::shape::ClusterShape;
use homeostat::{Host, HostError, HostHandle, Shutdown};
use tokio::sync::Mutex;

/// What the service keeps anyway, and the fleet beside it.
#[derive(Clone)]
struct Service {
    host: HostHandle,
    /// The latest wish. Behind a lock, so that two requests do not take the same generation.
    wish: Arc<Mutex<ClusterShape>>,
}

/// How many cells there are, and how they are.
async fn cells(State(service): State<Service>) -> impl IntoResponse {
    let view = service.host.view();
    let rows = view.nodes.iter().map(|node| format!("{} {}\n", node.node, node.stage));
    rows.collect::<String>()
}

/// Wishes for so many.
async fn resize(State(service): State<Service>, Path(count): Path<u32>) -> Result<String, Refused> {
    let mut wish = service.wish.lock().await;
    let mut next = wish.clone();
    next.generation += 1;
    for group in &mut next.groups {
        group.count = count;
    }
    service.host.update_shape(next.clone()).await?;
    *wish = next;
    Ok(format!("{count} cells are wanted\n"))
}

/// A wish that is refused changes nothing; its words name the field and the value.
struct Refused(HostError);

impl From<HostError> for Refused {
    fn from(error: HostError) -> Self {
        Refused(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> axum::response::Response {
        let status = match self.0 {
            HostError::Shape(_) => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{}\n", self.0)).into_response()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wish: ClusterShape = serde_json::from_str(include_str!("../shape.json"))?;
    let host = Host::builder(&wish.run)
        .backend("memory", FakeBackend::keyed())
        .decider(SandboxedDecider::built_in()?)
        .shape(wish.clone())
        .start()
        .await?;
    let service = Service { host: host.clone(), wish: Arc::new(Mutex::new(wish)) };
    let routes = Router::new().route("/cells", get(cells)).route("/cells/{count}", put(resize)).with_state(service);

    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, routes).with_graceful_shutdown(async { drop(tokio::signal::ctrl_c().await) }).await?;

    // The requests have ended; now the fleet.
    let end = host.shutdown(Shutdown::TakeDown).await?;
    println!("{}", if end.is_clean() { "nothing is left" } else { "something is left" });
    Ok(())
}
