//! Builders: the one place where scenarios and tests make shapes, templates and drivers.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::driver::{Driver, DriverConfig, DriverError};
use engine::io::{DeciderIdentity, Promise};
use engine::policy::Policy;
use engine::shape::{Boot, ClusterShape, GroupShape, Join, Probe, Template};

/// The run that scenarios keep.
pub const RUN: &str = "demo";

/// A template; `tag` tells two of them apart.
pub fn template(provider: &str, tag: &str) -> Arc<Template> {
    Arc::new(Template {
        provider: provider.into(),
        settings: BTreeMap::new(),
        image: None,
        role: String::new(),
        boot: Boot { command: vec!["serve".into(), tag.into()], env: BTreeMap::new(), files: BTreeMap::new() },
        join: Join { probe: Probe::Tcp("{endpoint}".into()), interval_ms: 200, timeout_ms: 1_000 },
        labels: BTreeMap::new(),
    })
}

/// A shape of groups, each `(id, count, template)`.
pub fn shape(generation: u64, groups: &[(&str, u32, Arc<Template>)]) -> ClusterShape {
    let groups = groups.iter().map(|(id, count, template)| GroupShape::new(*id, *count, template.clone()));
    ClusterShape { run: RUN.into(), generation, groups: groups.collect() }
}

/// The built-in decider outside the sandbox.
pub fn native() -> DeciderIdentity {
    DeciderIdentity::native()
}

/// A keyed backend `fake` and a windowed one, `market`.
pub fn providers() -> BTreeMap<String, Promise> {
    BTreeMap::from([
        ("fake".to_string(), Promise::Keyed),
        ("market".to_string(), Promise::Windowed { window_ms: 30_000, listings: 2 }),
    ])
}

/// A driver's configuration with [`providers`] and the built-in decider.
pub fn config(policy: Policy) -> DriverConfig {
    DriverConfig { run: RUN.into(), policy, providers: providers(), decider: native(), next_attempt: 1, epoch: 0 }
}

/// A driver with that configuration.
///
/// # Errors
///
/// The engine refuses the configuration.
pub fn driver(policy: Policy) -> Result<Driver, DriverError> {
    Driver::new(config(policy))
}
