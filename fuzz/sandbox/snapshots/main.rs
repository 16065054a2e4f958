//! Snapshots of any kind: the native code and the component answer, and answer the same.

use tests::fuzz::snapshots::{MOST_BYTES, Snapshots, seeds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let snapshots = Snapshots::new()?;
    fuzz_engine::lay_out(env!("CARGO_MANIFEST_DIR"), "snapshots", &seeds());
    bolero::check!().with_iterations(3_000).with_max_len(MOST_BYTES).for_each(|case: &[u8]| {
        snapshots.run(case);
    });
    Ok(())
}
