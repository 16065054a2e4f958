//! Deciders that are not there: what a component does is written in it, as `\0asm NAME VERSION DOES…`.
//!
//! `diverges`: destroys more. `waits`: waits longer. `traps`: fails once it is in force. `history`: no history can judge it.
//! `no-decider`: is refused when it comes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use api::control::Refusal;
use api::wire::{
    Accept, DeciderCommand, DeciderDetail, DeciderEntry, DeciderName, DeciderRef, DeciderRequest, DeciderResult,
    DeciderRule, DeciderStatus, Deciders, Direction, Divergence, DivergenceExample, ExampleDecision, InForce,
    Quarantine, Report, RolledBack, StageName, StageState, Step, Swap, SwapDetail, SwapKind, SwapRefusal, SwapStage,
    SwapTerms, SwapVerdict, Swaps, Tally, Uploaded, Watching,
};

use super::now_ms;

pub struct Registry {
    pub deciders: Vec<DeciderEntry>,
    pub in_force: DeciderStatus,
    swaps: Vec<SwapDetail>,
    does: BTreeMap<String, Vec<String>>,
    terms: BTreeMap<String, Vec<InForce>>,
    results: BTreeMap<String, (DeciderCommand, DeciderResult)>,
    revision: u64,
    pub news: bool,
}

impl Registry {
    pub fn new(of: DeciderRef, now: u64) -> Registry {
        let in_force = DeciderStatus {
            digest: of.digest.clone(),
            name: of.name.clone(),
            version: of.version.clone(),
            contract: of.contract.clone(),
            since_ms: Some(now),
            ..DeciderStatus::default()
        };
        let first = InForce { from_ms: now, ..InForce::default() };
        let terms = BTreeMap::from([(of.digest.clone(), vec![first])]);
        let entry =
            DeciderEntry { decider: of, size_bytes: 57_344, built_in: true, active: true, ..DeciderEntry::default() };
        let (swaps, does, results) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Registry { deciders: vec![entry], in_force, swaps, does, terms, results, revision: 0, news: false }
    }

    pub fn upload(&mut self, component: &[u8]) -> Result<Uploaded, Refusal> {
        let text = String::from_utf8_lossy(component);
        let words: Vec<String> = text.split_whitespace().skip(1).map(str::to_owned).collect();
        if words.iter().any(|word| word == "no-decider") {
            return Err(Refusal::Invalid("not a decider (imports): it imports wasi:clocks/wall-clock.now".into()));
        }
        let mut hasher = DefaultHasher::new();
        component.hash(&mut hasher);
        let digest = format!("sha256:{}", format!("{:016x}", hasher.finish()).repeat(4));
        let known = self.deciders.iter().position(|entry| entry.decider.digest == digest);
        let at = known.unwrap_or_else(|| {
            let word = |at: usize, unless: &str| words.get(at).cloned().unwrap_or_else(|| unless.to_owned());
            let (name, version) = (word(0, "nameless"), word(1, "0.0.0"));
            let decider = DeciderRef { digest: digest.clone(), name, version, contract: "1.0.0".into() };
            let (size_bytes, loaded_ms) = (component.len() as u64, now_ms());
            self.deciders.push(DeciderEntry { decider, size_bytes, loaded_ms, ..DeciderEntry::default() });
            self.does.insert(digest, words);
            self.deciders.len() - 1
        });
        let entry = self.deciders[at].clone();
        Ok(Uploaded { schema: "homeostat.decider-upload/v1".into(), known: known.is_some(), entry })
    }

    pub fn list(&self) -> Deciders {
        let mut deciders = self.deciders.clone();
        deciders.sort_by_key(|entry| (!entry.active, !entry.previous, u64::MAX - entry.loaded_ms));
        Deciders { schema: "homeostat.deciders/v1".into(), now_ms: now_ms(), revision: self.revision, deciders }
    }

    pub fn one(&self, name: &DeciderName) -> Result<DeciderDetail, Refusal> {
        let entry = name.pick(&self.list())?.clone();
        let rule = |id: &str, sentence: &str| DeciderRule { id: id.to_owned(), sentence: sentence.to_owned() };
        Ok(DeciderDetail {
            schema: "homeostat.decider-detail/v1".into(),
            now_ms: now_ms(),
            in_force: self.terms.get(&entry.decider.digest).cloned().unwrap_or_default(),
            entry,
            imports: vec!["homeostat:decider/types@1.0.0".into()],
            exports: vec!["homeostat:decider/policy@1.0.0".into()],
            rules: vec![rule("R4", "the attempt failed: it is taken down"), rule("R12", "there is no lease")],
            limits: [("fuel-base", 50_000_000), ("memory-bytes", 256 << 20)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        })
    }

    pub fn swaps(&self, limit: usize) -> Swaps {
        let swaps = self.swaps.iter().rev().take(limit).map(|swap| swap.swap.clone()).collect();
        Swaps { schema: "homeostat.swaps/v1".into(), now_ms: now_ms(), swaps }
    }

    pub fn swap(&self, id: &str) -> Result<SwapDetail, Refusal> {
        let found = self.swaps.iter().find(|swap| swap.swap.id == id);
        let found = found.cloned().ok_or_else(|| Refusal::NotFound(format!("there is no swap {id:?}")))?;
        Ok(SwapDetail { now_ms: now_ms(), ..found })
    }

    pub fn command(&mut self, request: DeciderRequest) -> Result<DeciderResult, Refusal> {
        if let Some((before, result)) = self.results.get(&request.id) {
            if *before != request.command {
                return Err(Refusal::Conflict(format!("the id {:?} was used for another command", request.id)));
            }
            return Ok(DeciderResult { replayed: true, ..result.clone() });
        }
        let now = self.revision;
        if let Some(expected) = request.expect_revision.filter(|expected| *expected != now) {
            return Err(Refusal::Conflict(format!("{now} wishes were made, not {expected}")));
        }
        let (text, swap, decider) = self.carry_out(&request)?;
        let result = DeciderResult {
            schema: "homeostat.decider-command/v1".into(),
            id: request.id.clone(),
            replayed: false,
            at_ms: now_ms(),
            text,
            revision: self.revision,
            swap,
            decider,
        };
        self.news = true;
        self.results.insert(request.id, (request.command, result.clone()));
        Ok(result)
    }

    fn carry_out(&mut self, request: &DeciderRequest) -> Result<(String, Option<String>, Option<DeciderRef>), Refusal> {
        let picked = |name: &str| -> Result<DeciderEntry, Refusal> {
            let name: DeciderName = name.parse().map_err(Refusal::Invalid)?;
            Ok(name.pick(&self.list())?.clone())
        };
        let id = &request.id;
        match &request.command {
            DeciderCommand::Swap { decider, terms } => {
                let entry = picked(decider)?;
                if self.in_force.pinned {
                    return Err(Refusal::Conflict("the active decider is pinned: `homeostat decider unpin`".into()));
                }
                self.end_running(SwapKind::Swap, SwapVerdict::Superseded, "a newer one was asked for");
                self.begin(id, SwapKind::Swap, &entry.decider, terms.clone());
                Ok((format!("swap to {}", entry.decider.name), Some(id.clone()), Some(entry.decider)))
            }
            DeciderCommand::Shadow { decider, replay_ms } => {
                let entry = picked(decider)?;
                self.end_running(SwapKind::Shadow, SwapVerdict::Superseded, "a newer one was asked for");
                let terms = SwapTerms { replay_ms: *replay_ms, watch_ms: 0, ..SwapTerms::default() };
                self.begin(id, SwapKind::Shadow, &entry.decider, terms);
                Ok((format!("shadow of {}", entry.decider.name), Some(id.clone()), Some(entry.decider)))
            }
            DeciderCommand::StopShadow {} => {
                if !self.end_running(SwapKind::Shadow, SwapVerdict::Cancelled, "stopped by a person") {
                    return Err(Refusal::Conflict("nothing runs in shadow".into()));
                }
                Ok(("the shadow is stopped".into(), None, None))
            }
            DeciderCommand::Cancel { swap } => {
                let found = self.swap(swap)?;
                if found.swap.verdict.is_some() {
                    return Err(Refusal::Conflict(format!("the swap {swap} has ended: {}", found.swap.text)));
                }
                self.end_running(found.swap.kind, SwapVerdict::Cancelled, "cancelled by a person");
                Ok((format!("the swap {swap} is cancelled"), None, None))
            }
            DeciderCommand::Rollback {} => {
                let entry = picked("previous")?;
                self.put_in_force(&entry.decider, Some(id));
                self.revision += 1;
                let text = format!("{} {} is in force again", entry.decider.name, entry.decider.version);
                Ok((text, None, Some(entry.decider)))
            }
            DeciderCommand::Pin { decider } => {
                let entry = picked(decider.as_deref().unwrap_or("active"))?;
                self.deciders.iter_mut().filter(|known| known.decider == entry.decider).for_each(|known| {
                    known.pinned = true;
                    known.quarantine = None;
                });
                self.in_force.pinned |= entry.active;
                Ok((format!("{} is pinned", entry.decider.name), None, Some(entry.decider)))
            }
            DeciderCommand::Unpin {} => {
                self.deciders.iter_mut().for_each(|known| known.pinned = false);
                self.in_force.pinned = false;
                Ok(("nothing is pinned".into(), None, None))
            }
        }
    }

    fn begin(&mut self, id: &str, kind: SwapKind, candidate: &DeciderRef, terms: SwapTerms) {
        self.revision += 1;
        let lasting = |stage| match stage {
            StageName::Check | StageName::Switch => 1,
            StageName::Replay => terms.replay_ms,
            StageName::Shadow => terms.shadow_ms,
            StageName::Watch => terms.watch_ms,
        };
        let of = match kind {
            SwapKind::Shadow => &[StageName::Check, StageName::Replay, StageName::Shadow][..],
            _ => &[StageName::Check, StageName::Replay, StageName::Shadow, StageName::Switch, StageName::Watch],
        };
        let stages = of.iter().map(|stage| {
            let state = if lasting(*stage) == 0 { StageState::Skipped } else { StageState::Waiting };
            SwapStage { stage: *stage, state, ..SwapStage::default() }
        });
        let swap = Swap {
            id: id.to_owned(),
            kind,
            revision: self.revision,
            decider: candidate.clone(),
            from: self.active(),
            asked_ms: now_ms(),
            stages: stages.collect(),
            ..Swap::default()
        };
        self.swaps.push(SwapDetail { schema: "homeostat.swap/v1".into(), swap, terms, ..SwapDetail::default() });
        self.mark_shadowing();
    }

    fn active(&self) -> DeciderRef {
        let found = self.deciders.iter().find(|entry| entry.active);
        found.map(|entry| entry.decider.clone()).unwrap_or_default()
    }

    fn mark_shadowing(&mut self) {
        for entry in &mut self.deciders {
            entry.shadowing = self.swaps.iter().any(|swap| {
                swap.swap.kind == SwapKind::Shadow && swap.swap.ended_ms.is_none() && swap.swap.decider == entry.decider
            });
        }
    }

    fn end_running(&mut self, kind: SwapKind, verdict: SwapVerdict, text: &str) -> bool {
        let running = |swap: &&mut SwapDetail| swap.swap.kind == kind && swap.swap.verdict.is_none();
        let Some(swap) = self.swaps.iter_mut().find(running) else { return false };
        end(&mut swap.swap, StageState::Cancelled, verdict, text);
        self.mark_shadowing();
        true
    }

    fn put_in_force(&mut self, candidate: &DeciderRef, by: Option<&str>) {
        let (now, before) = (now_ms(), self.active());
        for entry in &mut self.deciders {
            entry.active = entry.decider == *candidate;
            entry.previous = entry.decider == before && before != *candidate;
        }
        if let Some(last) = self.terms.get_mut(&before.digest).and_then(|terms| terms.last_mut()) {
            last.to_ms = Some(now);
        }
        let term = InForce { from_ms: now, to_ms: None, by: by.map(str::to_owned) };
        self.terms.entry(candidate.digest.clone()).or_default().push(term);
        let DeciderRef { digest, name, version, contract } = candidate.clone();
        self.in_force = DeciderStatus {
            digest,
            name,
            version,
            contract,
            since_ms: Some(now),
            by: by.map(str::to_owned),
            previous: Some(before),
            quarantined: self.in_force.quarantined,
            ..DeciderStatus::default()
        };
    }

    /// Each swap goes on by half a stage.
    pub fn step(&mut self) {
        for at in 0..self.swaps.len() {
            if self.swaps[at].swap.ended_ms.is_none() {
                self.go_on(at);
                self.news = true;
            }
        }
    }

    fn go_on(&mut self, at: usize) {
        let now = now_ms();
        let detail = &mut self.swaps[at];
        let (is_shadow, terms) = (detail.swap.kind == SwapKind::Shadow, detail.terms.clone());
        let does = self.does.get(&detail.swap.decider.digest).cloned().unwrap_or_default();
        let does = |what: &str| does.iter().any(|word| word == what);
        let running = detail.swap.stages.iter().position(|stage| stage.state == StageState::Running);
        let Some(stage) = running else {
            let next = detail.swap.stages.iter_mut().find(|stage| stage.state == StageState::Waiting);
            let Some(next) = next else {
                detail.swap.ended_ms = Some(now);
                return;
            };
            (next.state, next.started_ms) = (StageState::Running, Some(now));
            next.until_ms = match next.stage {
                StageName::Shadow if !is_shadow => Some(now + terms.shadow_ms),
                StageName::Watch => Some(now + terms.watch_ms),
                _ => None,
            };
            return;
        };
        let name = detail.swap.stages[stage].stage;
        let mut text = String::new();
        match name {
            StageName::Check => {
                let of = &detail.swap.decider;
                text = format!("{} {}, contract {}, imports nothing", of.name, of.version, of.contract);
            }
            StageName::Replay if does("history") && !accepts(&terms, &Accept::History) => {
                text = "the active decider does not reproduce its own history: pass 7 has another plan".into();
                refuse(detail, stage, "history", &text, vec![Accept::History]);
                return;
            }
            StageName::Replay | StageName::Shadow => {
                let found = compared(name, &does, &terms, detail.swap.stages[stage].tally);
                let victims = found.divergences.iter().find(|divergence| divergence.refused).map(|d| d.decisions);
                detail.swap.stages[stage].tally = Some(found.tally);
                detail.reports.retain(|report| report.stage != name);
                detail.reports.push(found);
                if is_shadow && name == StageName::Shadow {
                    return;
                }
                if let Some(decisions) = victims.filter(|_| !is_shadow) {
                    text = format!("it would destroy {decisions} times where the active one does not");
                    let accept = vec![Accept::Rules("R11".into(), "B1".into())];
                    refuse(detail, stage, "divergence", &text, accept);
                    return;
                }
            }
            StageName::Switch => {
                text = "between pass 41 and pass 42; no pass was lost".into();
                detail.swap.verdict = Some(SwapVerdict::Switched);
                detail.swap.text = "in force".into();
                let (candidate, id) = (detail.swap.decider.clone(), detail.swap.id.clone());
                self.put_in_force(&candidate, Some(&id));
                if terms.watch_ms > 0 {
                    let failed = terms.watch_failed.map(|limit| limit.to_string());
                    let until_ms = now + terms.watch_ms;
                    self.in_force.watching = Some(Watching { swap: id, until_ms, failed });
                }
            }
            StageName::Watch if does("traps") => {
                let why = "out-of-fuel: all 50000000 units of fuel for 11 nodes are used up".to_owned();
                end(&mut detail.swap, StageState::Failed, SwapVerdict::RolledBack, &why);
                let (from, to, id) = (detail.swap.decider.clone(), detail.swap.from.clone(), detail.swap.id.clone());
                self.put_in_force(&to, None);
                let quarantine = Quarantine { why: why.clone(), at_ms: now, swap: Some(id.clone()) };
                let is_it = |entry: &&mut DeciderEntry| entry.decider == from;
                self.deciders.iter_mut().filter(is_it).for_each(|entry| entry.quarantine = Some(quarantine.clone()));
                self.in_force.rolled_back = Some(RolledBack { from, why, at_ms: now, swap: id });
                self.in_force.quarantined += 1;
                return;
            }
            StageName::Watch if detail.swap.stages[stage].until_ms.is_some_and(|until| now < until) => return,
            StageName::Watch => {
                text = "nothing failed".into();
                self.in_force.watching = None;
            }
        }
        let stage = &mut self.swaps[at].swap.stages[stage];
        (stage.state, stage.ended_ms, stage.text) = (StageState::Passed, Some(now), text);
    }
}

fn accepts(terms: &SwapTerms, what: &Accept) -> bool {
    terms.accept.contains(what) || terms.accept.contains(&Accept::All)
}

fn end(swap: &mut Swap, state: StageState, verdict: SwapVerdict, text: &str) {
    let now = now_ms();
    for stage in &mut swap.stages {
        match stage.state {
            StageState::Running => (stage.state, stage.ended_ms, stage.text) = (state, Some(now), text.to_owned()),
            StageState::Waiting => stage.state = StageState::Cancelled,
            _ => {}
        }
    }
    (swap.verdict, swap.text, swap.ended_ms) = (Some(verdict), text.to_owned(), Some(now));
}

fn refuse(detail: &mut SwapDetail, stage: usize, reason: &str, text: &str, accept: Vec<Accept>) {
    let stage = detail.swap.stages[stage].stage;
    end(&mut detail.swap, StageState::Refused, SwapVerdict::Refused, text);
    detail.refusal = Some(SwapRefusal { stage, reason: reason.into(), text: text.into(), accept });
}

fn compared(stage: StageName, does: &dyn Fn(&str) -> bool, terms: &SwapTerms, before: Option<Tally>) -> Report {
    let passes = before.map_or(0, |tally| tally.passes) + 40;
    let mut divergences = Vec::new();
    let decision = |rule: &str, verb: &str, reason: &str| ExampleDecision {
        step: Step { rule: rule.into(), verb: verb.into() },
        reason: reason.into(),
        ..ExampleDecision::default()
    };
    let mut differs = |direction, from: (&str, &str), to: (&str, &str), accept: Option<Accept>| {
        let step = |of: (&str, &str)| Step { rule: of.0.into(), verb: of.1.into() };
        let is_accepted = accept
            .as_ref()
            .is_some_and(|accept| accepts(terms, accept) || accepts(terms, &Accept::Rules(from.0.into(), to.0.into())));
        divergences.push(Divergence {
            active: step(from),
            candidate: step(to),
            direction,
            decisions: 3,
            nodes: 2,
            refused: accept.is_some() && !is_accepted,
            accepted: is_accepted,
            example: Some(DivergenceExample {
                at_ms: now_ms(),
                seq: Some(17),
                node: Some("web-1".into()),
                attempt: Some(4),
                active: decision(from.0, from.1, "it has converged: nothing to do"),
                candidate: decision(to.0, to.1, "it is older than the policy allows"),
                facts: [("stage", "dormant"), ("failures", "0")].map(|(n, v)| (n.to_owned(), v.to_owned())).into(),
            }),
        });
    };
    if does("diverges") {
        differs(Direction::MoreDestroys, ("R11", "hold"), ("B1", "begin-delete"), Some(Accept::Destroys));
    }
    if does("waits") || does("diverges") {
        differs(Direction::OtherWait, ("R10", "hold"), ("R10", "hold"), None);
    }
    let differing = divergences.len() as u64;
    let tally = Tally {
        passes,
        equal: passes - differing,
        differing,
        skipped: u64::from(stage == StageName::Shadow),
        decisions: passes * 11,
        differing_decisions: 3 * differing,
        ..Tally::default()
    };
    Report { stage, tally, from_ms: Some(now_ms()), to_ms: Some(now_ms()), divergences, more: 0 }
}
