//! A fleet that is declared somewhere, such as in a file: what was taken over from there once is not taken over again, so that
//! what operators changed since stands until the declaration itself changes.

use ::journal::Hash;
use engine::io::Input;
use engine::policy::Policy;
use engine::shape::ClusterShape;

use super::HostError;
use super::select::Runtime;

/// The named value under which a store keeps what was taken over last.
pub const DECLARED: &str = "declared";

/// A declared fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The shape.
    pub shape: ClusterShape,
    /// Whether the declaration numbers its generations itself (SPEC 2). Otherwise other content gets the next one.
    pub numbered: bool,
    /// The operator's settings.
    pub policy: Policy,
}

impl Declaration {
    /// What it is recognised by.
    fn digest(&self) -> Result<Hash, HostError> {
        let generation = self.numbered.then_some(self.shape.generation);
        let body = serde_json::to_vec(&(&self.shape.run, generation, &self.shape.groups, &self.policy));
        Ok(Hash::of(&body.map_err(|error| HostError::Setup(error.to_string()))?))
    }
}

impl Runtime {
    /// Takes a declaration over, unless it was taken over before; answers the generation in force.
    pub fn declare(&mut self, declared: Declaration) -> Result<u64, HostError> {
        let digest = declared.digest()?;
        let Declaration { mut shape, numbered, policy } = declared;
        if let Some(store) = self.parts.history.store()
            && store.meta(DECLARED)?.as_deref() == Some(digest.as_bytes())
        {
            return Ok(self.generation());
        }
        if let Some(known) = self.parts.driver.state().desired.as_ref().filter(|_| !numbered) {
            let same = known.groups == shape.groups;
            shape.generation = known.generation.saturating_add(u64::from(!same));
        }
        // The settings first: they say how large a shape may be. A shape that is refused takes them with it.
        let before = *self.parts.driver.policy();
        if before != policy {
            self.step(Input::PolicyChanged(policy))?;
        }
        if let Err(refused) = self.desire(shape) {
            if before != policy {
                self.step(Input::PolicyChanged(before))?;
            }
            return Err(refused);
        }
        if let Some(store) = self.parts.history.store() {
            // Killed before this, the next start takes it over once more, and finds the same content in force.
            store.put_meta(DECLARED, digest.as_bytes())?;
        }
        self.parts.history.sync()?;
        Ok(self.generation())
    }

    /// Everything is taken down: the next start takes its declaration over anew.
    pub fn forget_declared(&mut self) -> Result<(), HostError> {
        let document = &mut self.swaps.document;
        document.declared = None;
        document.forgotten = document.pinned.is_none();
        if let Some(store) = self.parts.history.store() {
            store.put_meta(DECLARED, b"")?;
        }
        self.save_deciders()
    }

    /// The generation in force; 0 before the first shape.
    pub fn generation(&self) -> u64 {
        self.parts.driver.state().desired.as_ref().map_or(0, |shape| shape.generation)
    }
}
