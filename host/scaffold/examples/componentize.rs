//! `cargo run --release -p scaffold --example componentize -- MODULE.wasm COMPONENT.wasm`: what `homeostat decider componentize` does,
//! without building the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(module), Some(component), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("usage: componentize MODULE.wasm COMPONENT.wasm");
        return ExitCode::from(2);
    };
    match convert(&module, &component) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn convert(module: &str, component: &str) -> Result<(), Box<dyn std::error::Error>> {
    let bytes = std::fs::read(module).map_err(|error| format!("{module}: {error}"))?;
    let made = scaffold::componentize(&bytes, "decider.wit", scaffold::CONTRACT_WIT)?;
    std::fs::write(component, made).map_err(|error| format!("{component}: {error}"))?;
    Ok(())
}
