//! The example works as it is, and stays short enough to be read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::process::Command;

#[test]
fn three_nodes_come_up_and_go() {
    let output = Command::new(env!("CARGO_BIN_EXE_embed")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected: String = (0..3)
        .map(|index| format!("cell-{index} is dormant at memory:embedded/cell-{index}/{}\n", index + 1))
        .collect();
    assert_eq!(printed, format!("{expected}nothing is left\n"));
}

#[test]
fn it_is_under_60_lines() {
    assert!(include_str!("../src/main.rs").lines().count() < 60);
}
