//! A provider for tests: a model of what it holds, and a [`Script`] of how its calls end. It uses tokio's clock only, so
//! that paused time works, and it watches its callers: see [`FakeBackend::violations`].

mod script;
mod world;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::id::ExternalKey;
use engine::io::{CreateRequest, Endpoint, Fault, LeaseId, Listing, Observation, Promise, SessionId};
use engine::shape::Template;
use tokio::sync::oneshot;

use super::{Backend, Leased, ObservationSink, StartRequest, Started};
pub use script::{Beat, Call, Commit, Nth, Outcome, Script, Step, View};
pub use world::Entry;
use world::{Held, Session, World};

/// A scripted provider. Clones are the same provider.
#[derive(Clone)]
pub struct FakeBackend {
    world: Arc<Mutex<World>>,
    promise: Promise,
}

/// A call in progress: whatever becomes of it is in the log, also when its caller drops it.
struct Visit<'a> {
    fake: &'a FakeBackend,
    call: Call,
    key: Option<ExternalKey>,
    nth: u32,
    ended: bool,
}

impl Visit<'_> {
    fn end<T>(mut self, result: Result<T, Fault>, words: impl FnOnce(&T) -> String) -> Result<T, Fault> {
        let what = match &result {
            Ok(answer) => words(answer),
            Err(fault) => format!("fails: {fault}"),
        };
        self.ended = true;
        self.fake.world().note(Some(self.call), self.key.as_ref(), self.nth, what);
        result
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut world = self.fake.world();
        world.leave(self.key.as_ref());
        if !self.ended {
            world.note(Some(self.call), self.key.as_ref(), self.nth, "is dropped");
        }
    }
}

impl FakeBackend {
    /// A provider that makes this promise and follows this script.
    pub fn new(promise: Promise, script: Script) -> Self {
        FakeBackend { world: Arc::new(Mutex::new(World::new(promise, script))), promise }
    }

    /// A keyed provider where everything works at once.
    pub fn keyed() -> Self {
        FakeBackend::new(Promise::Keyed, Script::new())
    }

    /// From now on these entries come before the script's.
    pub fn rescript(&self, first: Script) {
        self.world().script.preceded_by(first);
    }

    /// What was asked and how it ended, in order.
    pub fn log(&self) -> Vec<Entry> {
        self.world().log.clone()
    }

    /// The log as text, one line an entry.
    pub fn transcript(&self) -> String {
        self.log().iter().map(|entry| format!("{entry}\n")).collect()
    }

    /// How often a call of this kind began for a slot (`""` for listings).
    pub fn calls(&self, slot: &str, call: Call) -> usize {
        let of = |key: &Option<ExternalKey>| key.as_ref().map_or("", |key| key.slot.as_str()) == slot;
        self.world()
            .log
            .iter()
            .filter(|entry| entry.call == Some(call) && entry.what == "begins" && of(&entry.key))
            .count()
    }

    /// What callers did that they must not: two calls at once for an attempt (S2), a second live resource of a key (S8),
    /// a touch of something that is not theirs (S15).
    pub fn violations(&self) -> Vec<String> {
        self.world().violations.clone()
    }

    /// What is held: reference and label, in order.
    pub fn resources(&self) -> Vec<(LeaseId, Option<ExternalKey>)> {
        self.world().held.iter().map(|(lease, held)| (lease.clone(), held.key.clone())).collect()
    }

    /// How many live resources bear a key.
    pub fn live(&self, key: &ExternalKey) -> u32 {
        self.world().live(key)
    }

    /// The most live resources that ever bore one key at once.
    pub fn peak(&self) -> u32 {
        self.world().peaks().values().copied().max().unwrap_or(0)
    }

    /// Puts something there that no caller made.
    pub fn plant(&self, key: Option<ExternalKey>, template: Option<Arc<Template>>) -> LeaseId {
        let mut world = self.world();
        let number = world.number();
        let lease = format!("lease-{number:03}");
        world.note(None, key.as_ref(), 0, format!("{lease} is planted"));
        world.held.insert(lease.clone(), Held { key, template, endpoint: format!("fake:{number}"), session: None });
        lease
    }

    /// The bootstrap of a resource dies by itself, with this evidence; the resource stays. `false` when none runs.
    pub fn die(&self, lease: &str, exit: &str) -> bool {
        let session = {
            let mut world = self.world();
            let session = world.held.get_mut(lease).and_then(|held| held.session.take());
            if session.is_some() {
                world.note(None, None, 0, format!("{lease} dies: {exit}"));
            }
            session
        };
        let Some(session) = session else { return false };
        let exit = Some(exit.to_owned());
        tokio::spawn(async move { close(session, exit).await });
        true
    }

    /// A resource disappears without a word. `false` when it is not there.
    pub fn vanish(&self, lease: &str) -> bool {
        let mut world = self.world();
        let Some(held) = world.held.remove(lease) else { return false };
        if let Some(player) = held.session.and_then(|session| session.player) {
            player.abort();
        }
        world.note(None, held.key.as_ref(), 0, format!("{lease} vanishes"));
        true
    }

    /// The lowest resource that bears a slot's label, of whichever attempt.
    pub fn lease_of(&self, slot: &str) -> Option<LeaseId> {
        let world = self.world();
        let found = world.held.iter().find(|(_, held)| held.key.as_ref().is_some_and(|key| key.slot == slot));
        found.map(|(lease, _)| lease.clone())
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call and finds its step. `key` is `None` for a listing.
    fn enter(&self, call: Call, key: Option<&ExternalKey>) -> (Visit<'_>, Step) {
        let mut world = self.world();
        let nth = world.enter(call, key);
        let step = world.script.step(key.map_or("", |key| key.slot.as_str()), call, nth);
        (Visit { fake: self, call, key: key.cloned(), nth, ended: false }, step)
    }

    /// Follows the script for one call. `effect` is what it does to the world; it is told whether it comes late, on its own.
    async fn follow<T, E>(&self, call: Call, key: &ExternalKey, effect: E, words: fn(&T) -> String) -> Result<T, Fault>
    where
        T: Send + 'static,
        E: FnOnce(&FakeBackend, bool) -> Result<T, Fault> + Send + 'static,
    {
        let (visit, step) = self.enter(call, Some(key));
        let delay = Duration::from_millis(step.delay_ms);
        let (sender, answer) = oneshot::channel();
        match step.commit {
            Commit::AtOnce => {
                let _ = sender.send(effect(self, false));
                tokio::time::sleep(delay).await;
            }
            Commit::After { ms } => {
                let (fake, key, nth) = (self.clone(), key.clone(), visit.nth);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    let result = effect(&fake, true);
                    let what = match &result {
                        Ok(answer) => format!("takes effect: {}", words(answer)),
                        Err(fault) => format!("takes no effect: {fault}"),
                    };
                    fake.world().note(Some(call), Some(&key), nth, what);
                    let _ = sender.send(result);
                });
                tokio::time::sleep(delay).await;
            }
            Commit::WithAnswer => {
                tokio::time::sleep(delay).await;
                if step.outcome != Outcome::Hang {
                    let _ = sender.send(effect(self, false));
                }
            }
            Commit::Never => {
                drop(sender);
                tokio::time::sleep(delay).await;
            }
        }
        let result = match step.outcome {
            Outcome::Done => answer
                .await
                .unwrap_or_else(|_| Err(Fault::Ambiguous { reason: "scripted: it neither happens nor fails".into() })),
            Outcome::Fault(fault) => Err(fault),
            Outcome::Hang => std::future::pending().await,
            Outcome::Panic(words) => std::panic::resume_unwind(Box::new(words)),
        };
        visit.end(result, words)
    }

    /// A start that takes effect: adopts the running session, or begins one.
    fn begin(&self, key: &ExternalKey, lease: &LeaseId, sink: ObservationSink) -> Result<Started, Fault> {
        let mut world = self.world();
        let number = world.number();
        let Some(held) = world.ours(Call::Start, key, lease) else {
            return Err(Fault::retryable(format!("{lease} is gone")));
        };
        if let Some(session) = &mut held.session {
            session.sink = sink.clone();
            if session.joined {
                tokio::spawn(async move { sink.send(Observation::Joined).await });
            }
            return Ok(Started { session: session.id.clone(), adopted: true });
        }
        let id = format!("session-{number:03}");
        held.session = Some(Session { id: id.clone(), sink, joined: false, player: None });
        let nth = world.session_of(&key.slot);
        let beats = world.script.beats(&key.slot, nth);
        let player = tokio::spawn(self.clone().play(lease.clone(), id.clone(), beats)).abort_handle();
        if let Some(session) = world.held.get_mut(lease).and_then(|held| held.session.as_mut()) {
            session.player = Some(player);
        }
        Ok(Started { session: id, adopted: false })
    }

    /// Reports a session's beats for as long as it lives.
    async fn play(self, lease: LeaseId, id: SessionId, beats: Vec<Beat>) {
        for beat in beats {
            tokio::time::sleep(Duration::from_millis(beat.after_ms)).await;
            let sink = {
                let mut world = self.world();
                let Some(held) = world.held.get_mut(&lease) else { return };
                let Some(session) = held.session.as_mut().filter(|session| session.id == id) else { return };
                session.joined |= beat.observation == Observation::Joined;
                let sink = session.sink.clone();
                if matches!(beat.observation, Observation::Closed { .. }) {
                    held.session = None;
                }
                sink
            };
            sink.send(beat.observation).await;
        }
    }
}

/// Ends a session that was taken out of the world.
async fn close(session: Session, exit: Option<String>) {
    if let Some(player) = &session.player {
        player.abort();
    }
    session.sink.send(Observation::Closed { exit }).await;
}

#[async_trait]
impl Backend for FakeBackend {
    fn promise(&self) -> Promise {
        self.promise
    }

    async fn create(&self, request: &CreateRequest) -> Result<Leased, Fault> {
        let (key, template) = (request.key.clone(), request.template.clone());
        let effect = move |fake: &FakeBackend, late: bool| {
            let (lease, adopted) = fake.world().create(&key, &template, late);
            Ok(Leased { lease, adopted })
        };
        let words = |leased: &Leased| format!("{} {}", if leased.adopted { "adopts" } else { "makes" }, leased.lease);
        self.follow(Call::Create, &request.key, effect, words).await
    }

    async fn lookup(&self, key: &ExternalKey, lease: &LeaseId) -> Result<Endpoint, Fault> {
        let (ours, of) = (key.clone(), lease.clone());
        let effect = move |fake: &FakeBackend, _: bool| match fake.world().ours(Call::Lookup, &ours, &of) {
            Some(held) => Ok(held.endpoint.clone()),
            None => Err(Fault::retryable(format!("{of} is gone"))),
        };
        self.follow(Call::Lookup, key, effect, |endpoint| format!("finds {endpoint}")).await
    }

    async fn start(&self, request: StartRequest<'_>, observations: ObservationSink) -> Result<Started, Fault> {
        let (key, lease) = (request.key.clone(), request.lease.clone());
        let effect = move |fake: &FakeBackend, _: bool| fake.begin(&key, &lease, observations);
        let words = |it: &Started| format!("{} {}", if it.adopted { "adopts" } else { "starts" }, it.session);
        self.follow(Call::Start, request.key, effect, words).await
    }

    async fn listen(
        &self,
        request: StartRequest<'_>,
        session: &SessionId,
        observations: ObservationSink,
    ) -> Result<(), Fault> {
        let (key, lease) = (request.key, request.lease);
        let runs = {
            let mut world = self.world();
            let held = world.ours(Call::Start, key, lease);
            held.and_then(|held| held.session.as_ref()).is_some_and(|running| running.id == *session)
        };
        match runs {
            true => self.begin(key, lease, observations).map(|_| ()),
            false => Err(Fault::retryable(format!("{session} does not run any more"))),
        }
    }

    async fn cancel(&self, key: &ExternalKey, lease: &LeaseId, session: &SessionId) -> Result<(), Fault> {
        let (ours, lease, id) = (key.clone(), lease.clone(), session.clone());
        let effect = move |fake: &FakeBackend, _: bool| {
            let mut world = fake.world();
            let Some(held) = world.ours(Call::Cancel, &ours, &lease) else { return Ok(()) };
            if let Some(session) = held.session.take_if(|session| session.id == id) {
                drop(world);
                tokio::spawn(async move { close(session, Some("cancelled".into())).await });
            }
            Ok(())
        };
        self.follow(Call::Cancel, key, effect, |()| "stops it".into()).await
    }

    async fn destroy(&self, key: &ExternalKey, lease: &LeaseId) -> Result<(), Fault> {
        let (ours, of) = (key.clone(), lease.clone());
        let effect = move |fake: &FakeBackend, _: bool| {
            let mut world = fake.world();
            if !world.held.contains_key(&of) {
                return Ok(());
            }
            if world.ours(Call::Destroy, &ours, &of).is_none() {
                return Err(Fault::permanent(format!("{of} does not bear {ours}")));
            }
            let session = world.held.remove(&of).and_then(|held| held.session);
            drop(world);
            if let Some(session) = session {
                tokio::spawn(async move { close(session, Some("destroyed".into())).await });
            }
            Ok(())
        };
        self.follow(Call::Destroy, key, effect, |()| "destroys it".into()).await
    }

    async fn list(&self, run: &str) -> Result<Listing, Fault> {
        let (visit, step) = self.enter(Call::List, None);
        tokio::time::sleep(Duration::from_millis(step.delay_ms)).await;
        let result = match step.outcome {
            Outcome::Done => {
                let mut world = self.world();
                let now = world.view(run);
                let previous = world.replace_previous(now.clone());
                let resources = match step.view {
                    View::Now => now,
                    View::First(some) => now.into_iter().take(some).collect(),
                    View::Nothing => Vec::new(),
                    View::Stale => previous,
                };
                Ok(Listing { complete: step.complete, resources })
            }
            Outcome::Fault(fault) => Err(fault),
            Outcome::Hang => std::future::pending().await,
            Outcome::Panic(words) => std::panic::resume_unwind(Box::new(words)),
        };
        visit.end(result, |listing| format!("shows {}", listing.resources.len()))
    }
}
