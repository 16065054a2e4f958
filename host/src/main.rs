//! `homeostat`: see `homeostat --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    homeostat::cli::main(std::env::args_os()).into()
}
