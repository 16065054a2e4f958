//! What a component must be before it decides anything (SPEC 9). The order matters: cheap and certain checks first, the
//! guest's own code last.

use std::panic::{AssertUnwindSafe, catch_unwind};

use decider::{CONTRACT, Description, Snapshot};
use wasmtime::component::types::{Component as ComponentType, ComponentInstance, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};
use wasmtime::{Engine, Precompiled};

use super::call;
use super::complexity;
use super::contract::Contract;
use super::description;
use super::error::LoadError;
use super::failure::GuestFailure;
use super::limits::Limits;
use super::store::Usage;

/// The interface that a decider exports, without its version.
const INTERFACE: &str = "homeostat:decider/policy";

/// A component that passed.
pub(super) struct Admitted {
    pub(super) instance_pre: InstancePre<Usage>,
    pub(super) reconcile: ComponentExportIndex,
    pub(super) contract: Contract,
    pub(super) description: Description,
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

/// Looks at the bytes alone.
pub(super) fn check_bytes(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    let size = bytes.len() as u64;
    if size > limits.component_bytes {
        return Err(LoadError::TooLarge { bytes: size, limit: limits.component_bytes });
    }
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    match Engine::detect_precompiled(bytes) {
        Some(Precompiled::Module) => return Err(LoadError::Precompiled { kind: "module" }),
        Some(Precompiled::Component) => return Err(LoadError::Precompiled { kind: "component" }),
        None => {}
    }
    // The magic number, then version and layer: 1 and 0 for a core module, 13 and 1 for a component.
    match bytes {
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => Err(LoadError::CoreModule),
        [0, b'a', b's', b'm', ..] => Ok(()),
        _ => Err(LoadError::NotWasm { start: start(bytes) }),
    }
}

/// The first bytes, for people.
fn start(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(8)];
    if shown.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        return format!("{:?}", String::from_utf8_lossy(shown));
    }
    shown.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Compiles the component, unless its code is ready, and lets it show what it is.
pub(super) fn admit(
    engine: &Engine,
    bytes: &[u8],
    ready: Option<Component>,
    limits: &Limits,
    ticks: u64,
) -> Result<Admitted, LoadError> {
    check_bytes(bytes, limits)?;
    let component = match ready {
        Some(component) => component,
        None => {
            complexity::check(bytes, limits)?;
            guarded(|| Component::from_binary(engine, bytes))?
        }
    };
    let declared = component.component_type();
    let imports = imports(engine, &declared)?;
    let exports: Vec<String> = declared.exports(engine).map(|(name, _)| name.to_string()).collect();
    let Exported { name: interface, contract, policy } = interface(engine, &declared, &exports)?;
    for function in ["describe", "reconcile"] {
        if !matches!(policy.get_export(engine, function).map(|export| export.ty), Some(ComponentItem::ComponentFunc(_)))
        {
            return Err(LoadError::MissingFunction { interface, function });
        }
    }
    resources(&component, limits)?;

    let outer = component.get_export_index(None, interface.as_str());
    let index = |function: &'static str| {
        outer
            .and_then(|outer| component.get_export_index(Some(&outer), function))
            .ok_or_else(|| LoadError::MissingFunction { interface: interface.clone(), function })
    };
    let (describe, reconcile) = (index("describe")?, index("reconcile")?);
    let instance_pre = Linker::new(engine).instantiate_pre(&component).map_err(invalid)?;

    let description = call::describe(&instance_pre, &describe, limits, ticks)
        .map_err(|stop| refuse("describe", stop, LoadError::Describe))?;
    description::check(&description)?;
    if speaks("description", &description.contract)? != contract {
        let description = description::shorten(&description.contract);
        return Err(LoadError::TwoContracts { interface: contract.to_string(), description });
    }
    call::reconcile_checked(&instance_pre, (&reconcile, contract), &Snapshot::default(), limits, ticks)
        .map_err(|stop| refuse("reconcile", stop, LoadError::Trial))?;
    Ok(Admitted { instance_pre, reconcile, contract, description, imports, exports })
}

/// A compiler is large, and the bytes are anybody's: where it panics, they are refused, and nobody else notices.
fn guarded<T>(compile: impl FnOnce() -> wasmtime::Result<T>) -> Result<T, LoadError> {
    match catch_unwind(AssertUnwindSafe(compile)) {
        Ok(compiled) => compiled.map_err(invalid),
        Err(_) => Err(LoadError::Invalid { reason: "the compiler panicked; its words are on standard error".into() }),
    }
}

fn invalid(error: wasmtime::Error) -> LoadError {
    let reason = format!("{error:#}");
    // wasmtime compares with the pool's limits while it compiles, and has no type for the outcome; a test holds the words.
    if reason.contains("pooling allocator") {
        return LoadError::Oversized { reason: error.root_cause().to_string() };
    }
    LoadError::Invalid { reason }
}

fn refuse(function: &'static str, stop: call::Stop, failed: fn(GuestFailure) -> LoadError) -> LoadError {
    match stop {
        call::Stop::Signature(reason) => LoadError::Signature { function, reason },
        call::Stop::Failure(failure) => failed(failure),
    }
}

/// The names of the imports when all of them are types only; else an error that names those which are not.
fn imports(engine: &Engine, declared: &ComponentType) -> Result<Vec<String>, LoadError> {
    let mut names = Vec::new();
    let mut callable = Vec::new();
    for (name, import) in declared.imports(engine) {
        names.push(name.to_string());
        match import.ty {
            ComponentItem::Type(_) => {}
            ComponentItem::ComponentInstance(instance) => {
                let functions =
                    instance.exports(engine).filter(|(_, export)| !matches!(export.ty, ComponentItem::Type(_)));
                callable.extend(functions.map(|(function, _)| format!("{name} {function}")));
            }
            ComponentItem::ComponentFunc(_)
            | ComponentItem::CoreFunc(_)
            | ComponentItem::Module(_)
            | ComponentItem::Component(_)
            | ComponentItem::Resource(_) => callable.push(name.to_string()),
        }
    }
    if callable.is_empty() { Ok(names) } else { Err(LoadError::Imports { imports: callable }) }
}

/// The exported interface of the contract.
struct Exported {
    /// Its full name.
    name: String,
    contract: Contract,
    policy: ComponentInstance,
}

fn interface(engine: &Engine, declared: &ComponentType, exports: &[String]) -> Result<Exported, LoadError> {
    for (name, export) in declared.exports(engine) {
        let Some(("", version)) = name.strip_prefix(INTERFACE).map(|rest| rest.split_once('@').unwrap_or((rest, "")))
        else {
            continue;
        };
        let contract = speaks("exported interface", version)?;
        if let ComponentItem::ComponentInstance(policy) = export.ty {
            return Ok(Exported { name: name.to_string(), contract, policy });
        }
    }
    Err(LoadError::OtherWorld { expected: format!("{INTERFACE}@{CONTRACT}"), exports: exports.to_vec() })
}

/// The contract of a version that is spoken here.
fn speaks(place: &'static str, found: &str) -> Result<Contract, LoadError> {
    let refused = || LoadError::Contract { place, found: description::shorten(found), ours: Contract::list() };
    Contract::of(found).ok_or_else(refused)
}

fn resources(component: &Component, limits: &Limits) -> Result<(), LoadError> {
    // `None` only when core modules are imported, and imports have been refused.
    let Some(needed) = component.resources_required() else {
        return Err(LoadError::Imports { imports: vec!["a core module".into()] });
    };
    let within = |resource, needed: u64, limit: u64| match needed > limit {
        true => Err(LoadError::Resources { resource, needed, limit }),
        false => Ok(()),
    };
    within("linear memories", needed.num_memories.into(), limits.memories.into())?;
    within("tables", needed.num_tables.into(), limits.tables.into())?;
    let memory = needed.max_initial_memory_size.unwrap_or(0).saturating_mul(64 * 1024);
    within("bytes of memory at the start", memory, limits.memory_bytes)?;
    within("table elements at the start", needed.max_initial_table_size.unwrap_or(0), limits.table_elements.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn a_compiler_that_panics_refuses_the_component() {
        let error = guarded::<()>(|| panic!("a mistake of the compiler's")).unwrap_err();
        assert_eq!(error.class(), "invalid");
        assert_eq!(guarded(|| Ok(1)).unwrap(), 1);
    }
}
