//! A snapshot from a JSON file.

use std::path::Path;

use decider::{Nodes, Snapshot};

use super::super::{Failure, InputError};
use crate::fleet::{FleetError, cut, read_bytes, report};

/// The largest snapshot file, in bytes: a million nodes fit.
const MAX_SNAPSHOT_BYTES: u64 = 256 << 20;

/// Reads and checks a snapshot.
pub fn read(path: &Path) -> Result<Snapshot, Failure> {
    let bytes = read_bytes(path, MAX_SNAPSHOT_BYTES).map_err(InputError::from)?;
    let wrong = |message: String| InputError {
        message: cut(&message, 300),
        file: Some(path.display().to_string()),
        ..InputError::default()
    };
    let snapshot: Snapshot = serde_json::from_slice(&bytes).map_err(|error| {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        InputError {
            line: Some(error.line()),
            column: Some(error.column()),
            ..wrong(format!("not a snapshot: {}", text.strip_suffix(&place).unwrap_or(&text)))
        }
    })?;
    check(&snapshot.nodes).map_err(|(field, value, message)| InputError {
        field: Some(field.clone()),
        value: Some(value),
        ..wrong(format!("{field}: {message}"))
    })?;
    Ok(snapshot)
}

type Wrong = (String, String, String);

/// Every column as long as `node`, and the nodes in order, each once.
fn check(nodes: &Nodes) -> Result<(), Wrong> {
    let rows = nodes.node.len();
    macro_rules! columns {
        ($($column:ident),+ $(,)?) => { [$((stringify!($column), nodes.$column.len())),+] };
    }
    let columns = columns![
        attempt,
        group,
        slot,
        stage,
        intent,
        template,
        desired_template,
        live,
        progress,
        pending,
        pending_deadline,
        ambiguous,
        failures,
        next_effect_at,
        probe_at,
        restart_at,
        stage_deadline,
        turn,
        marks,
    ];
    for (name, entries) in columns {
        if entries != rows {
            let field = format!("nodes.{}", name.replace('_', "-"));
            let message =
                format!("it has {entries} entries, and nodes.node has {rows}; every column has one for each node");
            return Err((field, entries.to_string(), message));
        }
    }
    match nodes.node.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(at) => {
            let field = format!("nodes.node[{}]", at + 1);
            let (before, value) = (nodes.node[at], nodes.node[at + 1]);
            Err((field, value.to_string(), format!("{value} after {before}; nodes are in ascending order, each once")))
        }
        None => Ok(()),
    }
}

impl From<FleetError> for InputError {
    /// For files that are only read with the care of a fleet file.
    fn from(error: FleetError) -> Self {
        let entry = report(&error).first;
        let message = match (&entry.file, entry.error) {
            (Some(file), text) => {
                text.strip_prefix(&format!("{file}: ")).unwrap_or(&text).replace(" for a fleet file", "")
            }
            (None, text) => text,
        };
        InputError { message, file: entry.file, line: entry.line, column: entry.column, ..InputError::default() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use decider::NodeRow;

    use super::*;

    #[test]
    fn columns_have_one_length() {
        let mut nodes = Nodes::default();
        nodes.push(NodeRow::vacant(0, 0, 0, 0));
        nodes.push(NodeRow::vacant(4, 0, 1, 0));
        assert_eq!(check(&nodes), Ok(()));
        let mut uneven = nodes.clone();
        uneven.stage_deadline.pop();
        assert_eq!(check(&uneven).unwrap_err().0, "nodes.stage-deadline");
        let mut twice = nodes.clone();
        twice.node[1] = 0;
        assert_eq!(check(&twice).unwrap_err().0, "nodes.node[1]");
        // The list above has all columns: emptying any of them is noticed.
        let text = serde_json::to_value(&nodes).unwrap();
        for column in text.as_object().unwrap().keys() {
            let mut uneven = text.clone();
            uneven[column].as_array_mut().unwrap().pop();
            let uneven: Nodes = serde_json::from_value(uneven).unwrap();
            assert!(check(&uneven).is_err(), "{column}");
        }
    }
}
