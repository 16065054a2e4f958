//! The fleet as it is, from the published status, when somebody asks.

use std::collections::{BTreeMap, BTreeSet};

use decider::Stage;
use prometheus::{Error, IntGauge, IntGaugeVec};

use super::catalogue::Catalogue;
use super::signed;
use crate::wire::Status;

/// Groups that are counted by name; what is in others is counted under [`OTHERS`].
const MAX_GROUPS: usize = 200;
/// No group can have this name.
const OTHERS: &str = "_others";
/// What a decider or a backend calls itself is cut here, in characters.
const MAX_LABEL: usize = 80;

pub(super) struct Fleet {
    nodes: IntGaugeVec,
    desired: IntGaugeVec,
    ready: IntGaugeVec,
    failing: IntGaugeVec,
    deleting: IntGaugeVec,
    held: IntGaugeVec,
    converged: IntGauge,
    generation: IntGauge,
    observed: IntGauge,
    orphans: IntGauge,
    reaping: IntGauge,
    missing: IntGaugeVec,
    file_refused: IntGauge,
    paused: IntGaugeVec,
    decider: IntGaugeVec,
    decider_failing: IntGauge,
    decider_watched: IntGauge,
    decider_rolled_back: IntGauge,
    quarantined: IntGauge,
}

impl Fleet {
    pub fn new(c: &mut Catalogue) -> Result<Self, Error> {
        Ok(Fleet {
            nodes: c.gauges("homeostat_nodes", "Slots by group and stage.", &["group", "stage"])?,
            desired: c.gauges("homeostat_desired_nodes", "Slots that are desired.", &["group"])?,
            ready: c.gauges("homeostat_ready_nodes", "Desired slots whose node is ready.", &["group"])?,
            failing: c.gauges(
                "homeostat_failing_nodes",
                "Nodes that failed, or are held because something failed.",
                &["group"],
            )?,
            deleting: c.gauges("homeostat_deleting_nodes", "Nodes that are being taken down.", &["group"])?,
            held: c.gauges("homeostat_held_nodes", "Nodes that a pause or a guard holds.", &["group"])?,
            missing: c.gauges(
                "homeostat_missing_nodes",
                "Nodes that count as ready although something is wrong: a start's listing did not show them, say.",
                &["group"],
            )?,
            file_refused: c.gauge(
                "homeostat_fleet_file_refused",
                "1 while the fleet file cannot be taken over and what was taken over before stays in force, else 0.",
            )?,
            converged: c.gauge("homeostat_converged", "1 when the fleet has the declared shape, else 0.")?,
            generation: c.gauge("homeostat_generation", "The generation in force.")?,
            observed: c.gauge("homeostat_observed_generation", "The last generation that was evaluated whole.")?,
            orphans: c.gauge("homeostat_orphans", "Resources that bear the run's name and were never authorised.")?,
            reaping: c.gauge("homeostat_reaping", "Resources of retired attempts that are being removed.")?,
            paused: c.gauges(
                "homeostat_paused",
                "1 for each pause and each breached guard that holds effects.",
                &["scope", "only", "by"],
            )?,
            decider: c.gauges(
                "homeostat_decider_info",
                "1; the decider in force is in the labels.",
                &["name", "version", "contract", "digest"],
            )?,
            decider_failing: c.gauge("homeostat_decider_failing", "1 while the decider fails, else 0.")?,
            decider_watched: c.gauge("homeostat_decider_watched", "1 while a new decider is watched, else 0.")?,
            decider_rolled_back: c.gauge(
                "homeostat_decider_rolled_back",
                "1 while a decider is in force because the one before it was rolled back by itself, else 0.",
            )?,
            quarantined: c.gauge("homeostat_deciders_quarantined", "Deciders that are not put in force again.")?,
        })
    }

    pub fn fill(&mut self, status: &Status) {
        let all = [&self.nodes, &self.desired, &self.ready, &self.failing, &self.deleting, &self.held];
        all.into_iter().chain([&self.missing, &self.paused, &self.decider]).for_each(|gauges| gauges.reset());
        let named: BTreeSet<&str> = status.groups.iter().take(MAX_GROUPS).map(|group| group.group.as_str()).collect();
        let name = |group: &str| named.get(group).copied().unwrap_or(OTHERS);
        for group in &status.groups {
            let label = [name(&group.group)];
            self.desired.with_label_values(&label).add(i64::from(group.desired));
            self.ready.with_label_values(&label).add(i64::from(group.ready));
            self.failing.with_label_values(&label).add(i64::from(group.failing));
            self.deleting.with_label_values(&label).add(i64::from(group.deleting));
            // A stage without nodes is a 0, not a gap.
            for stage in Stage::ALL {
                self.nodes.with_label_values(&[label[0], stage.label()]);
            }
            self.held.with_label_values(&label);
            self.missing.with_label_values(&label);
        }
        let mut stages: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for node in &status.nodes {
            let known = Stage::ALL.iter().find(|stage| stage.label() == node.stage);
            *stages.entry((name(&node.group), known.map_or("other", |stage| stage.label()))).or_default() += 1;
            if node.held.is_some() {
                self.held.with_label_values(&[name(&node.group)]).inc();
            }
            // Nothing follows from it by itself: absence is no evidence (S14).
            if node.ready && !node.deleting && node.error.is_some() {
                self.missing.with_label_values(&[name(&node.group)]).inc();
            }
        }
        for ((group, stage), count) in stages {
            self.nodes.with_label_values(&[group, stage]).set(count);
        }
        self.file_refused.set(i64::from(status.refused_file.is_some()));
        self.converged.set(i64::from(status.converged));
        self.generation.set(signed(status.generation));
        self.observed.set(signed(status.observed_generation));
        self.orphans.set(signed(status.orphans.len() as u64));
        self.reaping.set(signed(status.reaping.len() as u64));
        for pause in status.pauses.iter().take(MAX_GROUPS) {
            let scope = pause.group.as_deref().map_or("fleet", name);
            self.paused.with_label_values(&[scope, &cut(&pause.only), &cut(&pause.by)]).set(1);
        }
        let decider = &status.decider;
        let labels = [&cut(&decider.name), &cut(&decider.version), &cut(&decider.contract), &cut(&decider.digest)];
        self.decider.with_label_values(&labels).set(1);
        self.decider_failing.set(i64::from(decider.failure.is_some()));
        self.decider_watched.set(i64::from(decider.watching.is_some()));
        self.decider_rolled_back.set(i64::from(decider.rolled_back.is_some()));
        self.quarantined.set(i64::from(decider.quarantined));
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_LABEL).collect()
}
