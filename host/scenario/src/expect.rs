//! What a scenario demands: of a decision, of where a node stands, of the fleet.

use decider::{DecisionRow, HoldKind, Intent, Stage, Verb};
use engine::state::Slot;

use crate::words::{ms, parse_ms};

/// A decision as a file states it: what is not stated may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub rule: Option<String>,
    pub verb: Option<Verb>,
    pub hold: Option<HoldKind>,
    pub until: Option<u64>,
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Stage(Stage),
    Ready,
    Deleting,
    Gone,
}

/// What is said of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Decision(Demand),
    Stands { all: Vec<Standing>, not: bool },
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    Node { who: String, what: What },
    Converged { not: bool },
    NoViolation,
    Refused { words: Option<String> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Never {
    pub who: String,
    pub what: What,
}

const HOLDS: [(&str, HoldKind); 7] = [
    ("instant", HoldKind::Instant),
    ("result", HoldKind::Result),
    ("observation", HoldKind::Observation),
    ("change", HoldKind::Steady),
    ("person", HoldKind::Person),
    ("budget", HoldKind::Budget),
    ("circuit", HoldKind::Circuit),
];

fn verb(word: &str) -> Option<Verb> {
    Verb::ALL.iter().copied().find(|verb| verb.label() == word)
}

fn standing(word: &str) -> Option<Standing> {
    match word {
        "ready" => Some(Standing::Ready),
        "deleting" => Some(Standing::Deleting),
        "gone" => Some(Standing::Gone),
        word => stage(word).map(Standing::Stage),
    }
}

pub(crate) fn stage(word: &str) -> Option<Stage> {
    Stage::ALL.iter().copied().find(|stage| stage.label() == word)
}

impl Expectation {
    pub fn parse(words: &[&str]) -> Result<Expectation, String> {
        match words {
            ["converged"] => Ok(Expectation::Converged { not: false }),
            ["not", "converged"] => Ok(Expectation::Converged { not: true }),
            ["no", "violation"] => Ok(Expectation::NoViolation),
            ["refused"] => Ok(Expectation::Refused { words: None }),
            ["refused", words] => Ok(Expectation::Refused { words: Some((*words).into()) }),
            [who, what @ ..] if !what.is_empty() => {
                Ok(Expectation::Node { who: (*who).into(), what: What::parse(what)? })
            }
            _ => Err("expect NODE and what: a rule, a verb, hold until TIME, nothing, where it stands; or expect converged, \
                      not converged, refused \"words\", no violation"
                .into()),
        }
    }
}

impl Never {
    pub fn parse(words: &[&str]) -> Result<Never, String> {
        match words {
            [who, what @ ..] if !what.is_empty() => match What::parse(what)? {
                What::Nothing => Err("what is never is a decision or where a node stands".into()),
                what => Ok(Never { who: (*who).into(), what }),
            },
            _ => Err("never NODE and what: a rule, a verb, where it stands; * in NODE stands for anything".into()),
        }
    }
}

impl What {
    fn parse(words: &[&str]) -> Result<What, String> {
        if words == ["nothing"] {
            return Ok(What::Nothing);
        }
        let (said, words) = match words {
            ["is", rest @ ..] => (true, rest),
            words => (false, words),
        };
        let (not, words) = match words {
            ["not", rest @ ..] => (true, rest),
            words => (false, words),
        };
        if said || not || words.first().is_some_and(|word| standing(word).is_some()) {
            let all = words
                .iter()
                .map(|word| standing(word).ok_or_else(|| format!("{word:?} is no stage, nor ready, deleting or gone")));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            return if all.is_empty() { Err("where does it stand?".into()) } else { Ok(What::Stands { all, not }) };
        }
        Demand::parse(words).map(What::Decision)
    }

    pub fn rule(&self) -> Option<&str> {
        match self {
            What::Decision(demand) => demand.rule.as_deref(),
            _ => None,
        }
    }
}

impl Demand {
    fn parse(words: &[&str]) -> Result<Demand, String> {
        let mut demand = Demand::default();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let twice = |taken: bool| if taken { Err(format!("{word:?} is one too many")) } else { Ok(()) };
            match word {
                "until" => {
                    twice(demand.until.is_some())?;
                    let at = words.next().ok_or("until when?")?;
                    demand.until = Some(if at == "never" { 0 } else { parse_ms(at)? });
                }
                "for" => {
                    twice(demand.hold.is_some())?;
                    let kind = words.next().unwrap_or_default();
                    let known = HOLDS.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind);
                    demand.hold = Some(known.ok_or_else(|| {
                        format!(
                            "{kind:?} ends no hold; instant, result, observation, change, person, budget and circuit do"
                        )
                    })?);
                }
                word => match verb(word) {
                    Some(verb) => {
                        twice(demand.verb.is_some())?;
                        demand.verb = Some(verb);
                    }
                    None => {
                        twice(demand.rule.is_some())?;
                        demand.rule = Some(word.into());
                    }
                },
            }
        }
        let holds = demand.until.is_some() || demand.hold.is_some();
        match demand.verb {
            None if holds => demand.verb = Some(Verb::Hold),
            Some(verb) if holds && verb != Verb::Hold => {
                return Err(format!("{} is no hold: it has no end", verb.label()));
            }
            _ => {}
        }
        Ok(demand)
    }

    pub fn matches(&self, row: &DecisionRow, rule: &str) -> bool {
        self.rule.as_deref().is_none_or(|wanted| wanted == rule)
            && self.verb.is_none_or(|verb| verb.code() == row.verb)
            && self.hold.is_none_or(|hold| hold.code() == row.hold)
            && self.until.is_none_or(|until| until == row.until)
    }

    pub fn text(&self) -> String {
        let mut words: Vec<String> = self.rule.iter().cloned().collect();
        words.extend(self.verb.map(|verb| verb.label().into()));
        words.extend(self.hold.map(|kind| format!("for {}", hold_word(kind.code()))));
        words.extend(self.until.map(until_text));
        words.join(" ")
    }
}

fn hold_word(code: u8) -> String {
    let known = HOLDS.iter().find(|(_, kind)| kind.code() == code);
    known.map_or_else(|| format!("kind {code}"), |(name, _)| (*name).into())
}

fn until_text(until: u64) -> String {
    if until == 0 { "until never".into() } else { format!("until {}", ms(until)) }
}

/// A decision, as an expectation would state it whole.
pub(crate) fn decision_text(row: &DecisionRow, rule: &str) -> String {
    match Verb::from_code(row.verb) {
        Some(Verb::Hold) => format!("{rule} hold for {} {}", hold_word(row.hold), until_text(row.until)),
        Some(verb) => format!("{rule} {}", verb.label()),
        None => format!("{rule} verb {}", row.verb),
    }
}

impl Standing {
    pub fn holds(self, slot: Option<&Slot>) -> bool {
        let node = slot.and_then(|slot| slot.node.as_ref());
        match self {
            Standing::Stage(Stage::Vacant) => node.is_none() && slot.is_some_and(|slot| slot.desired.is_some()),
            Standing::Gone => node.is_none() && slot.is_none_or(|slot| slot.desired.is_none()),
            Standing::Stage(stage) => node.is_some_and(|node| node.stage == stage),
            Standing::Ready => node.is_some_and(|node| node.stage.is_ready() && node.intent == Intent::Active),
            Standing::Deleting => node.is_some_and(|node| node.intent == Intent::Deleting),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Standing::Stage(stage) => stage.label(),
            Standing::Ready => "ready",
            Standing::Deleting => "deleting",
            Standing::Gone => "gone",
        }
    }
}

/// Whether all of it holds of a slot, or not.
pub(crate) fn stands(all: &[Standing], not: bool, slot: Option<&Slot>) -> bool {
    all.iter().all(|standing| standing.holds(slot)) != not
}

pub(crate) fn standing_text(all: &[Standing], not: bool) -> String {
    let words: Vec<&str> = all.iter().map(|standing| standing.label()).collect();
    format!("is {}{}", if not { "not " } else { "" }, words.join(" "))
}

/// Where a slot stands, in the words of the language.
pub(crate) fn slot_text(slot: Option<&Slot>) -> String {
    let node = slot.and_then(|slot| slot.node.as_ref());
    let words: Vec<&str> = match node {
        None if slot.is_some_and(|slot| slot.desired.is_some()) => vec!["vacant"],
        None => vec!["gone"],
        Some(node) => {
            let deleting = (node.intent == Intent::Deleting).then_some("deleting");
            let ready = Standing::Ready.holds(slot).then_some("ready");
            [node.stage.label()].into_iter().chain(deleting).chain(ready).collect()
        }
    };
    format!("is {}", words.join(" "))
}

/// Whether a name is of a pattern, in which `*` stands for any number of characters.
pub fn like(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_order_of_a_demand_is_free() {
        let one = Demand::parse(&["R10", "hold", "until", "3s"]).unwrap();
        assert_eq!(one, Demand::parse(&["hold", "R10", "until", "3s"]).unwrap());
        assert_eq!(one, Demand::parse(&["until", "3s", "R10"]).unwrap());
        assert_eq!(one.text(), "R10 hold until 3s");
        for wrong in
            [&["R1", "R2"][..], &["until"], &["create-lease", "until", "3s"], &["hold", "for", "ever"], &["until", "3"]]
        {
            assert!(Demand::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, expected) in [
            ("web-*", "web-10", true),
            ("*", "", true),
            ("*-1", "web-1", true),
            ("*-1", "web-11", false),
            ("a*b*c", "aXbYc", true),
            ("a*a", "a", false),
            ("web-1", "web-1", true),
            ("web-1", "web-11", false),
        ] {
            assert_eq!(like(pattern, name), expected, "{pattern} {name}");
        }
    }
}
