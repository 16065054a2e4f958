//! A listing with each template once: the resources of a fleet share a few.

use std::sync::Arc;

use engine::id::ExternalKey;
use engine::io::{LeaseId, Listing, Resource};
use engine::shape::Template;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Packed {
    complete: bool,
    templates: Vec<Arc<Template>>,
    resources: Vec<PackedResource>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedResource {
    lease: LeaseId,
    key: Option<ExternalKey>,
    /// Index in `templates`.
    template: Option<usize>,
}

pub(crate) fn serialize<S: Serializer>(listing: &Listing, serializer: S) -> Result<S::Ok, S::Error> {
    let mut templates: Vec<Arc<Template>> = Vec::new();
    let mut index = |template: &Arc<Template>| {
        // A fleet has few templates, and neighbours mostly share one.
        templates.iter().rposition(|known| Arc::ptr_eq(known, template) || known == template).unwrap_or_else(|| {
            templates.push(template.clone());
            templates.len() - 1
        })
    };
    let resources = listing.resources.iter();
    let resources = resources.map(|resource| PackedResource {
        lease: resource.lease.clone(),
        key: resource.key.clone(),
        template: resource.template.as_ref().map(&mut index),
    });
    let resources = resources.collect();
    Packed { complete: listing.complete, templates, resources }.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Listing, D::Error> {
    let Packed { complete, templates, resources } = Packed::deserialize(deserializer)?;
    let resource = |packed: PackedResource| {
        let template = match packed.template {
            Some(at) => Some(templates.get(at).ok_or_else(|| D::Error::custom(format!("no template {at}")))?.clone()),
            None => None,
        };
        Ok(Resource { lease: packed.lease, key: packed.key, template })
    };
    Ok(Listing { complete, resources: resources.into_iter().map(resource).collect::<Result<_, D::Error>>()? })
}
