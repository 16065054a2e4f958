//! A plan as runs: each column is a list of numbers, where `[first, step, count]` stands for `count` of them, each `step` (0
//! or 1) more than the one before. What a settled fleet of 10,000 nodes is told takes one line.

use decider::{Decisions, Plan};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Fewer than this are written one by one.
const SHORTEST: usize = 4;
/// A column has no more entries than this.
const MAX_ROWS: u64 = 1 << 21;

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Run {
    One(u64),
    Many([u64; 3]),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Columns {
    wake_at_ms: u64,
    node: Vec<Run>,
    attempt: Vec<Run>,
    rule: Vec<Run>,
    verb: Vec<Run>,
    hold: Vec<Run>,
    until: Vec<Run>,
}

pub(crate) fn serialize<S: Serializer>(plan: &Plan, serializer: S) -> Result<S::Ok, S::Error> {
    let Plan { wake_at_ms, decisions: Decisions { node, attempt, rule, verb, hold, until } } = plan;
    let columns = Columns {
        wake_at_ms: *wake_at_ms,
        node: pack(node),
        attempt: pack(attempt),
        rule: pack(rule),
        verb: pack(verb),
        hold: pack(hold),
        until: pack(until),
    };
    columns.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
    let columns = Columns::deserialize(deserializer)?;
    Ok(Plan {
        wake_at_ms: columns.wake_at_ms,
        decisions: Decisions {
            node: unpack("node", &columns.node).map_err(D::Error::custom)?,
            attempt: unpack("attempt", &columns.attempt).map_err(D::Error::custom)?,
            rule: unpack("rule", &columns.rule).map_err(D::Error::custom)?,
            verb: unpack("verb", &columns.verb).map_err(D::Error::custom)?,
            hold: unpack("hold", &columns.hold).map_err(D::Error::custom)?,
            until: unpack("until", &columns.until).map_err(D::Error::custom)?,
        },
    })
}

fn pack<T: Copy + Into<u64>>(column: &[T]) -> Vec<Run> {
    let at = |index: usize| -> Option<u64> { column.get(index).map(|value| (*value).into()) };
    let mut runs = Vec::new();
    let mut index = 0;
    while let Some(first) = at(index) {
        let long = |step: u64| {
            let follows = |count: &usize| first.checked_add(step * *count as u64) == at(index + count);
            (1..column.len() - index).take_while(follows).count() + 1
        };
        // A column of one long run is looked at once: the second question ends at its first step.
        let (step, count) = match (long(0), long(1)) {
            (same, rising) if same >= rising => (0, same),
            (_, rising) => (1, rising),
        };
        if count >= SHORTEST {
            runs.push(Run::Many([first, step, count as u64]));
            index += count;
        } else {
            runs.push(Run::One(first));
            index += 1;
        }
    }
    runs
}

fn unpack<T: TryFrom<u64>>(name: &str, runs: &[Run]) -> Result<Vec<T>, String> {
    let mut column = Vec::new();
    let wide = |value: u64| T::try_from(value).map_err(|_| format!("{name}: {value} is out of range"));
    let mut left = MAX_ROWS;
    for run in runs {
        let (first, step, count) = match run {
            Run::One(value) => (*value, 0, 1),
            Run::Many([first, step @ 0..=1, count]) => (*first, *step, *count),
            Run::Many([_, step, _]) => return Err(format!("{name}: a run steps by 0 or 1, not by {step}")),
        };
        left = left.checked_sub(count).ok_or_else(|| format!("{name}: more than {MAX_ROWS} entries"))?;
        for index in 0..count {
            let value =
                first.checked_add(step * index).ok_or_else(|| format!("{name}: {first} + {index} overflows"))?;
            column.push(wide(value)?);
        }
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;

    fn text(runs: &[Run]) -> String {
        serde_json::to_string(runs).unwrap()
    }

    #[test]
    fn columns_come_back_as_they_were() {
        for (column, packed) in [
            (vec![], "[]"),
            (vec![7], "[7]"),
            (vec![1, 2, 3], "[1,2,3]"),
            (vec![0, 1, 2, 3, 4], "[[0,1,5]]"),
            (vec![9, 9, 9, 9, 10, 11, 12], "[[9,0,4],10,11,12]"),
            (vec![5, 5, 6, 7, 8, 1], "[5,[5,1,4],1]"),
            (vec![u64::MAX; 4], "[[18446744073709551615,0,4]]"),
            (vec![u64::MAX - 1, u64::MAX, 0, 0], "[18446744073709551614,18446744073709551615,0,0]"),
        ] {
            let runs = pack(&column);
            assert_eq!(text(&runs), packed);
            assert_eq!(unpack::<u64>("node", &runs).unwrap(), column);
        }
        let mut random = 1u64;
        for length in 0..400 {
            let column: Vec<u8> = (0..length)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (random >> 62) as u8
                })
                .collect();
            assert_eq!(unpack::<u8>("rule", &pack(&column)).unwrap(), column);
        }
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        for (text, why) in [
            ("[[0,0,4294967295]]", "entries"),
            ("[[0,0,2000000],[0,0,2000000]]", "entries"),
            ("[[0,2,3]]", "steps by 0 or 1"),
            ("[256]", "out of range"),
            ("[[250,1,10]]", "out of range"),
        ] {
            let runs: Vec<Run> = serde_json::from_str(text).unwrap();
            let error = unpack::<u8>("rule", &runs).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let runs: Vec<Run> = serde_json::from_str("[[18446744073709551614,1,3]]").unwrap();
        assert!(unpack::<u64>("until", &runs).unwrap_err().contains("overflows"));
    }
}
