//! What the runtime's tests share: shapes, hosts over the fake, and waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::id::AttemptId;
use engine::policy::Policy;
use engine::shape::{Boot, ClusterShape, GroupShape, Join, Probe, Template};
use engine::view::View;
use homeostat::backends::fake::{Call, FakeBackend};
use homeostat::clock::Clock;
use homeostat::decide::NativeDecider;
use homeostat::{Declaration, Host, HostBuilder, HostHandle};
use tokio::time::timeout;

pub const RUN: &str = "demo";
pub const BEGIN_MS: u64 = 1_700_000_000_000;

pub fn template(command: &str) -> Arc<Template> {
    let boot = Boot { command: vec![command.into()], env: BTreeMap::new(), files: BTreeMap::new() };
    let join = Join { probe: Probe::Tcp("{endpoint}".into()), interval_ms: 100, timeout_ms: 1_000 };
    let (settings, labels) = (BTreeMap::new(), BTreeMap::new());
    Arc::new(Template { provider: "fake".into(), settings, image: None, role: String::new(), boot, join, labels })
}

pub fn shape(generation: u64, groups: &[(&str, u32, &str)]) -> ClusterShape {
    let group = |(id, count, command): &(&str, u32, &str)| GroupShape::new(*id, *count, template(command));
    ClusterShape { run: RUN.into(), generation, groups: groups.iter().map(group).collect() }
}

/// As a file that counts no generations declares it.
pub fn declared(groups: &[(&str, u32, &str)]) -> Declaration {
    Declaration { shape: shape(1, groups), numbered: false, policy: Policy::default() }
}

pub fn builder(fake: &FakeBackend) -> HostBuilder {
    Host::builder(RUN).backend("fake", fake.clone()).decider(NativeDecider).clock(Clock::starting_at(BEGIN_MS))
}

pub async fn host(fake: &FakeBackend) -> HostHandle {
    builder(fake).start().await.unwrap()
}

/// The first view that holds, within this many seconds.
pub async fn until(host: &HostHandle, seconds: u64, holds: impl Fn(&View) -> bool) -> Arc<View> {
    let mut views = host.watch();
    let found = timeout(Duration::from_secs(seconds), views.wait_for(|view| holds(view))).await;
    match found {
        Ok(view) => view.unwrap().clone(),
        Err(_) => panic!("not within {seconds} s: {:#?}", host.view()),
    }
}

pub async fn converged(host: &HostHandle, seconds: u64) -> Arc<View> {
    match timeout(Duration::from_secs(seconds), host.wait_converged()).await {
        Ok(view) => view.unwrap(),
        Err(_) => panic!("not within {seconds} s: {:#?}", host.view()),
    }
}

pub fn attempt(view: &View, node: &str) -> u64 {
    view.nodes.iter().find(|view| view.node == node).unwrap().attempt.unwrap()
}

pub fn slots(fake: &FakeBackend) -> Vec<String> {
    let mut slots: Vec<_> = fake.resources().into_iter().filter_map(|(_, key)| Some(key?.slot)).collect();
    slots.sort();
    slots
}

pub fn key(slot: &str, attempt: u64) -> engine::id::ExternalKey {
    engine::id::ExternalKey { run: RUN.into(), slot: slot.into(), attempt: AttemptId(attempt) }
}

/// No caller broke a rule, and never were there two resources of one key.
pub fn clean(fake: &FakeBackend) {
    assert_eq!(fake.violations(), Vec::<String>::new(), "{}", fake.transcript());
    assert!(fake.peak() <= 1, "{}", fake.transcript());
}

/// At what instant a call of this kind for a slot first said this.
pub fn when(fake: &FakeBackend, slot: &str, call: Call, what: &str) -> u64 {
    let log = fake.log();
    let found = log.iter().find(|entry| {
        entry.call == Some(call) && entry.key.as_ref().is_some_and(|key| key.slot == slot) && entry.what.contains(what)
    });
    found.unwrap_or_else(|| panic!("no {call:?} of {slot} says {what:?}:\n{}", fake.transcript())).at_ms
}
