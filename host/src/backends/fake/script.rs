//! What a fake provider does, as data: which call of which slot ends how, when, and whether it took effect.

use engine::io::Fault;

use crate::backends::Observation;

/// A kind of call to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`crate::backends::Backend::create`].
    Create,
    /// [`crate::backends::Backend::lookup`].
    Lookup,
    /// [`crate::backends::Backend::start`].
    Start,
    /// [`crate::backends::Backend::cancel`].
    Cancel,
    /// [`crate::backends::Backend::destroy`].
    Destroy,
    /// [`crate::backends::Backend::list`]; of no slot, so only the pattern `*` finds it.
    List,
}

impl Call {
    /// The name in the log.
    pub const fn label(self) -> &'static str {
        match self {
            Call::Create => "create",
            Call::Lookup => "lookup",
            Call::Start => "start",
            Call::Cancel => "cancel",
            Call::Destroy => "destroy",
            Call::List => "list",
        }
    }
}

/// Which calls of a kind, counted from 1 for each slot over all its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// All of them.
    Every,
    /// This one.
    Only(u32),
    /// This one and all before it.
    UpTo(u32),
    /// This one and all after it.
    From(u32),
}

impl Nth {
    fn holds(self, nth: u32) -> bool {
        match self {
            Nth::Every => true,
            Nth::Only(only) => nth == only,
            Nth::UpTo(last) => nth <= last,
            Nth::From(first) => nth >= first,
        }
    }
}

/// How a call ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With what the provider's model says.
    Done,
    /// With this fault.
    Fault(Fault),
    /// Never.
    Hang,
    /// With a panic that says this.
    Panic(String),
}

/// When the effect of a create, start, cancel or destroy happens, whatever the caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// When the call arrives.
    AtOnce,
    /// Together with the answer; not when the call is given up before.
    WithAnswer,
    /// Never.
    Never,
    /// This long after the call arrived, also when it was given up.
    After {
        /// Milliseconds.
        ms: u64,
    },
}

/// What a listing shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// What is there.
    Now,
    /// The first so many of what is there.
    First(usize),
    /// Nothing.
    Nothing,
    /// What the previous call saw; the first call shows nothing.
    Stale,
}

/// One scripted call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Milliseconds until the answer.
    pub delay_ms: u64,
    /// How it ends.
    pub outcome: Outcome,
    /// When it takes effect.
    pub commit: Commit,
    /// What it shows, when it is a listing.
    pub view: View,
    /// Whether a listing claims to be all there is.
    pub complete: bool,
}

impl Default for Step {
    fn default() -> Self {
        Step { delay_ms: 0, outcome: Outcome::Done, commit: Commit::WithAnswer, view: View::Now, complete: true }
    }
}

impl Step {
    /// Works at once.
    pub fn done() -> Self {
        Step::default()
    }

    /// Fails, without effect.
    pub fn fault(fault: Fault) -> Self {
        Step { outcome: Outcome::Fault(fault), commit: Commit::Never, ..Step::default() }
    }

    /// Not ready yet.
    pub fn not_ready() -> Self {
        Step::fault(Fault::NotReady { reason: "scripted: not yet".into() })
    }

    /// Fails, and may work later.
    pub fn retryable() -> Self {
        Step::fault(Fault::retryable("scripted: try again"))
    }

    /// Fails, and asks for this much patience.
    pub fn retry_after(ms: u64) -> Self {
        Step::fault(Fault::Retryable { reason: "scripted: slow down".into(), retry_after_ms: Some(ms) })
    }

    /// Is refused for good.
    pub fn permanent() -> Self {
        Step::fault(Fault::permanent("scripted: never"))
    }

    /// Nobody knows; `commit` says.
    pub fn ambiguous(commit: Commit) -> Self {
        let fault = Fault::Ambiguous { reason: "scripted: connection lost".into() };
        Step { commit, ..Step::fault(fault) }
    }

    /// Never answers; `commit` says what really happens.
    pub fn hang(commit: Commit) -> Self {
        Step { outcome: Outcome::Hang, commit, ..Step::default() }
    }

    /// Panics.
    pub fn panic(words: &str) -> Self {
        Step { outcome: Outcome::Panic(words.into()), commit: Commit::Never, ..Step::default() }
    }

    /// A listing that shows this, and claims to be complete or not.
    pub fn listing(view: View, complete: bool) -> Self {
        Step { view, complete, ..Step::default() }
    }

    /// The same, answered after `delay_ms`.
    pub fn after(mut self, delay_ms: u64) -> Self {
        self.delay_ms = delay_ms;
        self
    }

    /// The same, taking effect at another time.
    pub fn commit(mut self, commit: Commit) -> Self {
        self.commit = commit;
        self
    }
}

/// One observation of a bootstrap, after a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Milliseconds since the beat before.
    pub after_ms: u64,
    /// What is reported. [`Observation::Closed`] ends the session.
    pub observation: Observation,
}

impl Beat {
    /// An observation after a pause.
    pub fn after(after_ms: u64, observation: Observation) -> Self {
        Beat { after_ms, observation }
    }
}

/// The script of a fake provider. The first entry that matches a call decides it; without one it works at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    steps: Vec<(String, Call, Nth, Step)>,
    bootstraps: Vec<(String, Nth, Vec<Beat>)>,
}

impl Script {
    /// Everything works at once.
    pub fn new() -> Self {
        Script::default()
    }

    /// Decides calls. `slots` is a slot's name, or a beginning of names and `*`.
    pub fn on(mut self, slots: &str, call: Call, nth: Nth, step: Step) -> Self {
        self.steps.push((slots.into(), call, nth, step));
        self
    }

    /// What the sessions of these slots report; `nth` counts the sessions of a slot.
    pub fn bootstrap(mut self, slots: &str, nth: Nth, beats: Vec<Beat>) -> Self {
        self.bootstraps.push((slots.into(), nth, beats));
        self
    }

    /// The script with `first` before it.
    pub(super) fn preceded_by(&mut self, mut first: Script) {
        first.steps.append(&mut self.steps);
        first.bootstraps.append(&mut self.bootstraps);
        *self = first;
    }

    pub(super) fn step(&self, slot: &str, call: Call, nth: u32) -> Step {
        let found =
            self.steps.iter().find(|(slots, of, which, _)| *of == call && which.holds(nth) && matches(slots, slot));
        found.map(|(.., step)| step.clone()).unwrap_or_default()
    }

    pub(super) fn beats(&self, slot: &str, nth: u32) -> Vec<Beat> {
        use decider::Progress;
        let found = self.bootstraps.iter().find(|(slots, which, _)| which.holds(nth) && matches(slots, slot));
        found.map(|(.., beats)| beats.clone()).unwrap_or_else(|| {
            vec![
                Beat::after(0, Observation::Progress(Progress::Start)),
                Beat::after(0, Observation::Progress(Progress::Join)),
                Beat::after(0, Observation::Joined),
            ]
        })
    }
}

fn matches(pattern: &str, slot: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => slot.starts_with(beginning),
        None => pattern == slot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_match_decides() {
        let script = Script::new()
            .on("web-0", Call::Create, Nth::Only(2), Step::permanent())
            .on("web-*", Call::Create, Nth::UpTo(2), Step::retryable())
            .on("web-*", Call::Create, Nth::From(5), Step::not_ready());
        assert_eq!(script.step("web-0", Call::Create, 1), Step::retryable());
        assert_eq!(script.step("web-0", Call::Create, 2), Step::permanent());
        assert_eq!(script.step("web-1", Call::Create, 2), Step::retryable());
        assert_eq!(script.step("web-1", Call::Create, 3), Step::done());
        assert_eq!(script.step("web-1", Call::Create, 5), Step::not_ready());
        assert_eq!(script.step("web", Call::Create, 1), Step::done());
        assert_eq!(script.step("web-0", Call::Destroy, 1), Step::done());
    }
}
