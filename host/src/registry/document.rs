//! The registry's document: which deciders are kept and which one is in force. It is written in the transaction of the journal's
//! record, so that the two never disagree.

use engine::id::Millis;
use serde::{Deserialize, Serialize};

/// Its schema.
pub const SCHEMA: &str = "homeostat.deciders/v1";
/// The named value under which a store keeps it.
pub const DECIDERS: &str = "deciders";
/// So many of those that were loaded last are kept, besides those in use.
pub const KEPT: usize = 8;
/// So many wishes are remembered.
const WISHES: usize = 16;
/// So many times in force are remembered.
const TERMS: usize = 32;
/// So many quarantined digests are remembered, the oldest forgotten first.
const QUARANTINED: usize = 256;

/// What is known of deciders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// The revision of the last wish; rises with each.
    pub revision: u64,
    /// The digest of the decider in force; empty before the first start.
    pub active: String,
    /// When it came into force.
    pub active_since_ms: Millis,
    /// By which command; `None` where no command asked for it.
    #[serde(default)]
    pub active_by: Option<String>,
    /// The digest of the one before it.
    #[serde(default)]
    pub previous: Option<String>,
    /// The only one that may be in force.
    #[serde(default)]
    pub pinned: Option<Pin>,
    /// The digest of what was declared last when a host was started, such as with `--decider FILE`.
    #[serde(default)]
    pub declared: Option<String>,
    /// Everything was taken down: the next start begins with what it is given.
    #[serde(default)]
    pub forgotten: bool,
    /// Those that are kept, in the order in which they were loaded.
    #[serde(default)]
    pub entries: Vec<Entry>,
    /// Those that must not come into force again by themselves.
    #[serde(default)]
    pub quarantined: Vec<Quarantined>,
    /// The one in force is being watched.
    #[serde(default)]
    pub watch: Option<Watch>,
    /// The last wishes, the newest last.
    #[serde(default)]
    pub wishes: Vec<Wished>,
    /// Who was in force when, the newest last.
    #[serde(default)]
    pub in_force: Vec<Term>,
}

/// A time for which a decider was in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Its digest.
    pub digest: String,
    /// From when.
    pub from_ms: Millis,
    /// Until when; `None` when it still is.
    #[serde(default)]
    pub to_ms: Option<Millis>,
    /// By which command.
    #[serde(default)]
    pub by: Option<String>,
}

/// A decider that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The digest of its bytes.
    pub digest: String,
    /// The name it declares.
    pub name: String,
    /// The version it declares.
    pub version: String,
    /// The contract version it was built for.
    pub contract: String,
    /// Its size in bytes; 0 for one that is no component.
    pub size_bytes: u64,
    /// When it was loaded.
    pub loaded_at_ms: Millis,
    /// By which command.
    #[serde(default)]
    pub by: Option<String>,
    /// The rules it may cite, so that old decisions can be read.
    #[serde(default)]
    pub rules: Vec<decider::Rule>,
}

impl Entry {
    /// Its name and version.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// The only decider that may be in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Its digest.
    pub digest: String,
    /// Since when.
    pub at_ms: Millis,
    /// By which command.
    #[serde(default)]
    pub by: Option<String>,
}

/// A decider that failed while it was watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantined {
    /// Its digest.
    pub digest: String,
    /// How it failed.
    pub why: String,
    /// When.
    pub at_ms: Millis,
    /// The name of the swap that had put it in force.
    #[serde(default)]
    pub swap: Option<String>,
}

/// What a decider that was switched to is watched for, besides traps, limits and invalid plans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The revision of the wish.
    pub revision: u64,
    /// The digest of the one that is watched.
    pub digest: String,
    /// Until when.
    pub until_ms: Millis,
    /// The digest of the one to fall back to.
    pub previous: String,
    /// How many more failed nodes are too many; `None`: they are not counted.
    #[serde(default)]
    pub limit: Option<FailedLimit>,
    /// The failed nodes at the switch.
    pub failed_before: u32,
}

/// How many more failed nodes than at the switch are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailedLimit {
    /// So many nodes.
    Nodes(u32),
    /// So many of a hundred slots.
    Percent(u32),
}

impl std::fmt::Display for FailedLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FailedLimit::Nodes(nodes) => write!(f, "{nodes}"),
            FailedLimit::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl FailedLimit {
    /// Whether so many more, of so many slots, are too many.
    pub fn is_breached(self, more: u32, slots: usize) -> bool {
        match self {
            FailedLimit::Nodes(limit) => more >= limit.max(1),
            FailedLimit::Percent(limit) => {
                more > 0 && u64::from(more) * 100 >= u64::from(limit) * u64::try_from(slots).unwrap_or(u64::MAX)
            }
        }
    }
}

/// A wish, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wished {
    /// Its revision.
    pub revision: u64,
    /// The command.
    #[serde(default)]
    pub by: Option<String>,
    /// The decider that was wished for.
    pub digest: String,
    /// Its name and version, once they are known.
    #[serde(default)]
    pub name: String,
    /// When.
    pub at_ms: Millis,
    /// What came of it so far; `None` while nothing did.
    #[serde(default)]
    pub outcome: Option<Outcome>,
    /// When that came.
    #[serde(default)]
    pub ended_ms: Option<Millis>,
    /// In words.
    #[serde(default)]
    pub text: String,
}

/// What came of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is in force, and watched.
    Watching,
    /// It is in force.
    Switched,
    /// It was asked beside the one in force, without a switch.
    Shadowed,
    /// It was in force, failed, and was taken back.
    RolledBack,
    /// It was refused.
    Refused,
    /// A newer wish came.
    Superseded,
    /// Somebody called it off.
    Cancelled,
    /// It could not be carried out.
    Failed,
    /// The host ended before anything came of it.
    Interrupted,
}

impl Outcome {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Outcome::Watching => "watching",
            Outcome::Switched => "switched",
            Outcome::Shadowed => "shadowed",
            Outcome::RolledBack => "rolled-back",
            Outcome::Refused => "refused",
            Outcome::Superseded => "superseded",
            Outcome::Cancelled => "cancelled",
            Outcome::Failed => "failed",
            Outcome::Interrupted => "interrupted",
        }
    }
}

impl Default for Document {
    fn default() -> Self {
        Document {
            schema: SCHEMA.into(),
            revision: 0,
            active: String::new(),
            active_since_ms: 0,
            active_by: None,
            previous: None,
            pinned: None,
            declared: None,
            forgotten: false,
            entries: Vec::new(),
            quarantined: Vec::new(),
            watch: None,
            wishes: Vec::new(),
            in_force: Vec::new(),
        }
    }
}

impl Document {
    /// What the store kept.
    ///
    /// # Errors
    ///
    /// Why it cannot be relied on, in words.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Header {
            schema: String,
        }
        let Header { schema } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if schema != SCHEMA {
            return Err(format!(
                "it has the schema {schema:?}; this host knows {SCHEMA:?}: use the host that wrote it"
            ));
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// The digests of those that go where the state goes: the one in force first, then those that can follow it without being
    /// given anew.
    pub fn carried(&self) -> Vec<String> {
        let mut digests = Vec::new();
        let watched = self.watch.as_ref().map(|watch| &watch.previous);
        let others = self.previous.iter().chain(watched).chain(self.pinned.as_ref().map(|pin| &pin.digest));
        for digest in [&self.active].into_iter().chain(others).filter(|digest| !digest.is_empty()) {
            if !digests.contains(digest) {
                digests.push(digest.clone());
            }
        }
        digests
    }

    /// Without all that needs another component than these.
    #[must_use]
    pub fn reduced_to(mut self, digests: &[String]) -> Self {
        let is_there = |digest: &String| digests.contains(digest);
        self.entries.retain(|entry| is_there(&entry.digest));
        self.previous = self.previous.filter(is_there);
        self.pinned = self.pinned.filter(|pin| is_there(&pin.digest));
        self.watch = self.watch.filter(|watch| is_there(&watch.previous));
        self
    }

    /// The entry of a digest.
    pub fn entry(&self, digest: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.digest == digest)
    }

    /// A digest's name and version, or nothing.
    pub fn title(&self, digest: &str) -> String {
        self.entry(digest).map(Entry::title).unwrap_or_default()
    }

    /// Why a digest must not come into force by itself.
    pub fn quarantine(&self, digest: &str) -> Option<&Quarantined> {
        self.quarantined.iter().find(|one| one.digest == digest)
    }

    /// Takes an entry in; one that is there becomes the newest.
    pub fn keep(&mut self, entry: Entry) {
        self.entries.retain(|known| known.digest != entry.digest);
        self.entries.push(entry);
    }

    /// Remembers a wish; gives it its revision.
    pub fn wish(&mut self, mut wished: Wished) -> u64 {
        self.revision = self.revision.saturating_add(1);
        wished.revision = self.revision;
        self.wishes.push(wished);
        let surplus = self.wishes.len().saturating_sub(WISHES);
        self.wishes.drain(..surplus);
        self.revision
    }

    /// What came of a wish.
    pub fn ended(&mut self, revision: u64, outcome: Outcome, at_ms: Millis, text: &str) {
        if let Some(wished) = self.wishes.iter_mut().find(|wished| wished.revision == revision) {
            wished.outcome = Some(outcome);
            wished.ended_ms = Some(at_ms);
            wished.text = text.into();
        }
    }

    /// A decider comes into force.
    pub fn activate(&mut self, digest: &str, at_ms: Millis, by: Option<String>) {
        if self.active != digest {
            let before = std::mem::replace(&mut self.active, digest.into());
            self.previous = Some(before).filter(|before| !before.is_empty());
        }
        if let Some(last) = self.in_force.last_mut() {
            last.to_ms.get_or_insert(at_ms);
        }
        self.in_force.push(Term { digest: digest.into(), from_ms: at_ms, to_ms: None, by: by.clone() });
        let surplus = self.in_force.len().saturating_sub(TERMS);
        self.in_force.drain(..surplus);
        self.active_since_ms = at_ms;
        self.active_by = by;
        self.watch = None;
    }

    /// It must not come into force again by itself.
    pub fn condemn(&mut self, digest: &str, why: &str, at_ms: Millis, swap: Option<String>) {
        self.quarantined.retain(|one| one.digest != digest);
        self.quarantined.push(Quarantined { digest: digest.into(), why: why.into(), at_ms, swap });
        let surplus = self.quarantined.len().saturating_sub(QUARANTINED);
        self.quarantined.drain(..surplus);
    }

    /// It may come into force again.
    pub fn acquit(&mut self, digest: &str) {
        self.quarantined.retain(|one| one.digest != digest);
    }

    /// Forgets what nobody uses: all but the active, the previous, the one to fall back to, the pinned, those in `used`, and the
    /// last [`KEPT`] loaded.
    pub fn collect(&mut self, used: &[String]) {
        let newest = self.entries.len().saturating_sub(KEPT);
        let in_use: Vec<bool> = self.entries.iter().map(|entry| self.uses(&entry.digest, used)).collect();
        let mut at = 0;
        self.entries.retain(|_| {
            at += 1;
            in_use[at - 1] || at > newest
        });
    }

    fn uses(&self, digest: &str, used: &[String]) -> bool {
        self.active == digest
            || digest == super::Registry::built_in()
            || self.previous.as_deref() == Some(digest)
            || self.pinned.as_ref().is_some_and(|pin| pin.digest == digest)
            || self.watch.as_ref().is_some_and(|watch| watch.previous == digest)
            || used.iter().any(|used| used == digest)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn entry(digest: &str) -> Entry {
        Entry {
            digest: digest.into(),
            name: "n".into(),
            version: "1.0.0".into(),
            contract: "1.0.0".into(),
            size_bytes: 1,
            loaded_at_ms: 0,
            by: None,
            rules: Vec::new(),
        }
    }

    #[test]
    fn what_nobody_uses_is_forgotten_and_what_is_used_stays() {
        let mut document = Document::default();
        for number in 0..20 {
            document.keep(entry(&format!("d{number:02}")));
        }
        document.activate("d00", 1, None);
        document.activate("d01", 2, None);
        document.pinned = Some(Pin { digest: "d02".into(), at_ms: 0, by: None });
        document.collect(&["d03".into()]);
        let left: Vec<&str> = document.entries.iter().map(|entry| entry.digest.as_str()).collect();
        assert_eq!(left, ["d00", "d01", "d02", "d03", "d12", "d13", "d14", "d15", "d16", "d17", "d18", "d19"]);
        // One that is loaded again is new.
        document.keep(entry("d12"));
        document.pinned = None;
        document.collect(&[]);
        let left: Vec<&str> = document.entries.iter().map(|entry| entry.digest.as_str()).collect();
        assert_eq!(left, ["d00", "d01", "d13", "d14", "d15", "d16", "d17", "d18", "d19", "d12"]);
    }

    #[test]
    fn another_schema_is_refused_and_what_was_written_is_read() {
        let mut document = Document::default();
        document.activate("a", 3, Some("one".into()));
        document.condemn("b", "it traps", 4, None);
        let bytes = serde_json::to_vec(&document).unwrap();
        assert_eq!(Document::read(&bytes).unwrap(), document);
        let other = String::from_utf8(bytes).unwrap().replace("deciders/v1", "deciders/v9");
        assert!(Document::read(other.as_bytes()).unwrap_err().contains("v9"));
        assert!(Document::read(b"{").is_err());
    }

    #[test]
    fn a_rise_is_counted_in_nodes_or_by_share() {
        assert!(!FailedLimit::Nodes(2).is_breached(1, 10));
        assert!(FailedLimit::Nodes(2).is_breached(2, 10));
        assert!(!FailedLimit::Nodes(0).is_breached(0, 10), "no rise is no breach");
        assert!(!FailedLimit::Percent(20).is_breached(1, 10));
        assert!(FailedLimit::Percent(20).is_breached(2, 10));
        assert!(!FailedLimit::Percent(20).is_breached(0, 0));
    }
}
