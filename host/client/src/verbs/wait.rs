//! Waiting until what was ordered has come about.

use std::time::{Duration, Instant};

use api::wire::{CommandResult, Status};
use step::text::counted;

use crate::error::{ClientError, Ending};
use crate::fleet::fold;
use crate::follow::{Follow, Update};
use crate::screen::Screen;
use crate::session::Session;
use crate::words;

/// Progress is told so often at most.
const PROGRESS: Duration = Duration::from_secs(2);

/// When an order has come about.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// The fleet has the shape that the order gave it.
    Converged,
    /// These nodes are held by other attempts than these, or gone, and the fleet has its shape.
    Replaced(Vec<(String, Option<u64>)>),
    /// Nothing is left of these nodes.
    Gone(Vec<String>),
    /// The orphan is not there any more.
    OrphanGone {
        /// The backend.
        provider: String,
        /// The backend's reference.
        lease: String,
    },
}

/// A goal, and the generation that the order led to.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    goal: Goal,
    generation: u64,
}

impl Goal {
    pub fn of(self, result: &CommandResult) -> Reach {
        Reach { goal: self, generation: result.consequences.generation }
    }
}

impl Reach {
    fn is_reached(&self, status: &Status) -> bool {
        let is_converged =
            status.converged && status.generation >= self.generation && status.observed_generation >= self.generation;
        match &self.goal {
            Goal::Converged => is_converged,
            Goal::Replaced(before) => {
                let still = |(name, attempt): &(String, Option<u64>)| {
                    status.nodes.iter().any(|node| node.node == *name && node.attempt == *attempt)
                };
                is_converged && !before.iter().any(still)
            }
            Goal::Gone(names) => {
                status.generation >= self.generation && !status.nodes.iter().any(|node| names.contains(&node.node))
            }
            Goal::OrphanGone { provider, lease } => {
                !status.orphans.iter().any(|orphan| orphan.provider == *provider && orphan.lease == *lease)
            }
        }
    }

    /// Where it stands, in a line.
    fn progress(&self, status: &Status) -> String {
        let left = |number: usize, what: &str| format!("waiting: {} {what}", counted(number as u64, "node"));
        match &self.goal {
            Goal::Gone(names) => {
                left(status.nodes.iter().filter(|node| names.contains(&node.node)).count(), "still to go")
            }
            Goal::OrphanGone { .. } => "waiting: the orphan is still there".into(),
            Goal::Converged | Goal::Replaced(_) => {
                let desired = status.nodes.iter().filter(|node| node.desired).count();
                let ready = status.nodes.iter().filter(|node| node.desired && node.ready).count();
                let reason = if status.reason.is_empty() { String::new() } else { format!("; {}", status.reason) };
                format!("waiting: {ready}/{desired} ready{reason}")
            }
        }
    }
}

/// Follows the fleet until it is so.
///
/// # Errors
///
/// Not in time: then each node that holds it up is named with its reason.
pub(super) async fn until_reached(
    reach: &Reach,
    timeout: Duration,
    session: &Session,
    screen: &mut Screen,
) -> Result<Ending, ClientError> {
    let mut follow = Follow::new(session.clone());
    let mut status = Status::default();
    let mut told = (Instant::now() - PROGRESS, String::new());
    let ends = tokio::time::sleep(timeout);
    tokio::pin!(ends);
    let mut interrupt = Box::pin(tokio::signal::ctrl_c());
    loop {
        let update = tokio::select! {
            update = follow.next() => update?,
            () = &mut ends => {
                return Err(not_in_time(reach, timeout, &status));
            }
            caught = &mut interrupt => {
                caught?;
                screen.note("interrupted; the command goes on");
                return Ok(Ending::Interrupted);
            }
        };
        match update {
            Update::List(list) => status = *list,
            Update::Change(change) => fold(&mut status, &change),
            Update::Lost(why) => {
                screen.note(&format!("the connection is lost ({why}); trying again"));
                continue;
            }
            Update::Relist(_) | Update::Back => continue,
        }
        if reach.is_reached(&status) {
            return Ok(Ending::Done);
        }
        let progress = reach.progress(&status);
        if told.0.elapsed() >= PROGRESS && told.1 != progress && !screen.is_json {
            screen.note(&progress);
            told = (Instant::now(), progress);
        }
    }
}

fn not_in_time(reach: &Reach, timeout: Duration, status: &Status) -> ClientError {
    const NAMED: usize = 10;
    let mut text = format!(
        "not within {}: the command was carried out, and the fleet is not there yet",
        step::text::lasting(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
    );
    let holds_up = |node: &&api::wire::Node| match &reach.goal {
        Goal::Gone(names) => names.contains(&node.node),
        Goal::OrphanGone { .. } => false,
        Goal::Converged | Goal::Replaced(_) => node.desired != node.ready || node.deleting,
    };
    let nodes: Vec<String> = status
        .nodes
        .iter()
        .filter(holds_up)
        .map(|node| format!("\n  {}  {}  {}", node.node, node.stage, words::why(node)))
        .collect();
    for line in nodes.iter().take(NAMED) {
        text.push_str(line);
    }
    if nodes.len() > NAMED {
        text.push_str(&format!("\n  and {} more", nodes.len() - NAMED));
    }
    ClientError::Timeout(text)
}
