//! The stages that can refuse a candidate before it has decided anything: check, replay, shadow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::journal::SwapStep;
use engine::io::DeciderIdentity;
use step::text::counted;
use tokio::time::{Instant, timeout};

use super::job::{End, Run};
use super::jobs::Stop;
use super::replay::{Case, Judged, NoJudge, judge};
use super::report::{Accept, Compared, Purpose, Reason, Refusal, Stage};
use super::shadow::{self, ShadowTally};
use crate::registry::{Ready, RegistryError};
use crate::runtime::{Candidate, HostError};
use crate::sandbox::{Contract, LoadError};

/// How long a shadow waits, over its time, until something was compared.
const FIRST_PASS: Duration = Duration::from_secs(10);
/// How often what a shadow found is shown.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

impl Run {
    pub(super) async fn check(&self) -> Result<Ready, End> {
        self.begins(Stage::Check, None).await?;
        if self.task.purpose == Purpose::Swap {
            self.admits().await?;
        }
        let loaded = match &self.task.candidate {
            Candidate::Digest(digest) => self.task.line.ready(digest.clone()).await,
            Candidate::Component(bytes) => self.task.line.add(bytes.clone(), Some(self.task.id.clone())).await,
            Candidate::Ready(decider) => Ok(Ready::of(decider.clone())),
        };
        let ready = loaded.map_err(|error| match error {
            HostError::Decider(error) => match *error {
                RegistryError::Load(error) => {
                    let reason =
                        if matches!(error, LoadError::Contract { .. }) { Reason::Contract } else { Reason::Component };
                    let text = format!("not a decider ({}): {error}", error.class());
                    End::Refused(Refusal { stage: Stage::Check, reason, text, accept: Vec::new() })
                }
                other => End::Failed(Stage::Check, other.to_string()),
            },
            ended @ HostError::Ended(_) => End::Host(ended),
            other => End::Failed(Stage::Check, other.to_string()),
        })?;
        let entry = ready.entry.clone();
        let text = format!("{}, contract {}, {}", entry.title(), entry.contract, counted(entry.size_bytes, "byte"));
        self.update(|report| report.candidate = entry);
        self.passes(Stage::Check, SwapStep::Checked, &text, None).await?;
        Ok(ready)
    }

    /// Whether it may come into force at all.
    async fn admits(&self) -> Result<(), End> {
        let document = self.task.line.within(|runtime| Ok(runtime.swaps.document.clone())).await?;
        let refused = |reason, text, accept| Refusal { stage: Stage::Check, reason, text, accept };
        if let Some(pin) = document.pinned.as_ref().filter(|pin| pin.digest != self.task.digest) {
            let text = format!("{} is pinned: unpin it first", step::text::short(&pin.digest));
            return Err(End::Refused(refused(Reason::Pinned, text, Vec::new())));
        }
        match document.quarantine(&self.task.digest) {
            Some(quarantined) if !self.task.terms.accept.contains(&Accept::Quarantine) => {
                let text = format!("it is quarantined: {}", quarantined.why);
                Err(End::Refused(refused(Reason::Quarantined, text, vec![Accept::Quarantine])))
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn replay(&self, ready: &Ready) -> Result<(), End> {
        let Some(window) = self.task.terms.replay else { return Ok(()) };
        let began_ms = self.begins(Stage::Replay, None).await?;
        let active = self.task.line.within(|runtime| Ok(runtime.parts.decider.clone())).await?;
        let contracts = contracts(&active.identity(), &ready.decider.identity());
        // Dropped with this future, so that nobody goes on reading for nobody.
        let stop = Off(Arc::default());
        let case = Case {
            past: self.task.line.past(),
            active: active.beside().unwrap_or(active),
            candidate: ready.decider.beside().unwrap_or_else(|| ready.decider.clone()),
            since_ms: began_ms.saturating_sub(u64::try_from(window.as_millis()).unwrap_or(u64::MAX)),
            stop: stop.0.clone(),
            runtime: tokio::runtime::Handle::current(),
        };
        let judged = tokio::task::spawn_blocking(move || judge(&case)).await;
        let judged = judged.unwrap_or_else(|gone| Err(NoJudge(format!("the replay ended without a result: {gone}"))));
        let Judged { compared, reproduced, note } = match judged {
            Ok(judged) => judged,
            Err(NoJudge(why)) => return self.no_judge(&why).await,
        };
        let mut text = summary(&compared);
        text.push_str(&format!("{contracts}; the decider in force reproduced {reproduced} of its own"));
        if !note.is_empty() {
            text = format!("{text}; {note}");
        }
        self.found(Stage::Replay, SwapStep::Replayed, &text, compared).await
    }

    /// History cannot judge anybody.
    async fn no_judge(&self, why: &str) -> Result<(), End> {
        let text = format!("history cannot judge it: {why}");
        let accepted = [Accept::History, Accept::All];
        if self.task.terms.accept.iter().any(|accept| accepted.contains(accept)) {
            return self.passes(Stage::Replay, SwapStep::Replayed, &format!("{text}; accepted"), None).await;
        }
        let accept = vec![Accept::History];
        Err(End::Refused(Refusal { stage: Stage::Replay, reason: Reason::History, text, accept }))
    }

    pub(super) async fn shadow(&self, ready: &Ready) -> Result<(), End> {
        let until = match (self.task.purpose, self.task.terms.shadow) {
            (_, Some(time)) => Some(time),
            (Purpose::Shadow, None) => None,
            (_, None) => return Ok(()),
        };
        let began_ms = self.begins(Stage::Shadow, until).await?;
        // On a thread of its own: what it is asked last must not delay the first pass that it decides.
        let beside = ready.decider.beside().unwrap_or_else(|| ready.decider.clone());
        let (feed, mut tally) = shadow::start(self.task.revision, beside);
        if !self.task.line.within(|runtime| runtime.begin_shadow(feed)).await? {
            let newest = self.task.line.within(|runtime| Ok(runtime.swaps.document.revision)).await?;
            return Err(End::Stopped(Stop::Superseded(newest)));
        }
        let end = until.map(|time| Instant::now() + time);
        loop {
            let next = Instant::now() + SHOWN_EVERY;
            if end.is_some_and(|end| end <= next) {
                break;
            }
            tokio::time::sleep_until(next).await;
            let compared = self.named(tally.compared()).await?;
            self.update(|report| {
                if let Some(stage) = report.stage_mut(Stage::Shadow) {
                    stage.text = summary(&compared);
                    stage.compared = Some(compared);
                }
            });
        }
        if let Some(end) = end {
            tokio::time::sleep_until(end).await;
        }
        // A fleet without a shape has no passes.
        let seen = timeout(FIRST_PASS, tally.first()).await.is_ok();
        let revision = self.task.revision;
        self.task
            .line
            .within(move |runtime| {
                runtime.swaps.call_off(revision);
                Ok(())
            })
            .await?;
        let compared = self.settled(&tally).await?;
        let active = self.task.line.within(|runtime| Ok(runtime.swaps.active.clone())).await?;
        let mut text = format!("{}{}", summary(&compared), contracts(&active, &ready.decider.identity()));
        if !seen {
            text = format!("there was no pass since {}", step::text::time_of_day(began_ms));
        }
        self.found(Stage::Shadow, SwapStep::Shadowed, &text, compared).await
    }

    async fn settled(&self, tally: &ShadowTally) -> Result<Compared, HostError> {
        self.named(tally.compared()).await
    }

    /// With the names of the slots.
    async fn named(&self, mut compared: Compared) -> Result<Compared, HostError> {
        if compared.divergences.is_empty() {
            return Ok(compared);
        }
        self.task
            .line
            .within(move |runtime| {
                let slots = &runtime.parts.driver.state().slots;
                for one in &mut compared.divergences {
                    let slot = one.first.node.and_then(|node| slots.get(node as usize));
                    one.first.name = slot.map(|slot| slot.name.clone());
                }
                Ok(compared)
            })
            .await
    }
}

/// Says stop when it is dropped.
struct Off(Arc<AtomicBool>);

impl Drop for Off {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says so where the two are shown different snapshots.
fn contracts(active: &DeciderIdentity, candidate: &DeciderIdentity) -> String {
    let short = |identity: &DeciderIdentity| {
        Contract::of(&identity.contract).map_or_else(|| identity.contract.clone(), |known| known.to_string())
    };
    match active.sees_rollouts() == candidate.sees_rollouts() {
        true => String::new(),
        false => format!("; each asked in its own contract, {} and {}", short(active), short(candidate)),
    }
}

/// What was compared, in a line.
fn summary(compared: &Compared) -> String {
    let passes = if compared.passes == 1 { "1 pass".into() } else { format!("{} passes", compared.passes) };
    let mut text = match compared.passes - compared.equal {
        0 => format!("{passes} compared, all equal"),
        differ => format!("{passes} compared, {differ} differ"),
    };
    for (count, what) in [
        (compared.failed, "failed by it"),
        (compared.skipped, "skipped because it was busy"),
        (compared.not_judged, "failed by both"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}
