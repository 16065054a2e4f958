//! The deciders in a snapshot that is imported: nothing is made before all of them were found to be what they say.

use std::path::Path;

use api::wire::CarriedDeciders;

use crate::registry::{Document, Registry, RegistryError};
use crate::sandbox::{Contract, digest};

/// Components that a snapshot can have: those that are in use at once.
const MOST: usize = 8;
/// The largest component that any host can be made to take, in bytes.
const MOST_BYTES: usize = 1 << 30;
/// How every component begins.
const MAGIC: &[u8] = b"\0asm";

/// What the state will say of deciders, or what is wrong. `asked` is who decides as the driver has it.
pub(super) fn check(carried: &CarriedDeciders, asked: &str) -> Result<Document, String> {
    let registry = serde_json::to_vec(&carried.registry).map_err(|error| error.to_string())?;
    let document =
        Document::read(&registry).map_err(|why| format!("what it says of deciders cannot be read: {why}"))?;
    let active = &document.active;
    for (who, other) in [("its list of deciders", active.as_str()), ("its checkpoint", asked)] {
        if other != carried.active {
            let named = &carried.active;
            return Err(format!(
                "it says that {named} decides, and {who} says {other:?}: it was changed, or is damaged"
            ));
        }
    }
    if carried.components.len() > MOST {
        return Err(format!("it has {} components, and {MOST} at most are of use", carried.components.len()));
    }
    for one in &carried.components {
        let (found, size) = (digest(&one.component), one.component.len());
        if found != one.digest {
            return Err(format!("the component {} in it has the digest {found}: it is damaged", one.digest));
        }
        if size > MOST_BYTES || !one.component.starts_with(MAGIC) {
            return Err(format!("{} in it, of {size} bytes, is no component", one.digest));
        }
    }
    for wanted in document.carried() {
        if !carried.components.iter().any(|one| one.digest == wanted) {
            return Err(format!("the component of {wanted}, which it needs, is not in it"));
        }
    }
    // The version that it was made with is not to be guessed by whoever starts the daemon.
    if let Some(entry) = document.entry(active)
        && Contract::of(&entry.contract).is_none()
    {
        return Err(format!(
            "{} decides, of contract {}; this program speaks {}: use one that speaks it too",
            entry.title(),
            entry.contract,
            Contract::list()
        ));
    }
    Ok(document)
}

/// Puts the components into the state directory, except the one that is part of this program.
pub(super) fn put(state: &Path, carried: &CarriedDeciders, document: &Document) -> Result<(), RegistryError> {
    let (needed, own) = (document.carried(), Registry::built_in());
    for one in carried.components.iter().filter(|one| one.digest != own && needed.contains(&one.digest)) {
        Registry::put(state, &one.component)?;
    }
    Ok(())
}
