//! The golden journals, step by step.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod scripts;
mod there_and_back;

use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};

use step::{Answer, Session};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn golden(name: &str) -> PathBuf {
    folder().join(format!("{name}.jsonl"))
}

fn open(name: &str) -> Session<BufReader<File>> {
    Session::open(BufReader::new(File::open(golden(name)).unwrap()), false).unwrap()
}

fn in_memory(bytes: Vec<u8>) -> Session<Cursor<Vec<u8>>> {
    Session::open(Cursor::new(bytes), false).unwrap()
}

fn page<R: std::io::BufRead + std::io::Seek>(session: &mut Session<R>, command: &str) -> String {
    match session.execute(command) {
        Ok(Answer::Page(page)) => page,
        other => panic!("{command}: {other:?}"),
    }
}
