//! `homeostat decider inspect`.

use serde::Serialize;

use super::super::table::Table;
use super::super::{Failure, Terminal};
use crate::sandbox::{Contract, Inspection, Limits, LoadedDecider};

#[derive(Serialize)]
struct Inspected<'a> {
    schema: &'static str,
    #[serde(flatten)]
    inspection: &'a Inspection,
}

pub(super) fn run(decider: &LoadedDecider, terminal: &Terminal) -> Result<(), Failure> {
    let found = decider.inspect();
    if terminal.is_json() {
        return terminal.print_json(&Inspected { schema: "homeostat.decider/v1", inspection: &found });
    }
    let style = terminal.style();
    let list = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    let mut text = String::new();
    for (name, value) in [
        ("name", found.name.clone()),
        ("version", found.version.clone()),
        ("contract", format!("{} (this host speaks {})", found.contract, Contract::list())),
        ("digest", found.digest.clone()),
        ("size", format!("{} bytes", found.size_bytes)),
        ("imports", list(&found.imports)),
        ("exports", list(&found.exports)),
    ] {
        text.push_str(&format!("{} {value}\n", style.clone().dim().apply_to(format!("{name:<9}"))));
    }
    let mut table = Table::new(&["rule", "sentence"]);
    for rule in &found.rules {
        table.push([rule.id.clone(), rule.sentence.clone()]);
    }
    text.push('\n');
    text.push_str(&table.render(&style));
    let mut table = Table::new(&["limit", "value", "unit"]);
    for limit in Limits::ALL {
        table.push([limit.name.to_owned(), limit.of(&found.limits).to_string(), limit.unit.to_owned()]);
    }
    text.push('\n');
    text.push_str(&table.render(&style));
    terminal.print(&text)
}
