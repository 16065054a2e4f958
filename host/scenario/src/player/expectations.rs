//! Expectations, held against what was decided and where the nodes stand.

use decider::Verb;
use engine::invariants::Violation;

use super::{Player, Stop};
use crate::diff::DiffLine;
use crate::expect::{Demand, Expectation, Standing, What, slot_text, standing_text, stands};
use crate::log::Seen;
use crate::words::ms;

/// So many decisions are shown.
const SHOWN: usize = 12;

impl Player<'_> {
    pub(super) fn hold_to(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        if self.picture.is_some() {
            return self.hold_snapshot_to(expectation);
        }
        match expectation {
            Expectation::Node { who, what } => match what {
                What::Decision(demand) => self.expect_decision(who, demand),
                What::Nothing => self.expect_nothing(who),
                What::Stands { all, not } => self.expect_standing(who, all, *not),
            },
            Expectation::Converged { not } => {
                let converged = self.session()?.driver.is_converged();
                if converged == *not {
                    let lines = self.unsettled(if *not { "not converged" } else { "converged" })?;
                    self.miss(None, if *not { "it has converged" } else { "it has not converged" }, lines);
                }
                Ok(())
            }
            // Violations are looked for after every step of every scenario.
            Expectation::NoViolation => Ok(()),
            Expectation::Refused { words } => {
                let refused = self.refused.clone();
                let fits = |refused: &String| words.as_ref().is_none_or(|words| refused.contains(words.as_str()));
                if !refused.as_ref().is_some_and(fits) {
                    let expected = words.clone().map_or_else(|| "refused".into(), |words| format!("refused: {words}"));
                    let got = refused.map_or_else(|| "not refused".into(), |why| format!("refused: {why}"));
                    let lines = vec![DiffLine::new('-', expected), DiffLine::new('+', got)];
                    self.miss(None, "the input before it", lines);
                }
                Ok(())
            }
        }
    }

    fn hold_snapshot_to(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let (who, what) = match expectation {
            Expectation::Node { who, what } => (who, what),
            Expectation::NoViolation => {
                if let Err(failure) = self.answer()? {
                    self.miss(None, &format!("the decider fails: {}: {}", failure.class, failure.detail), Vec::new());
                }
                return Ok(());
            }
            _ => return Err(Stop::Malformed("of a snapshot only what is decided for a node can be expected".into())),
        };
        if self.picture.as_ref().and_then(|picture| picture.row(who)).is_none() {
            return Err(Stop::Malformed(format!("the snapshot has no node {who}")));
        }
        if let Err(failure) = self.answer()? {
            self.miss(Some(who), &format!("the decider fails: {}: {}", failure.class, failure.detail), Vec::new());
            return Ok(());
        }
        match what {
            What::Decision(demand) => self.expect_decision(who, demand),
            What::Nothing => self.expect_nothing(who),
            What::Stands { .. } => {
                Err(Stop::Malformed("a snapshot says itself where its nodes stand; expect what is decided".into()))
            }
        }
    }

    fn expect_decision(&mut self, who: &str, demand: &Demand) -> Result<(), Stop> {
        let (found, got, at_ms) = {
            let log = self.log.borrow();
            let latest = log.latest(who);
            let fits = |seen: &Seen| demand.matches(&seen.row, self.subject.rule(seen.row.rule));
            let shown = latest.iter().take(SHOWN).map(|seen| log.text(seen)).collect::<Vec<_>>();
            (latest.iter().position(fits), shown, latest.last().map(|seen| seen.at_ms))
        };
        match found {
            Some(at) => {
                let mut log = self.log.borrow_mut();
                if log.seen.contains_key(who) {
                    *log.reached.entry(who.into()).or_default() += at;
                }
            }
            None => {
                let mut lines = vec![DiffLine::new('-', demand.text())];
                match got.is_empty() {
                    true => lines.push(DiffLine::new('+', "nothing is decided")),
                    false => lines.extend(got.into_iter().map(|text| DiffLine::new('+', text))),
                }
                self.miss(Some(who), "decided otherwise", lines);
                if let (Some(miss), Some(at_ms)) = (self.misses.last_mut(), at_ms) {
                    miss.at_ms = at_ms;
                }
            }
        }
        Ok(())
    }

    fn expect_nothing(&mut self, who: &str) -> Result<(), Stop> {
        let got: Vec<String> = {
            let log = self.log.borrow();
            let seen = log.seen.get(who).map(Vec::as_slice).unwrap_or_default();
            let acts = seen.iter().filter(|seen| seen.row.verb != Verb::Hold.code());
            acts.take(SHOWN).map(|seen| log.text(seen)).collect()
        };
        if !got.is_empty() {
            let mut lines = vec![DiffLine::new('-', "nothing")];
            lines.extend(got.into_iter().map(|text| DiffLine::new('+', text)));
            self.miss(Some(who), "decided otherwise", lines);
        }
        Ok(())
    }

    fn expect_standing(&mut self, who: &str, all: &[Standing], not: bool) -> Result<(), Stop> {
        let (fits, got) = {
            let state = self.session()?.driver.state();
            let slot = state.names.get(who).and_then(|node| state.slot(*node));
            (stands(all, not, slot), slot_text(slot))
        };
        if !fits {
            let lines = vec![DiffLine::new('-', standing_text(all, not)), DiffLine::new('+', got)];
            self.miss(Some(who), "it stands elsewhere", lines);
        }
        Ok(())
    }

    /// From here on everything works; the fleet has to converge in time, and then to stay as it is.
    pub(super) fn settles(&mut self, within_ms: u64) -> Result<(), Stop> {
        let began = self.session()?.now_ms;
        let settled = self.session()?.settle(within_ms);
        if self.session()?.is_cut() {
            return Ok(());
        }
        if !settled {
            let lines = self.unsettled(&format!("settles within {}", ms(within_ms)))?;
            let waited = self.session()?.now_ms.saturating_sub(began);
            self.miss(None, &format!("after {} it has not converged, and what is next comes later", ms(waited)), lines);
            return Ok(());
        }
        let session = self.session()?;
        let known = session.violations.len();
        session.check_rest();
        let moved: Vec<Violation> = session.violations.drain(known..).collect();
        if let Some(first) = moved.first() {
            let what = format!("it converges and does not stay so: {}", first.what);
            self.miss(None, &what, Vec::new());
        }
        Ok(())
    }

    /// The nodes that are not where they should be.
    fn unsettled(&mut self, expected: &str) -> Result<Vec<DiffLine>, Stop> {
        let view = self.session()?.driver.view();
        let mut lines = vec![DiffLine::new('-', expected)];
        for node in view.nodes.iter().filter(|node| !node.ready || !node.desired).take(SHOWN) {
            let rule = node.rule.as_deref().unwrap_or("no rule");
            let until = node.until_ms.map(|at| format!(" until {}", ms(at))).unwrap_or_default();
            let deleting = if node.deleting { " deleting" } else { "" };
            let waits_for = if node.waits_for.is_empty() { "nothing" } else { &node.waits_for };
            let text = format!("{} {}{deleting}, {rule}, waits for {waits_for}{until}", node.node, node.stage);
            lines.push(DiffLine::new('+', text));
        }
        Ok(lines)
    }
}
