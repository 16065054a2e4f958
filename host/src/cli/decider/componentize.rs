//! `homeostat decider componentize`.

use std::path::Path;

use serde::Serialize;

use super::super::{Failure, InputError, Terminal};
use crate::fleet::read_bytes;

/// A module is read whole. One that makes too large a component for the sandbox may still be made here, to be looked at.
const MAX_MODULE_BYTES: u64 = 256 << 20;

#[derive(Serialize)]
struct Componentized {
    schema: &'static str,
    file: String,
    bytes: usize,
}

pub(super) fn run(module: &Path, wit: Option<&Path>, out: &Path, terminal: &Terminal) -> Result<(), Failure> {
    let bytes = read_bytes(module, MAX_MODULE_BYTES).map_err(InputError::from)?;
    let (name, contract) = match wit {
        None => ("decider.wit".to_owned(), scaffold::CONTRACT_WIT.to_owned()),
        Some(file) => {
            let bytes = read_bytes(file, MAX_MODULE_BYTES).map_err(InputError::from)?;
            let text = String::from_utf8(bytes).map_err(|error| input(file, error.to_string()))?;
            (file.display().to_string(), text)
        }
    };
    let component =
        scaffold::componentize(&bytes, &name, &contract).map_err(|error| input(module, error.to_string()))?;
    std::fs::write(out, &component).map_err(|error| Failure::Failed(anyhow::anyhow!("{}: {error}", out.display())))?;
    let file = out.display().to_string();
    if terminal.is_json() {
        let bytes = component.len();
        return terminal.print_json(&Componentized { schema: "homeostat.componentize/v1", file, bytes });
    }
    terminal.print(&format!("{file}  {} bytes\n", component.len()))
}

fn input(file: &Path, message: String) -> InputError {
    InputError { message, file: Some(file.display().to_string()), ..InputError::default() }
}
