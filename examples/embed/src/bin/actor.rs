//! Homeostat inside a tokio actor: one task owns the host, others send it messages. It keeps its history in a store, so
//! that the next start goes on where this one ended.
//!
//! ```console
//! $ cargo run --release -q -p embed --bin actor
//! ```

use std::sync::Arc;

use homeostat::backends::fake::FakeBackend;
use homeostat::decide::SandboxedDecider;
use homeostat::engine::shape::ClusterShape;
use homeostat::engine::view::View;
use homeostat::store::MemoryStore;
use homeostat::{Host, HostError, HostHandle, Shutdown};
use tokio::sync::{mpsc, oneshot};

/// What the actor can be told.
enum Message {
    /// So many cells are wanted.
    Resize(u32, oneshot::Sender<Result<(), HostError>>),
    /// End, and leave nothing behind.
    Stop(oneshot::Sender<bool>),
}

/// Owns the host and the latest wish.
struct Keeper {
    host: HostHandle,
    wish: ClusterShape,
    mail: mpsc::Receiver<Message>,
}

impl Keeper {
    async fn run(mut self) {
        let mut views = self.host.watch();
        loop {
            tokio::select! {
                // News before orders: what was reached is noticed before it is undone.
                biased;
                Ok(()) = views.changed() => notice(&views.borrow_and_update().clone()),
                message = self.mail.recv() => match message {
                    // Whoever asked may be gone; so below.
                    Some(Message::Resize(count, reply)) => drop(reply.send(self.resize(count).await)),
                    Some(Message::Stop(reply)) => {
                        let ended = self.host.shutdown(Shutdown::TakeDown).await;
                        let _ = reply.send(ended.is_ok_and(|farewell| farewell.is_clean()));
                        return;
                    }
                    // Nobody can send any more: the fleet is left as it is.
                    None => return drop(self.host.shutdown(Shutdown::Keep).await),
                },
            }
        }
    }

    async fn resize(&mut self, count: u32) -> Result<(), HostError> {
        let mut next = self.wish.clone();
        next.generation += 1;
        for group in &mut next.groups {
            group.count = count;
        }
        self.host.update_shape(next.clone()).await?;
        self.wish = next;
        Ok(())
    }
}

/// What the actor does with news.
fn notice(view: &Arc<View>) {
    if view.converged {
        println!("generation {}: {} nodes, converged", view.generation, view.nodes.len());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wish: ClusterShape = serde_json::from_str(include_str!("../shape.json"))?;
    let host = Host::builder(&wish.run)
        .backend("memory", FakeBackend::keyed())
        .decider(SandboxedDecider::built_in()?)
        // `SqliteStore` keeps it on the disk; any implementation of `Store` will do.
        .store(MemoryStore::new())
        .shape(wish.clone())
        .start()
        .await?;
    let (letters, mail) = mpsc::channel(8);
    let waits = host.clone();
    let keeper = tokio::spawn(Keeper { host, wish, mail }.run());

    waits.wait_converged().await?;
    let (reply, resized) = oneshot::channel();
    letters.send(Message::Resize(5, reply)).await?;
    resized.await??;
    waits.wait_converged().await?;

    let (reply, stopped) = oneshot::channel();
    letters.send(Message::Stop(reply)).await?;
    println!("{}", if stopped.await? { "nothing is left" } else { "something is left" });
    keeper.await?;
    Ok(())
}
