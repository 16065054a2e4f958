//! The fleet that the tests simulate.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::policy::Policy;
use engine::shape::{Boot, ClusterShape, GroupShape, Join, Probe, Template};
use sim::{Decide, Setup};

fn template(provider: &str) -> Arc<Template> {
    let boot = Boot { command: vec!["serve".into()], env: BTreeMap::new(), files: BTreeMap::new() };
    let join = Join { probe: Probe::Tcp("{endpoint}".into()), interval_ms: 200, timeout_ms: 1_000 };
    Arc::new(Template {
        provider: provider.into(),
        settings: BTreeMap::new(),
        image: None,
        role: String::new(),
        boot,
        join,
        labels: BTreeMap::new(),
    })
}

/// Two groups over two providers, for half an hour at most.
pub fn setup() -> Setup {
    let group = |id: &str, count, provider| GroupShape::new(id, count, template(provider));
    let groups = vec![group("web", 3, "cloud"), group("gpu", 2, "market")];
    let shape = ClusterShape { run: "demo".into(), generation: 1, groups };
    let mut setup = Setup::new(shape, Policy::default());
    setup.until_ms = 1_800_000;
    setup
}

/// The built-in ladder.
#[allow(dead_code, reason = "not every file asks it")]
pub fn native() -> Box<Decide<'static>> {
    Box::new(|snapshot| Ok(decider::reconcile(snapshot)))
}
