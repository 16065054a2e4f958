//! The deciders that an export carries.

use api::Refusal;
use api::wire::{Carried, CarriedDeciders, LeftOut};

use super::Desk;
use crate::registry::{Document, Registry};

/// Components that one export has, in bytes; what is beyond is left out. The caller reads no longer answer.
const MOST_BYTES: usize = 128 << 20;

impl Desk {
    pub(super) async fn carried_deciders(&self, document: Document) -> Result<Option<CarriedDeciders>, Refusal> {
        let Some(registry) = self.host.registry().cloned() else { return Ok(None) };
        let read = tokio::task::spawn_blocking(move || carried(&registry, document)).await;
        read.unwrap_or_else(|gone| Err(Refusal::Failed(format!("reading the components: {gone}")))).map(Some)
    }
}

/// Without the one in force it would be no export of this fleet; without another one it is a smaller one, and says so.
fn carried(registry: &Registry, document: Document) -> Result<CarriedDeciders, Refusal> {
    let (mut components, mut left_out, mut total) = (Vec::new(), Vec::new(), 0);
    for digest in document.carried() {
        let found = match registry.component(&digest) {
            Ok(component) if total + component.len() <= MOST_BYTES => Ok(component),
            Ok(component) => Err(format!("its {} bytes are too many beside the others", component.len())),
            Err(error) => Err(error.to_string()),
        };
        match found {
            Ok(component) => {
                total += component.len();
                let title = document.title(&digest);
                components.push(Carried { digest, title, component: component.to_vec() });
            }
            Err(why) if digest == document.active => {
                let words = format!("the decider in force cannot be exported: {why}");
                return Err(Refusal::Failed(words));
            }
            Err(why) => left_out.push(LeftOut { digest, why }),
        }
    }
    let digests: Vec<String> = components.iter().map(|carried| carried.digest.clone()).collect();
    let document = document.reduced_to(&digests);
    let registry = serde_json::to_value(&document);
    let registry = registry.map_err(|error| Refusal::Failed(format!("the registry of deciders: {error}")))?;
    Ok(CarriedDeciders { active: document.active, registry, components, left_out })
}
