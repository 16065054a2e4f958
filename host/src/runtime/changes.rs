//! What happened, for people: the views that are published, and the differences between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::id::Millis;
use engine::io::Notice;
use engine::view::{NodeView, View};
use serde::Serialize;
use tokio::sync::{broadcast, watch};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event", content = "of")]
pub enum HostEvent {
    /// A slot's attempt, stage, readiness, endpoint or error changed.
    Node(Box<NodeView>),
    /// A slot is not desired any more and nothing is left of it.
    Gone {
        /// Its name.
        node: String,
    },
    /// The fleet has the shape of this generation (SPEC 8).
    Converged {
        /// The generation.
        generation: u64,
    },
    /// The driver has something to say.
    Notice(Notice),
    /// A step of a swap (SPEC 11).
    Swap(Box<::journal::SwapRecord>),
    /// A backend could not be listed. Nothing follows from it (S14).
    ListingFailed {
        /// Which.
        provider: String,
        /// Its words.
        reason: String,
    },
    /// Passes do not come to rest; the next one waits.
    Restless {
        /// The driver's words.
        reason: String,
    },
}

/// Publishes views: of a large fleet less often than it changes, because making one costs a walk over all of it.
pub(crate) struct Publisher {
    views: watch::Sender<Arc<View>>,
    events: broadcast::Sender<HostEvent>,
    published_ms: Millis,
    dirty: bool,
}

/// Nodes a view may have for each millisecond between two of them: 10,000 nodes are shown twice a second.
const NODES_PER_MS: u64 = 20;

impl Publisher {
    pub fn new(views: watch::Sender<Arc<View>>, events: broadcast::Sender<HostEvent>) -> Self {
        Publisher { views, events, published_ms: 0, dirty: true }
    }

    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// When the next view is due; `None` when nothing changed.
    pub fn due_at(&self) -> Option<Millis> {
        let nodes = self.views.borrow().nodes.len();
        let pause = u64::try_from(nodes).unwrap_or(u64::MAX) / NODES_PER_MS;
        self.dirty.then(|| self.published_ms.saturating_add(pause))
    }

    pub fn say(&self, event: HostEvent) {
        // Without listeners there is nobody to tell.
        let _ = self.events.send(event);
    }

    pub fn publish(&mut self, view: View, now_ms: Millis) {
        self.dirty = false;
        self.published_ms = now_ms;
        // The events first: whoever sees the view finds them all.
        if self.events.receiver_count() > 0 {
            let previous = self.views.borrow().clone();
            self.compare(&previous, &view);
        }
        self.views.send_replace(Arc::new(view));
    }

    fn compare(&self, previous: &View, view: &View) {
        let mut before: BTreeMap<&str, &NodeView> =
            previous.nodes.iter().map(|node| (node.node.as_str(), node)).collect();
        for node in &view.nodes {
            if before.remove(node.node.as_str()).is_none_or(|old| differs(old, node)) {
                self.say(HostEvent::Node(Box::new(node.clone())));
            }
        }
        for node in before.into_keys() {
            self.say(HostEvent::Gone { node: node.to_owned() });
        }
        if view.converged && (!previous.converged || previous.generation != view.generation) {
            self.say(HostEvent::Converged { generation: view.generation });
        }
    }
}

/// Whether a person would call it a change. What a node waits for changes with every look; of one that is not desired any
/// more the next pass makes one that is being deleted; and an endpoint that goes meanwhile says nothing new.
fn differs(old: &NodeView, new: &NodeView) -> bool {
    old.attempt != new.attempt
        || old.stage != new.stage
        || old.deleting != new.deleting
        || old.ready != new.ready
        || (!new.deleting && old.endpoint != new.endpoint)
        || old.error != new.error
}
