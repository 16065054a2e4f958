//! Deciders and swaps, as the interface shows and commands them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::Refusal;
use api::metrics::ShadowPass;
use api::wire::{
    DeciderCommand, DeciderDetail, DeciderEntry, DeciderName, DeciderRef, DeciderRequest, DeciderResult, DeciderRule,
    DeciderStatus, InForce, Quarantine, RolledBack, Swap, SwapDetail, Swaps, Uploaded, Watching,
};

use super::swaps::{detail, remembered, swap, verdict};
use super::{Desk, convert, refused, unavailable};
use crate::registry::{Document, Entry, Outcome, Registry};
use crate::runtime::{Candidate, HostError, Refused, Taken, Wish};
use crate::swap::{Compared, Purpose, Stage, SwapReport, Terms};

/// Swaps that are told to watchers.
const TOLD: usize = 12;

impl Desk {
    async fn document(&self) -> Result<(Document, Vec<Arc<SwapReport>>), Refusal> {
        let known = self.host.deciders().await.map_err(|error| unavailable(&error))?;
        Ok((known.document, known.swaps))
    }

    pub(super) async fn list_deciders(&self) -> Result<api::wire::Deciders, Refusal> {
        let (document, swaps) = self.document().await?;
        Ok(listed(&document, &swaps))
    }

    pub(super) async fn upload_decider(&self, component: &[u8]) -> Result<Uploaded, Refusal> {
        let digest = crate::sandbox::digest(component);
        let known = self.document().await?.0.entry(&digest).is_some();
        let kept = self.host.add_decider(component.into(), None).await;
        kept.map_err(|error| match error {
            HostError::Decider(refused) => match *refused {
                crate::registry::RegistryError::Load(error) => {
                    Refusal::Invalid(format!("not a decider ({}): {error}", error.class()))
                }
                other => Refusal::Failed(other.to_string()),
            },
            other => super::refused(&other),
        })?;
        let (document, swaps) = self.document().await?;
        let found = listed(&document, &swaps).deciders.into_iter().find(|entry| entry.decider.digest == digest);
        let entry = found.ok_or_else(|| Refusal::Failed("it was taken in and is gone again".into()))?;
        Ok(Uploaded { schema: "homeostat.decider-upload/v1".into(), known, entry })
    }

    pub(super) async fn one_decider(&self, name: &DeciderName) -> Result<DeciderDetail, Refusal> {
        let (document, swaps) = self.document().await?;
        let entry = name.pick(&listed(&document, &swaps))?.clone();
        let digest = entry.decider.digest.clone();
        let registry = self.host.registry().cloned();
        let registry = registry.ok_or_else(|| Refusal::Failed("this host has no registry of deciders".into()))?;
        let loaded = {
            let digest = digest.clone();
            tokio::task::spawn_blocking(move || registry.load(&digest).map(|loaded| loaded.inspect())).await
        };
        let seen = loaded.map_err(|gone| Refusal::Failed(format!("loading the decider: {gone}")))?;
        let seen = seen.map_err(|error| Refusal::Failed(error.to_string()))?;
        let limits = match serde_json::to_value(&seen.limits) {
            Ok(serde_json::Value::Object(limits)) => {
                limits.into_iter().filter_map(|(name, value)| Some((name, value.as_u64()?))).collect()
            }
            _ => BTreeMap::new(),
        };
        let in_force = document.in_force.iter().filter(|term| term.digest == digest);
        Ok(DeciderDetail {
            schema: "homeostat.decider-detail/v1".into(),
            now_ms: 0,
            entry,
            imports: seen.imports,
            exports: seen.exports,
            rules: seen.rules.into_iter().map(|rule| DeciderRule { id: rule.id, sentence: rule.sentence }).collect(),
            limits,
            in_force: in_force
                .map(|term| InForce { from_ms: term.from_ms, to_ms: term.to_ms, by: term.by.clone() })
                .collect(),
        })
    }

    pub(super) async fn command_deciders(&self, request: DeciderRequest) -> Result<DeciderResult, Refusal> {
        let DeciderRequest { id, expect_revision, command } = request;
        let named = Some(id.clone());
        let asked = |error: HostError| refused(&error);
        let taken: Result<Taken, Refused> = match command {
            DeciderCommand::Swap { decider, terms } => {
                let wish = self.wish(id.clone(), expect_revision, decider, convert::terms(&terms), false).await?;
                self.host.swap(wish).await.map_err(asked)?.outcome
            }
            DeciderCommand::Shadow { decider, replay_ms } => {
                let replay = Some(Duration::from_millis(replay_ms)).filter(|time| !time.is_zero());
                let terms = Terms { replay, ..Terms::default() };
                let wish = self.wish(id.clone(), expect_revision, decider, terms, true).await?;
                self.host.swap(wish).await.map_err(asked)?.outcome
            }
            DeciderCommand::StopShadow {} => self.host.stop_shadow(named).await.map_err(asked)?,
            DeciderCommand::Cancel { swap } => self.host.call_off(named, &swap).await.map_err(asked)?,
            DeciderCommand::Rollback {} => self.host.roll_back(named, expect_revision).await.map_err(asked)?.outcome,
            DeciderCommand::Pin { decider } => {
                let digest = match decider {
                    Some(name) => Some(self.pick(&name).await?),
                    None => None,
                };
                self.host.pin(named, digest).await.map_err(asked)?
            }
            DeciderCommand::Unpin {} => self.host.unpin(named).await.map_err(asked)?,
        };
        let taken = taken.map_err(|why| convert::refusal(&why))?;
        let (document, _) = self.document().await?;
        let Taken { at_ms, revision, text, swap, decider, replayed } = taken;
        let schema = "homeostat.decider-command/v1".into();
        let decider = decider.map(|digest| known(&document, &digest));
        Ok(DeciderResult { schema, id, replayed, at_ms, text, revision, swap, decider })
    }

    async fn wish(
        &self,
        id: String,
        expect_revision: Option<u64>,
        decider: String,
        terms: Terms,
        shadow_only: bool,
    ) -> Result<Wish, Refusal> {
        // Sent again it may mean another one meanwhile: what was said then is found by its id.
        let digest = self.pick(&decider).await?;
        let (id, named) = (Some(id), Some(decider));
        Ok(Wish {
            id,
            expect_revision,
            candidate: Candidate::Digest(digest),
            named,
            terms,
            shadow_only,
            declares: false,
        })
    }

    async fn pick(&self, name: &str) -> Result<String, Refusal> {
        let name: DeciderName = name.parse().map_err(Refusal::Invalid)?;
        Ok(name.pick(&self.list_deciders().await?)?.decider.digest.clone())
    }

    pub(super) async fn list_swaps(&self, limit: usize) -> Result<Swaps, Refusal> {
        let (document, reports) = self.document().await?;
        Ok(Swaps { schema: "homeostat.swaps/v1".into(), now_ms: 0, swaps: swaps(&document, &reports, limit) })
    }

    pub(super) async fn one_swap(&self, id: &str) -> Result<SwapDetail, Refusal> {
        let (document, reports) = self.document().await?;
        if let Some(report) = reports.iter().find(|report| report.id == id) {
            // Who has read how it came out finds the same in the status.
            if report.outcome.is_some() {
                self.tell_deciders(&document, &reports);
            }
            return Ok(detail(report));
        }
        let wished = document.wishes.iter().find(|wished| wished.by.as_deref() == Some(id));
        let wished = wished.ok_or_else(|| Refusal::NotFound(format!("there is no swap {id:?}")))?;
        let swap = remembered(wished, &document);
        Ok(SwapDetail { schema: "homeostat.swap/v1".into(), swap, ..SwapDetail::default() })
    }
}

impl Desk {
    fn tell_deciders(&self, document: &Document, reports: &[Arc<SwapReport>]) {
        self.feed.deciders_are(self.host.now_ms(), status(document), swaps(document, reports, TOLD));
    }
}

/// Tells watchers what is in force and how swaps go on, and counts how they came out, until the host ends.
pub(super) async fn follow(desk: Desk) {
    let mut changes = desk.host.swap_changes();
    let mut events = desk.host.events();
    let mut counted = Counted::default();
    loop {
        let Ok((document, reports)) = desk.document().await else { return };
        counted.count(&desk, &reports);
        desk.tell_deciders(&document, &reports);
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = swapped(&mut events) => {}
        }
        // Not one for each of many at once.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for a step of a swap.
async fn swapped(events: &mut tokio::sync::broadcast::Receiver<crate::runtime::HostEvent>) {
    use tokio::sync::broadcast::error::RecvError;
    loop {
        match events.recv().await {
            Ok(crate::runtime::HostEvent::Swap(_)) | Err(RecvError::Lagged(_)) => return,
            Ok(_) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// What was counted already.
#[derive(Default)]
struct Counted {
    outcomes: BTreeMap<u64, Option<Outcome>>,
    shadows: BTreeMap<u64, Compared>,
}

impl Counted {
    fn count(&mut self, desk: &Desk, reports: &[Arc<SwapReport>]) {
        for report in reports {
            let before = self.outcomes.insert(report.revision, report.outcome).flatten();
            let verdict = report.outcome.and_then(verdict).filter(|_| report.purpose == Purpose::Swap);
            // One that was watched to the end had switched before.
            if let Some(verdict) = verdict.filter(|now| before.and_then(super::swaps::verdict) != Some(*now)) {
                desk.metrics.swap(verdict);
            }
            let shadow = report.stage(Stage::Shadow).and_then(|stage| stage.compared.clone());
            if let Some(now) = shadow {
                let was = self.shadows.insert(report.revision, now.clone()).unwrap_or_default();
                let differing = |of: &Compared| of.passes.saturating_sub(of.equal + of.failed);
                for (pass, now, was) in [
                    (ShadowPass::Equal, now.equal, was.equal),
                    (ShadowPass::Differs, differing(&now), differing(&was)),
                    (ShadowPass::Skipped, now.skipped, was.skipped),
                    (ShadowPass::Failed, now.failed, was.failed),
                ] {
                    (was..now).for_each(|_| desk.metrics.shadow_pass(pass));
                }
            }
        }
        let oldest = reports.last().map_or(u64::MAX, |report| report.revision);
        self.outcomes.retain(|revision, _| *revision >= oldest);
        self.shadows.retain(|revision, _| *revision >= oldest);
    }
}

/// What is known of a digest.
pub(super) fn known(document: &Document, digest: &str) -> DeciderRef {
    match document.entry(digest) {
        Some(entry) => reference(entry),
        None => DeciderRef { digest: digest.into(), ..DeciderRef::default() },
    }
}

pub(super) fn reference(entry: &Entry) -> DeciderRef {
    let Entry { digest, name, version, contract, .. } = entry.clone();
    DeciderRef { digest, name, version, contract }
}

fn listed(document: &Document, swaps: &[Arc<SwapReport>]) -> api::wire::Deciders {
    let shadowing = |digest: &str| {
        swaps
            .iter()
            .any(|swap| swap.purpose == Purpose::Shadow && swap.outcome.is_none() && swap.candidate.digest == digest)
    };
    let built_in = Registry::built_in();
    let one = |entry: &Entry| DeciderEntry {
        decider: reference(entry),
        size_bytes: entry.size_bytes,
        loaded_ms: entry.loaded_at_ms,
        by: entry.by.clone(),
        built_in: entry.digest == built_in,
        active: entry.digest == document.active,
        previous: document.previous.as_deref() == Some(entry.digest.as_str()),
        pinned: document.pinned.as_ref().is_some_and(|pin| pin.digest == entry.digest),
        shadowing: shadowing(&entry.digest),
        quarantine: document.quarantine(&entry.digest).map(|one| Quarantine {
            why: one.why.clone(),
            at_ms: one.at_ms,
            swap: one.swap.clone(),
        }),
    };
    let mut deciders: Vec<DeciderEntry> = document.entries.iter().rev().map(one).collect();
    deciders.sort_by_key(|entry| (!entry.active, !entry.previous));
    api::wire::Deciders { schema: "homeostat.deciders/v1".into(), now_ms: 0, revision: document.revision, deciders }
}

/// The decider in force.
pub(super) fn status(document: &Document) -> DeciderStatus {
    let DeciderRef { digest, name, version, contract } = known(document, &document.active);
    let name_of = |revision: u64| {
        let wished = document.wishes.iter().find(|wished| wished.revision == revision);
        wished.and_then(|wished| wished.by.clone()).unwrap_or_else(|| format!("wish-{revision}"))
    };
    let watching = document.watch.as_ref().map(|watch| Watching {
        swap: name_of(watch.revision),
        until_ms: watch.until_ms,
        failed: watch.limit.map(|limit| limit.to_string()),
    });
    let undone = document.wishes.iter().rev().find(|wished| {
        wished.outcome == Some(Outcome::RolledBack) && wished.ended_ms == Some(document.active_since_ms)
    });
    DeciderStatus {
        digest,
        name,
        version,
        contract,
        failure: None,
        since_ms: Some(document.active_since_ms),
        by: document.active_by.clone(),
        previous: document.previous.as_ref().map(|digest| known(document, digest)),
        pinned: document.pinned.is_some(),
        watching,
        rolled_back: undone.map(|wished| RolledBack {
            from: known(document, &wished.digest),
            why: wished.text.clone(),
            at_ms: document.active_since_ms,
            swap: name_of(wished.revision),
        }),
        quarantined: u32::try_from(document.quarantined.len()).unwrap_or(u32::MAX),
    }
}

/// Of this start and of earlier ones, the newest first.
fn swaps(document: &Document, reports: &[Arc<SwapReport>], limit: usize) -> Vec<Swap> {
    let oldest = reports.last().map_or(u64::MAX, |report| report.revision);
    let earlier = document.wishes.iter().rev().filter(|wished| wished.revision < oldest);
    let earlier = earlier.map(|wished| remembered(wished, document));
    reports.iter().map(|report| swap(report)).chain(earlier).take(limit).collect()
}
