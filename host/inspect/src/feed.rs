//! The list of changes: what `watch` sends, from one published view to the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::wire::{Change, DeciderStatus, Node, Orphan, Pause, RefusedFile, Status, Swap, What};
use tokio::sync::broadcast;

/// Changes that are remembered, so that whoever lost the connection can go on.
const REMEMBERED: usize = 8_192;
/// Swaps that a status has at most.
const SWAPS: usize = 12;
/// Warnings and errors that are remembered for the history.
const NOTICES: usize = 256;
/// A status is not said to be of an instant longer ago than this.
const STALE_MS: u64 = 500;
/// Changes that a reader may fall behind before it has to list again.
const BEHIND: usize = 4_096;

/// The fleet as it was published last, and what changed until then. Readers never make the writer wait.
#[derive(Debug)]
pub struct Feed {
    /// Revisions of another start mean nothing here.
    start: String,
    inner: Mutex<Inner>,
    sender: broadcast::Sender<Arc<Change>>,
}

#[derive(Debug)]
struct Inner {
    last: u64,
    changes: VecDeque<Arc<Change>>,
    status: Arc<Status>,
    listens: Vec<String>,
    /// What is known of deciders besides what views show; none until somebody says.
    decider: Option<DeciderStatus>,
    swaps: Vec<Swap>,
    refused_file: Option<RefusedFile>,
    /// What was said that no record has: of this start, the oldest first.
    notices: VecDeque<Arc<Change>>,
}

impl Feed {
    /// A list that is still empty. `start` tells one start of the daemon from another.
    pub fn new(start: impl Into<String>) -> Self {
        let (sender, _) = broadcast::channel(BEHIND);
        let start = start.into();
        let status = Arc::new(Status { revision: format!("{start}-0"), ..Status::default() });
        Feed {
            start,
            inner: Mutex::new(Inner {
                last: 0,
                changes: VecDeque::new(),
                status,
                listens: Vec::new(),
                decider: None,
                swaps: Vec::new(),
                refused_file: None,
                notices: VecDeque::new(),
            }),
            sender,
        }
    }

    /// The fleet as it was published last.
    pub fn status(&self) -> Arc<Status> {
        self.inner().status.clone()
    }

    /// The same, said at this instant: nothing changed since, but time has passed.
    pub fn status_at(&self, now_ms: u64) -> Arc<Status> {
        let mut inner = self.inner();
        if inner.status.now_ms.saturating_add(STALE_MS) < now_ms {
            // Two copies a second at most, however many ask.
            Arc::make_mut(&mut inner.status).now_ms = now_ms;
        }
        inner.status.clone()
    }

    /// What changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.sender.subscribe()
    }

    /// How many watch.
    pub fn watchers(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Changes after a revision; `None` when they are not all remembered.
    pub fn changes_after(&self, revision: &str) -> Option<Vec<Arc<Change>>> {
        let (start, number) = revision.rsplit_once('-')?;
        let number: u64 = number.parse().ok()?;
        let inner = self.inner();
        if start != self.start || number > inner.last {
            return None;
        }
        let missing = usize::try_from(inner.last - number).ok()?;
        let skip = inner.changes.len().checked_sub(missing)?;
        Some(inner.changes.iter().skip(skip).cloned().collect())
    }

    /// Takes a newer picture of the fleet, and tells what is different. Its revision is set here; its decider, apart from how
    /// that fails, and its swaps are as [`Feed::deciders_are`] was told last.
    pub fn publish(&self, mut status: Status) {
        let mut inner = self.inner();
        if let Some(decider) = &inner.decider {
            status.decider = DeciderStatus { failure: status.decider.failure.take(), ..decider.clone() };
        }
        status.swaps.clone_from(&inner.swaps);
        status.refused_file.clone_from(&inner.refused_file);
        self.place(&mut inner, status);
    }

    /// Says why the fleet file cannot be taken over, or that it was.
    pub fn file_is(&self, now_ms: u64, refused: Option<RefusedFile>) {
        let mut inner = self.inner();
        let mut status = (*inner.status).clone();
        status.now_ms = status.now_ms.max(now_ms);
        status.refused_file.clone_from(&refused);
        inner.refused_file = refused;
        self.place(&mut inner, status);
    }

    /// Takes what is known of the decider in force, and of swaps, newest first; tells what is different. The decider's
    /// `failure` is of no meaning: views show it.
    pub fn deciders_are(&self, now_ms: u64, decider: DeciderStatus, mut swaps: Vec<Swap>) {
        swaps.truncate(SWAPS);
        let mut inner = self.inner();
        let mut status = (*inner.status).clone();
        status.now_ms = status.now_ms.max(now_ms);
        status.decider = DeciderStatus { failure: status.decider.failure.take(), ..decider.clone() };
        status.swaps.clone_from(&swaps);
        (inner.decider, inner.swaps) = (Some(decider), swaps);
        self.place(&mut inner, status);
    }

    fn place(&self, inner: &mut Inner, mut status: Status) {
        let whats = differences(&inner.status, &status);
        let mut changes = Vec::with_capacity(whats.len());
        for what in whats {
            changes.push(inner.remember(&self.start, status.now_ms, what));
        }
        status.revision = format!("{}-{}", self.start, inner.last);
        status.listens.clone_from(&inner.listens);
        inner.status = Arc::new(status);
        // Under the lock, so that nobody sees a later change before an earlier one. Nobody may be listening.
        for change in changes {
            let _ = self.sender.send(change);
        }
    }

    /// Where the interface listens besides its socket, such as `http://127.0.0.1:7700`.
    pub fn listens_at(&self, addresses: Vec<String>) {
        let mut inner = self.inner();
        Arc::make_mut(&mut inner.status).listens.clone_from(&addresses);
        inner.listens = addresses;
    }

    /// Warnings and errors of this start, such as a guard's breach: the journal has what follows from them, not their words.
    pub fn notices(&self) -> Vec<Arc<Change>> {
        self.inner().notices.iter().cloned().collect()
    }

    /// Tells something that no picture shows.
    pub fn say(&self, at_ms: u64, what: What) {
        let mut inner = self.inner();
        let weighs = matches!(&what, What::Notice { level, .. } if level != "info");
        let change = inner.remember(&self.start, at_ms, what);
        if weighs {
            if inner.notices.len() == NOTICES {
                inner.notices.pop_front();
            }
            inner.notices.push_back(change.clone());
        }
        let revision = change.revision.clone();
        Arc::make_mut(&mut inner.status).revision = revision;
        let _ = self.sender.send(change);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn remember(&mut self, start: &str, at_ms: u64, what: What) -> Arc<Change> {
        self.last += 1;
        let revision = format!("{start}-{}", self.last);
        let change = Arc::new(Change { schema: "homeostat.event/v1".into(), revision, at_ms, what });
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
        }
        self.changes.push_back(change.clone());
        change
    }
}

/// What is different, in an order in which it makes sense.
fn differences(before: &Status, after: &Status) -> Vec<What> {
    let mut found = Vec::new();
    if before.generation != after.generation {
        found.push(What::Generation { generation: after.generation });
    }
    if before.decider != after.decider {
        found.push(What::Decider(Box::new(after.decider.clone())));
    }
    // The oldest first. One that is not listed any more is no news.
    let swaps = after.swaps.iter().rev().filter(|swap| !before.swaps.contains(swap));
    found.extend(swaps.map(|swap| What::Swap(Box::new(swap.clone()))));
    match (&before.refused_file, &after.refused_file) {
        (before, Some(now)) if before.as_ref() != Some(now) => found.push(What::FileRefused(now.clone())),
        (Some(before), None) => found.push(What::FileTaken { file: before.file.clone() }),
        _ => {}
    }
    pauses(&before.pauses, &after.pauses, &mut found);
    let mut known: BTreeMap<&str, &Node> = before.nodes.iter().map(|node| (node.node.as_str(), node)).collect();
    for node in &after.nodes {
        if known.remove(node.node.as_str()) != Some(node) {
            found.push(What::Node(Box::new(node.clone())));
        }
    }
    found.extend(known.into_keys().map(|node| What::Gone { node: node.to_owned() }));
    orphans(&before.orphans, &after.orphans, &mut found);
    if after.converged && (!before.converged || before.generation != after.generation) {
        found.push(What::Converged { generation: after.generation });
    }
    found
}

fn pauses(before: &[Pause], after: &[Pause], found: &mut Vec<What>) {
    for gone in before.iter().filter(|pause| !after.iter().any(|now| same_pause(now, pause))) {
        found.push(What::Resumed { group: gone.group.clone(), only: gone.only.clone() });
    }
    found.extend(after.iter().filter(|pause| !before.contains(pause)).cloned().map(What::Paused));
}

fn same_pause(one: &Pause, other: &Pause) -> bool {
    (&one.group, &one.only, &one.by) == (&other.group, &other.only, &other.by)
}

fn orphans(before: &[Orphan], after: &[Orphan], found: &mut Vec<What>) {
    let name = |orphan: &Orphan| (orphan.provider.clone(), orphan.lease.clone());
    let known: BTreeMap<_, &Orphan> = before.iter().map(|orphan| (name(orphan), orphan)).collect();
    let here: BTreeMap<_, &Orphan> = after.iter().map(|orphan| (name(orphan), orphan)).collect();
    found.extend(
        here.iter().filter(|(name, orphan)| known.get(*name) != Some(*orphan)).map(|(_, o)| What::Orphan((*o).clone())),
    );
    for (provider, lease) in known.into_keys().filter(|name| !here.contains_key(name)) {
        found.push(What::OrphanGone { provider, lease });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn fleet(stages: &[(&str, &str)]) -> Status {
        let node =
            |(name, stage): &(&str, &str)| Node { node: (*name).into(), stage: (*stage).into(), ..Node::default() };
        Status { generation: 1, nodes: stages.iter().map(node).collect(), ..Status::default() }
    }

    #[test]
    fn a_reader_goes_on_where_it_was_or_is_told_that_it_cannot() {
        let feed = Feed::new("s1");
        feed.publish(fleet(&[("web-0", "new")]));
        let seen = feed.status().revision.clone();
        feed.publish(fleet(&[("web-0", "joined"), ("web-1", "new")]));
        let missed = feed.changes_after(&seen).unwrap();
        assert_eq!(missed.len(), 2);
        assert_eq!(missed[1].revision, feed.status().revision);
        assert_eq!(feed.changes_after(&feed.status().revision), Some(vec![]));
        assert_eq!(feed.changes_after("s0-1"), None, "another start");
        assert_eq!(feed.changes_after("s1-99"), None, "not yet");
        for odd in ["", "s1", "-", "s1-x", "s1--1"] {
            assert_eq!(feed.changes_after(odd), None, "{odd:?}");
        }
        for at in 0..REMEMBERED {
            feed.publish(fleet(&[("web-0", if at % 2 == 0 { "new" } else { "joined" })]));
        }
        assert_eq!(feed.changes_after(&seen), None, "too long ago");
    }

    #[test]
    fn applying_all_changes_gives_the_list() {
        let feed = Feed::new("s");
        feed.publish(fleet(&[("a-0", "new"), ("a-1", "new")]));
        let mut known: BTreeMap<String, Node> =
            feed.status().nodes.iter().map(|node| (node.node.clone(), node.clone())).collect();
        let mut reader = feed.changes();
        feed.publish(fleet(&[("a-1", "joined"), ("b-0", "new")]));
        while let Ok(change) = reader.try_recv() {
            match &change.what {
                What::Node(node) => drop(known.insert(node.node.clone(), (**node).clone())),
                What::Gone { node } => drop(known.remove(node)),
                _ => {}
            }
        }
        let now = feed.status();
        assert_eq!(known.into_values().collect::<Vec<_>>(), now.nodes);
    }

    #[test]
    fn deciders_and_swaps_are_told_and_stay_when_views_are_published() {
        let feed = Feed::new("s");
        let mut first = fleet(&[("web-0", "new")]);
        first.decider = DeciderStatus { name: "ladder".into(), ..DeciderStatus::default() };
        feed.publish(first.clone());
        let mut reader = feed.changes();
        let mut told =
            || -> Vec<What> { std::iter::from_fn(|| reader.try_recv().ok()).map(|c| c.what.clone()).collect() };
        let other = DeciderStatus { name: "other".into(), ..DeciderStatus::default() };
        let swap = |id: &str, text: &str| Swap { id: id.into(), text: text.into(), ..Swap::default() };
        feed.deciders_are(5, other.clone(), vec![swap("b", "runs"), swap("a", "ended")]);
        let swaps = [swap("a", "ended"), swap("b", "runs")].map(|swap| What::Swap(Box::new(swap)));
        assert_eq!(told(), [&[What::Decider(Box::new(other.clone()))], &swaps[..]].concat());
        assert_eq!(feed.status().now_ms, 5);
        // The same again is no news, and only what went on is.
        feed.deciders_are(6, other.clone(), vec![swap("b", "runs"), swap("a", "ended")]);
        assert_eq!(told(), []);
        feed.deciders_are(7, other.clone(), vec![swap("b", "ended"), swap("a", "ended")]);
        assert_eq!(told(), [What::Swap(Box::new(swap("b", "ended")))]);
        // A view knows how the decider fails, and no more of it.
        first.decider.failure = Some("out-of-fuel: x".into());
        feed.publish(first);
        let failing = DeciderStatus { failure: Some("out-of-fuel: x".into()), ..other };
        assert_eq!(told(), [What::Decider(Box::new(failing.clone()))]);
        assert_eq!((feed.status().decider.clone(), feed.status().swaps.len()), (failing, 2));
        // What is wrong with the fleet file stays too, until it is taken over.
        let refused = RefusedFile { file: "f.toml".into(), reason: "no such file".into(), since_ms: 9 };
        feed.file_is(9, Some(refused.clone()));
        assert_eq!(told(), [What::FileRefused(refused.clone())]);
        feed.publish(fleet(&[("web-0", "new")]));
        assert_eq!(
            (told().len(), feed.status().refused_file.clone()),
            (1, Some(refused)),
            "the failure is over, no more"
        );
        feed.file_is(10, None);
        assert_eq!(told(), [What::FileTaken { file: "f.toml".into() }]);
        let many: Vec<Swap> = (0..40).map(|at| swap(&at.to_string(), "")).collect();
        feed.deciders_are(8, DeciderStatus::default(), many);
        assert_eq!(feed.status().swaps.len(), SWAPS);
    }
}
