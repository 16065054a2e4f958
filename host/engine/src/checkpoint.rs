//! A driver as bytes: what a store keeps, so that only the inputs after it have to be folded again (SPEC 10).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::id::NodeId;
use crate::state::TemplateId;

/// What the bytes are; one of a later version is refused, never guessed at.
pub const SCHEMA: &str = "homeostat/checkpoint/2";

/// Earlier schemas that are read as well: they lack what the fields' defaults say.
const EARLIER: &[&str] = &["homeostat/checkpoint/1"];

/// Why there is no checkpoint, or no driver from one.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Outputs of the last input are not drained: what they announce would be lost.
    #[error("{outputs} outputs are not drained yet")]
    Undrained {
        /// How many.
        outputs: usize,
    },
    /// It was written by another version.
    #[error("the checkpoint has the schema {found:?}; this version reads {SCHEMA:?}")]
    Schema {
        /// What it says of itself.
        found: String,
    },
    /// It is damaged.
    #[error("the checkpoint cannot be read: {0}")]
    Damaged(#[from] serde_json::Error),
}

#[derive(Serialize)]
struct Written<'d> {
    schema: &'static str,
    driver: &'d Driver,
}

#[derive(Deserialize)]
struct Header {
    schema: String,
}

#[derive(Deserialize)]
struct Read {
    driver: Driver,
}

impl Driver {
    /// The driver as JSON. Deterministic: equal drivers, equal bytes.
    ///
    /// # Errors
    ///
    /// Outputs are not drained.
    pub fn checkpoint(&self) -> Result<Vec<u8>, CheckpointError> {
        if !self.outputs.is_empty() || !self.submits.is_empty() {
            return Err(CheckpointError::Undrained { outputs: self.outputs.len() + self.submits.len() });
        }
        Ok(serde_json::to_vec(&Written { schema: SCHEMA, driver: self })?)
    }

    /// Whether no pass is in flight: the best time to be written down, since nobody then waits for an answer.
    pub fn is_between_passes(&self) -> bool {
        self.pass.is_none()
    }

    /// The driver that was written.
    ///
    /// # Errors
    ///
    /// Another schema, or damage.
    pub fn restore(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let Header { schema: found } = serde_json::from_slice(bytes)?;
        if found != SCHEMA && !EARLIER.contains(&found.as_str()) {
            return Err(CheckpointError::Schema { found });
        }
        let Read { mut driver } = serde_json::from_slice(bytes)?;
        // What follows from the rest is not written.
        driver.state.sees_rollouts = driver.decider.sees_rollouts();
        driver.provider_names = Arc::new(driver.providers.keys().cloned().collect());
        driver.rule_ids = driver.decider.rules.iter().map(|rule| Arc::from(rule.id.as_str())).collect();
        let numbered = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let state = &mut driver.state;
        let names = state.slots.iter().enumerate().map(|(at, slot)| (slot.name.clone(), NodeId(numbered(at))));
        state.names = Arc::new(names.collect());
        let mut index = BTreeMap::new();
        for (at, template) in state.templates.iter().enumerate() {
            index.insert(serde_json::to_string(template.as_ref())?, TemplateId(numbered(at)));
        }
        state.template_index = Arc::new(index);
        let armed = state.slots.iter().enumerate();
        driver.timers = armed.filter_map(|(at, slot)| Some((slot.armed?, NodeId(numbered(at))))).collect();
        Ok(driver)
    }
}

/// A map whose keys are no strings, as a list of pairs.
pub(crate) mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}
