//! A daemon, and whoever asks it.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::fixture::{Place, STEADY, Up, fleet, group, signal};

pub const HOMEOSTAT: &str = env!("CARGO_BIN_EXE_homeostat");

pub fn web(count: u32) -> String {
    fleet(&[group("web", count, STEADY)])
}

/// How a verb ended.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }

    /// The JSON of one that worked.
    pub fn ok(self) -> Value {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.json()
    }
}

/// `homeostat ARGS -o json` about the daemon of a place.
pub fn ask(place: &Place, args: &[&str]) -> Said {
    let mut command = Command::new(HOMEOSTAT);
    command.env_remove("HOMEOSTAT_STATE").env_remove("HOMEOSTAT_TOKEN").args(args).args(["-o", "json"]);
    command.arg("--state").arg(place.state()).stdin(Stdio::null());
    said(command)
}

pub fn said(mut command: Command) -> Said {
    let ended = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: ended.status.code().unwrap_or(-1), out: text(ended.stdout), err: text(ended.stderr) }
}

/// A daemon with more arguments.
pub fn daemon(place: &Place, args: &[&str]) -> Up {
    let mut command = Command::new(HOMEOSTAT);
    command.env_remove("HOMEOSTAT_STATE").arg("daemon").arg(place.file()).arg("--state").arg(place.state()).args(args);
    command.args(["-o", "json"]);
    Up::start(command)
}

pub fn kill(up: &mut Up) {
    signal(up.pid(), Signal::KILL);
    up.ended();
}

/// Stops the daemon after everything was taken away.
pub fn over(place: &Place, mut up: Up) {
    place.write(&web(0));
    crate::fixture::until("nothing is left", || place.labelled().is_empty().then_some(()));
    signal(up.pid(), Signal::TERM);
    assert_eq!(up.ended().0, 0, "{}", up.errors());
}

/// The nodes that `status` lists, with their attempts.
pub fn nodes(place: &Place) -> Vec<(String, u64)> {
    let status = ask(place, &["status"]).ok();
    let nodes = status["nodes"].as_array().unwrap().iter();
    nodes.map(|node| (node["node"].as_str().unwrap().to_owned(), node["attempt"].as_u64().unwrap_or(0))).collect()
}
