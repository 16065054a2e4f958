//! Histories with bent plans in them: S1 to S15 after each step, and a plan that is refused does nothing.

use cases::fuzz::plans::{MOST_BYTES, run, seeds};

fn main() {
    fuzz_engine::lay_out(env!("CARGO_MANIFEST_DIR"), "plans", &seeds());
    bolero::check!().with_iterations(3_000).with_max_len(MOST_BYTES).for_each(|case: &[u8]| {
        run(case);
    });
}
