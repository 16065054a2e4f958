//! The histories behind the golden journals: small, and between them every rule that a run can reach.

use std::cell::RefCell;

use decider::{Plan, Snapshot};
use engine::io::DeciderFailure;
use scenario::Malformed;

use crate::Recording;
use crate::build;

/// A history and the name of its journal.
pub struct History {
    /// The journal is `golden/{name}.jsonl`.
    pub name: &'static str,
    /// A scenario.
    pub text: &'static str,
}

macro_rules! scenarios {
    ($($name:literal),+ $(,)?) => {
        [$(History { name: $name, text: include_str!(concat!("../scenarios/", $name, ".txt")) }),+]
    };
}

/// Every golden journal is made from one of these; once made it is never made again.
pub const HISTORIES: [History; 9] = scenarios![
    "01-climb",
    "02-scale-down-takes-the-highest",
    "03-template-drift",
    "08-bootstrap-fails-at-run-time",
    "16-create-in-doubt-while-deleting",
    "17-bootstrap-in-doubt-while-deleting",
    "18-create-in-doubt-windowed",
    "23-sweep",
    "24-adopt",
];

/// A decider that fails for the fourth node for the first thirty seconds.
pub const DECIDER_FAILS: History = History {
    name: "decider-fails",
    text: "shape 1 web=5\nbring-up\nwait 10s\nshape 2 web=6@v2\nbring-up\nwait 40s\nbring-up\nshow\n",
};

/// The decider of [`DECIDER_FAILS`]: a function of the snapshot alone.
pub fn fails_at_first(snapshot: &Snapshot) -> Option<DeciderFailure> {
    let poison = snapshot.now_ms < 30_000 && snapshot.nodes.node.contains(&3);
    poison.then(|| DeciderFailure { decider: "native".into(), class: "trap".into(), detail: "it trapped".into() })
}

/// The journal of a history, as this engine and this decider make it.
///
/// # Errors
///
/// The history is no scenario.
pub fn journal(history: &History) -> Result<Vec<u8>, Malformed> {
    let recording: RefCell<Option<Recording>> = RefCell::new(None);
    let fails = history.name == DECIDER_FAILS.name;
    scenario::run(history.text, |session| {
        if fails {
            session.decide = Box::new(|snapshot: &Snapshot| -> Result<Plan, DeciderFailure> {
                fails_at_first(snapshot).map_or_else(|| Ok(decider::reconcile(snapshot)), Err)
            });
        }
        let mut recording = recording.borrow_mut();
        if recording.is_none() {
            *recording = Recording::of(&build::config(*session.driver.policy())).ok();
        }
        if let Some(recording) = &*recording {
            session.record(recording.clone());
        }
    })?;
    let recording = recording.into_inner();
    let bytes = recording.map(|recording| recording.ended());
    bytes.ok_or_else(|| Malformed { line: 1, why: "nothing happens in it".into() })
}
