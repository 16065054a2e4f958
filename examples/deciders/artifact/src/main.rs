//! `cargo run --release -p example-deciders -- FOLDER`: writes the components of all example deciders into a folder.

use std::path::Path;
use std::process::ExitCode;

use example_deciders::{BUILT_BY, COMPONENTS};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: example-deciders FOLDER");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", Path::new(&folder).display());
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let files = COMPONENTS.iter().map(|(name, bytes)| (folder.join(format!("{name}.wasm")), bytes));
    let files: Vec<(String, usize)> = files
        .map(|(path, bytes)| std::fs::write(&path, bytes).map(|()| (path.display().to_string(), bytes.len())))
        .collect::<Result<_, _>>()?;
    let width = files.iter().map(|(path, _)| path.len()).max().unwrap_or(0);
    for (path, size) in files {
        println!("{path:width$}  {size:>6} bytes");
    }
    println!("compiled by {BUILT_BY}");
    Ok(())
}
