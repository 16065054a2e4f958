//! The versions of the contract that the host speaks: the current minor version and the earlier ones of its major. Another
//! major that is to be bridged becomes a variant of its own here, with what it is shown and how its answers are read.

use std::fmt;

use semver::Version;
use serde::{Serialize, Serializer};

/// A version of the contract, patches aside: what a component is shown, and what its answers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// `wit/1.0`: no budgets, pauses or surge slots.
    V1_0,
    /// `wit`.
    V1_1,
}

impl Contract {
    /// Every one, the current one last.
    pub const ALL: &'static [Contract] = &[Contract::V1_0, Contract::V1_1];

    /// Which one a component speaks that names this version: the same major and minor, and no pre-release. `None` for a minor
    /// that is later than all of these, for another major, and for what is no version.
    pub fn of(version: &str) -> Option<Contract> {
        let version = Version::parse(version).ok().filter(|version| version.pre.is_empty())?;
        Self::ALL.iter().copied().find(|known| known.number() == (version.major, version.minor))
    }

    /// Major and minor.
    pub const fn number(self) -> (u64, u64) {
        match self {
            Contract::V1_0 => (1, 0),
            Contract::V1_1 => (1, 1),
        }
    }

    /// All of them, for people.
    pub fn list() -> String {
        let all: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
        all.join(" and ")
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.number();
        write!(f, "{major}.{minor}")
    }
}

impl Serialize for Contract {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;

    #[test]
    fn versions_are_told_apart_by_major_and_minor() {
        for (version, spoken) in [
            ("1.0.0", Some(Contract::V1_0)),
            ("1.0.7", Some(Contract::V1_0)),
            ("1.1.0", Some(Contract::V1_1)),
            ("1.1.3+build", Some(Contract::V1_1)),
            ("1.2.0", None),
            ("0.9.0", None),
            ("2.0.0", None),
            ("1.1.0-rc.1", None),
            ("1.1", None),
            ("", None),
        ] {
            assert_eq!(Contract::of(version), spoken, "{version}");
        }
    }

    #[test]
    fn the_last_one_is_the_one_that_the_types_speak() {
        assert_eq!(Contract::of(decider::CONTRACT), Contract::ALL.last().copied());
        assert_eq!(Contract::of(decider::v1_0::CONTRACT), Some(Contract::V1_0));
    }
}
