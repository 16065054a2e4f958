//! One swap or shadow, stage by stage.

use std::sync::Arc;
use std::time::Duration;

use ::journal::{Divergence, SwapStep};
use engine::id::Millis;
use tokio::sync::oneshot;

use super::jobs::{Job, Stop};
use super::report::{
    Compared, Purpose, Reason, Refusal, Stage, StageReport, StageStatus, SwapReport, Terms, objection,
};
use crate::registry::{Document, Entry, Outcome, Ready};
use crate::runtime::{Candidate, HostError, Line, NotSwitched, Switch, Watched};

/// A swap or a shadow that was taken. Clones watch the same one.
#[derive(Clone, Debug)]
pub struct SwapJob {
    job: Arc<Job>,
}

impl SwapJob {
    pub(crate) fn new(job: Arc<Job>) -> Self {
        SwapJob { job }
    }

    /// As it stands.
    pub fn report(&self) -> Arc<SwapReport> {
        self.job.report.borrow().clone()
    }

    /// Waits until it has an outcome: it is in force, or will not be.
    pub async fn decided(&self) -> Arc<SwapReport> {
        self.until(|report| report.outcome.is_some()).await
    }

    /// Waits until nothing more comes: after the watch, where there is one.
    pub async fn ended(&self) -> Arc<SwapReport> {
        self.until(SwapReport::is_over).await
    }

    /// The reports as they change.
    pub fn watch(&self) -> tokio::sync::watch::Receiver<Arc<SwapReport>> {
        self.job.report.subscribe()
    }

    async fn until(&self, holds: impl Fn(&SwapReport) -> bool) -> Arc<SwapReport> {
        let mut reports = self.job.report.subscribe();
        // The sender lives as long as the job.
        let found = reports.wait_for(|report| holds(report)).await.map(|report| report.clone());
        found.unwrap_or_else(|_| self.report())
    }
}

/// What a task is about.
pub(crate) struct Task {
    pub line: Line,
    pub candidate: Candidate,
    pub terms: Terms,
    pub revision: u64,
    pub id: String,
    pub digest: String,
    pub purpose: Purpose,
}

/// Why it ends before it has switched.
pub(super) enum End {
    Refused(Refusal),
    Failed(Stage, String),
    Stopped(Stop),
    /// There is nobody left to switch.
    Host(HostError),
}

impl From<HostError> for End {
    fn from(error: HostError) -> Self {
        End::Host(error)
    }
}

impl Task {
    /// Starts it. Must be called inside a tokio runtime.
    pub fn spawn(self, document: &Document, asked_ms: Millis) -> Arc<Job> {
        let entry = |digest: &str| document.entry(digest).cloned().unwrap_or_else(|| unknown(digest));
        let shadow_only = self.purpose == Purpose::Shadow;
        let mut stages = vec![(Stage::Check, true), (Stage::Replay, self.terms.replay.is_some())];
        stages.push((Stage::Shadow, shadow_only || self.terms.shadow.is_some()));
        if !shadow_only {
            stages.extend([(Stage::Switch, true), (Stage::Watch, self.terms.watch.is_some())]);
        }
        let stage = |(stage, wanted): (Stage, bool)| StageReport {
            stage,
            status: if wanted { StageStatus::Waiting } else { StageStatus::Skipped },
            began_ms: None,
            ended_ms: None,
            until_ms: None,
            text: String::new(),
            compared: None,
        };
        let report = SwapReport {
            revision: self.revision,
            id: self.id.clone(),
            terms: self.terms.clone(),
            purpose: self.purpose,
            candidate: entry(&self.digest),
            active: entry(&document.active),
            asked_ms,
            ended_ms: None,
            stages: stages.into_iter().map(stage).collect(),
            outcome: None,
            text: String::new(),
            refusal: None,
            switch_gap_us: None,
        };
        let job = self.line.shared.jobs.begin(report);
        tokio::spawn(Run { task: self, job: job.clone() }.run());
        job
    }
}

fn unknown(digest: &str) -> Entry {
    let empty = String::new;
    Entry {
        digest: digest.into(),
        name: empty(),
        version: empty(),
        contract: empty(),
        size_bytes: 0,
        loaded_at_ms: 0,
        by: None,
        rules: Vec::new(),
    }
}

pub(super) struct Run {
    pub(super) task: Task,
    job: Arc<Job>,
}

impl Run {
    async fn run(self) {
        let mut stop = self.job.stop.subscribe();
        let stopped = async {
            match stop.wait_for(Option::is_some).await.map(|stop| *stop) {
                Ok(Some(why)) => why,
                _ => std::future::pending().await,
            }
        };
        let judged = tokio::select! {
            biased;
            why = stopped => Err(End::Stopped(why)),
            judged = self.judge() => judged,
        };
        let ended = match judged {
            Ok(Some(ready)) => self.switch(ready).await,
            Ok(None) => self.end(Outcome::Shadowed, "it was asked for as long as was wished").await,
            Err(end) => self.give_up(end).await,
        };
        if ended.is_err() {
            self.update(|report| {
                report.outcome.get_or_insert(Outcome::Interrupted);
                report.text = "the host ended before it did".into();
            });
        }
        // What is not dropped now is dropped later.
        let _ = self.task.line.collect().await;
    }

    /// All that can refuse it; `None` when there is nothing to switch to.
    async fn judge(&self) -> Result<Option<Ready>, End> {
        let ready = self.check().await?;
        self.replay(&ready).await?;
        self.shadow(&ready).await?;
        Ok((self.task.purpose != Purpose::Shadow).then_some(ready))
    }

    async fn switch(&self, ready: Ready) -> Result<(), HostError> {
        if let Err(ended) = self.begins(Stage::Switch, None).await {
            return self.give_up(ended).await;
        }
        let Terms { watch, watch_failed, .. } = self.task.terms;
        let (watched, outcome) = oneshot::channel();
        let by = Some(self.task.id.clone());
        let text = match self.task.purpose {
            Purpose::Rollback => "a rollback".to_owned(),
            _ => "nothing spoke against it that was not accepted".to_owned(),
        };
        let switch = Switch {
            revision: self.task.revision,
            ready,
            watch_ms: watch.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).filter(|ms| *ms > 0),
            limit: watch_failed,
            by,
            text,
            watched: Some(watched),
        };
        let switched = match self.task.line.switch(switch).await? {
            Ok(switched) => switched,
            Err(NotSwitched::Ended) => return Err(HostError::Ended("it is being shut down".into())),
            Err(NotSwitched::Superseded(newer)) => return self.give_up(End::Stopped(Stop::Superseded(newer))).await,
            Err(NotSwitched::Pinned(pinned)) => {
                let text = format!("{} is pinned", step::text::short(&pinned));
                let refusal = Refusal { stage: Stage::Switch, reason: Reason::Pinned, text, accept: Vec::new() };
                return self.give_up(End::Refused(refusal)).await;
            }
        };
        self.update(|report| {
            if let Some(stage) = report.stage_mut(Stage::Switch) {
                (stage.status, stage.ended_ms) = (StageStatus::Passed, Some(switched.at_ms));
                let gap_ms = Duration::from_micros(switched.gap_us).as_secs_f64() * 1_000.0;
                stage.text = format!("in force; no pass could start for {gap_ms:.1} ms");
            }
            report.switch_gap_us = Some(switched.gap_us);
            report.text = "in force".into();
            match switched.until_ms {
                None => (report.outcome, report.ended_ms) = (Some(Outcome::Switched), Some(switched.at_ms)),
                Some(until_ms) => {
                    report.outcome = Some(Outcome::Watching).inspect(|_| {
                        report.text = format!("in force, watched until {}", step::text::time_of_day(until_ms));
                    })
                }
            }
            if let Some(stage) = report.stage_mut(Stage::Watch)
                && stage.status == StageStatus::Waiting
            {
                match switched.until_ms {
                    Some(until_ms) => {
                        (stage.status, stage.began_ms) = (StageStatus::Running, Some(switched.at_ms));
                        stage.until_ms = Some(until_ms);
                    }
                    None => stage.status = StageStatus::Skipped,
                }
            }
        });
        if switched.until_ms.is_some() {
            let outcome = outcome.await.map_err(|_| HostError::Ended("it ended while it watched".into()))?;
            self.watched(outcome);
        }
        Ok(())
    }

    fn watched(&self, how: Watched) {
        let (status, outcome, at_ms, text) = match how {
            Watched::Kept(at_ms) => (
                StageStatus::Passed,
                Outcome::Switched,
                at_ms,
                "watched to the end; nothing spoke against it".to_owned(),
            ),
            Watched::Replaced(at_ms) => {
                (StageStatus::Cancelled, Outcome::Switched, at_ms, "another swap took its place".to_owned())
            }
            Watched::RolledBack(at_ms, why) => (StageStatus::Failed, Outcome::RolledBack, at_ms, why),
        };
        self.update(|report| {
            if let Some(stage) = report.stage_mut(Stage::Watch) {
                (stage.status, stage.ended_ms, stage.text) = (status, Some(at_ms), text.clone());
            }
            (report.outcome, report.ended_ms, report.text) = (Some(outcome), Some(at_ms), text);
        });
    }

    /// What was compared in a stage, and whether that refuses it.
    pub(super) async fn found(&self, stage: Stage, step: SwapStep, text: &str, compared: Compared) -> Result<(), End> {
        let refusal =
            objection(stage, &compared, &self.task.terms.accept).filter(|_| self.task.purpose == Purpose::Swap);
        match refusal {
            None => self.passes(stage, step, text, Some(compared)).await,
            Some(refusal) => {
                self.record(step, text, compared.divergences.clone()).await?;
                self.update(|report| {
                    if let Some(stage) = report.stage_mut(stage) {
                        (stage.text, stage.compared) = (text.into(), Some(compared));
                    }
                });
                Err(End::Refused(refusal))
            }
        }
    }

    pub(super) async fn begins(&self, stage: Stage, time: Option<Duration>) -> Result<Millis, End> {
        let now = self.task.line.within(|runtime| Ok(runtime.now_ms())).await?;
        self.update(|report| {
            report.text = format!("{} goes on", stage.label());
            if let Some(stage) = report.stage_mut(stage) {
                (stage.status, stage.began_ms) = (StageStatus::Running, Some(now));
                stage.until_ms =
                    time.map(|time| now.saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)));
            }
        });
        Ok(now)
    }

    pub(super) async fn passes(
        &self,
        stage: Stage,
        step: SwapStep,
        text: &str,
        compared: Option<Compared>,
    ) -> Result<(), End> {
        let divergences = compared.as_ref().map(|compared| compared.divergences.clone()).unwrap_or_default();
        let now = self.record(step, text, divergences).await?;
        self.update(|report| {
            if let Some(stage) = report.stage_mut(stage) {
                (stage.status, stage.ended_ms, stage.text) = (StageStatus::Passed, Some(now), text.into());
                stage.compared = compared;
            }
        });
        Ok(())
    }

    async fn record(&self, step: SwapStep, text: &str, divergences: Vec<Divergence>) -> Result<Millis, HostError> {
        let (revision, digest, text) = (self.task.revision, self.task.digest.clone(), text.to_owned());
        let record = self.task.line.within(move |runtime| {
            runtime.record_stage(revision, step, &digest, &text, divergences)?;
            Ok(runtime.now_ms())
        });
        record.await
    }

    async fn give_up(&self, end: End) -> Result<(), HostError> {
        let (outcome, text) = match &end {
            End::Host(HostError::Ended(why)) => return Err(HostError::Ended(why.clone())),
            End::Host(error) => (Outcome::Failed, error.to_string()),
            End::Failed(_, why) => (Outcome::Failed, why.clone()),
            End::Refused(refusal) => (Outcome::Refused, format!("{}: {}", refusal.stage.label(), refusal.text)),
            End::Stopped(Stop::Superseded(newer)) => (Outcome::Superseded, self.superseded_by(*newer).await?),
            // That is how a shadow ends.
            End::Stopped(Stop::Cancelled) if self.task.purpose == Purpose::Shadow => {
                (Outcome::Shadowed, "it was stopped".to_owned())
            }
            End::Stopped(Stop::Cancelled) => (Outcome::Cancelled, "it was called off".to_owned()),
        };
        let (stage, status) = match &end {
            End::Refused(refusal) => (Some(refusal.stage), StageStatus::Refused),
            End::Failed(stage, _) => (Some(*stage), StageStatus::Failed),
            _ => (None, StageStatus::Cancelled),
        };
        let refusal = if let End::Refused(refusal) = end { Some(refusal) } else { None };
        self.update(|report| {
            for one in &mut report.stages {
                if Some(one.stage) == stage {
                    one.status = status;
                    if one.text.is_empty() {
                        one.text.clone_from(&text);
                    }
                } else if one.status == StageStatus::Running || one.status == StageStatus::Waiting {
                    one.status = StageStatus::Cancelled;
                }
            }
            report.refusal = refusal;
        });
        self.end(outcome, &text).await
    }

    /// The wish that took its place, by the name that a person knows.
    async fn superseded_by(&self, newer: u64) -> Result<String, HostError> {
        let wished = self.task.line.within(move |runtime| {
            let wishes = runtime.swaps.document.wishes.iter();
            Ok(wishes.rev().find(|wished| wished.revision == newer).cloned())
        });
        let by = wished.await?.and_then(|wished| wished.by).map(|by| format!(" ({by})")).unwrap_or_default();
        Ok(format!("superseded by revision {newer}{by}"))
    }

    async fn end(&self, outcome: Outcome, text: &str) -> Result<(), HostError> {
        let (revision, words) = (self.task.revision, text.to_owned());
        let now = self.task.line.within(move |runtime| runtime.end_wish(revision, outcome, &words)).await?;
        self.update(|report| {
            for stage in report.stages.iter_mut().filter(|stage| stage.began_ms.is_some()) {
                stage.ended_ms.get_or_insert(now);
            }
            (report.outcome, report.ended_ms, report.text) = (Some(outcome), Some(now), text.into());
        });
        Ok(())
    }

    pub(super) fn update(&self, update: impl FnOnce(&mut SwapReport)) {
        self.job.report.send_modify(|report| update(Arc::make_mut(report)));
        self.task.line.shared.jobs.tell();
    }
}
