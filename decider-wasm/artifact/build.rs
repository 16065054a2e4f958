//! Compiles the built-in decider and makes a component of it.

use guest_build::{BuildError, Guests, compile, componentize, write_out};

const PACKAGE: &str = "decider-wasm";

fn main() {
    if let Err(error) = build() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), BuildError> {
    let (guests, way) = compile(&Guests { packages: &[PACKAGE], examples: &[] })?;
    for guest in guests {
        write_out("decider.wasm", &componentize(PACKAGE, &guest.module)?)?;
    }
    println!("cargo:rustc-env=DECIDER_BUILT_BY={way}");
    Ok(())
}
