//! Component bytes: they are refused by name, or admitted and answer or fail by name.

use homeostat::sandbox::BUILT_IN;
use hostile_guests_artifact::TO_FUZZ;
use tests::fuzz::components::{Components, MOST_BYTES};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let components = Components::new([TO_FUZZ, &[BUILT_IN]].concat())?;
    fuzz_engine::lay_out(env!("CARGO_MANIFEST_DIR"), "components", &components.seeds());
    bolero::check!().with_iterations(500).with_max_len(MOST_BYTES).for_each(|case: &[u8]| {
        components.run(case);
    });
    Ok(())
}
