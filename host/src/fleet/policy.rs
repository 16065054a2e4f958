//! `[policy]`: the operator's settings, each with a default; and `[guards]`, each absent unless written.

use engine::policy::{Guards, Policy};

use super::error::Problem;
use super::walk::{Field, Section, Walk};

/// The most that a limit can be raised to, in nodes.
pub const MAX_NODES: u32 = 1_000_000;

/// The whole table. What is wrong is noted, and its default stands in so that the rest can be checked.
pub(super) fn policy<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Policy {
    let mut policy = Policy::default();
    let Some(mut section) = walk.table(field, "a table of settings") else { return policy };
    if let Some(field) = walk.get(&mut section, "backoff") {
        backoff(walk, &field, &mut policy);
    }
    duration(walk, &mut section, "probe-interval", &mut policy.probe_interval_ms);
    if let Some(mut section) = subtable(walk, &mut section, "deadlines", "a table of lengths of time") {
        let deadlines = &mut policy.deadlines;
        duration(walk, &mut section, "create-lease", &mut deadlines.create_lease_ms);
        duration(walk, &mut section, "lookup-endpoint", &mut deadlines.lookup_endpoint_ms);
        duration(walk, &mut section, "start-bootstrap", &mut deadlines.start_bootstrap_ms);
        duration(walk, &mut section, "cancel-bootstrap", &mut deadlines.cancel_bootstrap_ms);
        duration(walk, &mut section, "destroy-lease", &mut deadlines.destroy_lease_ms);
        walk.close(section);
    }
    if let Some(mut section) = subtable(walk, &mut section, "stages", "a table of lengths of time") {
        let stages = &mut policy.stages;
        duration(walk, &mut section, "endpoint", &mut stages.endpoint_ms);
        duration(walk, &mut section, "bootstrap", &mut stages.bootstrap_ms);
        duration(walk, &mut section, "join", &mut stages.join_ms);
        number(walk, &mut section, "growth-cap", 1, 1_000, &mut stages.growth_cap);
        walk.close(section);
    }
    if let Some(mut section) = subtable(walk, &mut section, "limits", "a table of numbers") {
        let limits = &mut policy.limits;
        number(walk, &mut section, "max-group-count", 0, MAX_NODES, &mut limits.max_group_count);
        number(walk, &mut section, "max-nodes", 0, MAX_NODES, &mut limits.max_nodes);
        walk.close(section);
    }
    walk.close(section);
    policy
}

/// What needs a person beyond it. 0 is no limit but a stop, and a stop is an order: `homeostat pause`.
pub(super) fn guards<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>) -> Guards {
    let mut guards = Guards::default();
    let Some(mut section) = walk.table(field, "a table of guards") else { return guards };
    guards.destroys_per_minute = guard(walk, &mut section, "destroys-per-minute", MAX_NODES);
    guards.creates_per_hour = guard(walk, &mut section, "creates-per-hour", MAX_NODES);
    guards.live_resources = guard(walk, &mut section, "live-resources", MAX_NODES);
    let share = guard(walk, &mut section, "destroyed-share-percent", 100);
    guards.destroyed_share_percent = share.and_then(|share| u8::try_from(share).ok());
    walk.close(section);
    guards
}

fn guard<'s>(walk: &mut Walk<'s>, section: &mut Section<'_, 's>, name: &'static str, most: u32) -> Option<u32> {
    let field = walk.get(section, name)?;
    let number = walk.whole(&field, 1, u64::from(most), "a whole number from 1")?;
    u32::try_from(number).ok()
}

fn backoff<'s>(walk: &mut Walk<'s>, field: &Field<'_, 's>, policy: &mut Policy) {
    let Some(mut section) = walk.table(field, "a table with `initial`, `cap` and `jitter-percent`") else { return };
    duration(walk, &mut section, "initial", &mut policy.backoff_initial_ms);
    duration(walk, &mut section, "cap", &mut policy.backoff_cap_ms);
    let mut jitter = u32::from(policy.backoff_jitter_percent);
    number(walk, &mut section, "jitter-percent", 0, 100, &mut jitter);
    policy.backoff_jitter_percent = u8::try_from(jitter).unwrap_or(100);
    walk.close(section);
    if walk.is_clean() && policy.backoff_initial_ms > policy.backoff_cap_ms {
        let path = format!("{}.{}", field.path, "initial");
        let span = walk.place(&path);
        let reason = "the first delay is longer than `cap`, the longest".to_owned();
        let problem = Problem::Value { field: path.clone(), value: walk.text(&span), reason };
        walk.note(&path, span, problem);
    }
}

fn subtable<'a, 's>(
    walk: &mut Walk<'s>,
    section: &mut Section<'a, 's>,
    name: &'static str,
    expected: &'static str,
) -> Option<Section<'a, 's>> {
    let field = walk.get(section, name)?;
    walk.table(&field, expected)
}

fn duration<'s>(walk: &mut Walk<'s>, section: &mut Section<'_, 's>, name: &'static str, to_ms: &mut u64) {
    if let Some(field) = walk.get(section, name)
        && let Some(ms) = walk.duration(&field)
    {
        *to_ms = ms;
    }
}

fn number<'s>(
    walk: &mut Walk<'s>,
    section: &mut Section<'_, 's>,
    name: &'static str,
    least: u32,
    most: u32,
    to: &mut u32,
) {
    if let Some(field) = walk.get(section, name)
        && let Some(number) = walk.whole(&field, u64::from(least), u64::from(most), "a whole number")
    {
        *to = u32::try_from(number).unwrap_or(most);
    }
}
