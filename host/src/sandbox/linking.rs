//! Calls from a component to another inside of one file.
//!
//! For each of them wasmtime writes an adapter, which copies every type of the call. Small files make it write gigabytes of
//! them, what they do costs no fuel, and with one memory for a module it panics. A decider is one component: it has no such
//! call, and each function that it lowers is an import.

use wasmparser::{CanonicalFunction, ComponentAlias, ComponentExternalKind, ComponentTypeRef, Payload};

/// The components that have begun and not ended, the outermost first, and the modules in them.
#[derive(Default)]
pub(super) struct Linking {
    open: Vec<Space>,
    calls: u64,
}

/// What a component has defined so far: for each function and each instance, whether it was imported.
#[derive(Default)]
struct Space {
    functions: Vec<bool>,
    instances: Vec<bool>,
}

impl Space {
    fn add(&mut self, kind: ComponentExternalKind, imported: bool) {
        match kind {
            ComponentExternalKind::Func => self.functions.push(imported),
            ComponentExternalKind::Instance => self.instances.push(imported),
            _ => {}
        }
    }

    fn imported(space: &[bool], index: u32) -> bool {
        space.get(index as usize).copied().unwrap_or_default()
    }
}

impl Linking {
    /// The calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Takes the next part of the file. What cannot be read is not compiled either.
    pub(super) fn see(&mut self, payload: &Payload<'_>) {
        match payload {
            Payload::Version { .. } => return self.open.push(Space::default()),
            Payload::End(_) => return drop(self.open.pop()),
            _ => {}
        }
        // What an inner component imports, an outer one gives it: another's function as well.
        let outermost = self.open.len() == 1;
        let Some(space) = self.open.last_mut() else { return };
        match payload {
            Payload::ComponentImportSection(imports) => {
                for import in imports.clone().into_iter().map_while(Result::ok) {
                    match import.ty {
                        ComponentTypeRef::Func(_) => space.functions.push(outermost),
                        ComponentTypeRef::Instance(_) => space.instances.push(outermost),
                        _ => {}
                    }
                }
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases.clone().into_iter().map_while(Result::ok) {
                    if let ComponentAlias::InstanceExport { kind, instance_index, .. } = alias {
                        space.add(kind, Space::imported(&space.instances, instance_index));
                    }
                }
            }
            Payload::ComponentInstanceSection(instances) => {
                space.instances.extend(instances.clone().into_iter().map_while(Result::ok).map(|_| false));
            }
            // What is exported has a new index, too.
            Payload::ComponentExportSection(exports) => {
                for export in exports.clone().into_iter().map_while(Result::ok) {
                    let from = match export.kind {
                        ComponentExternalKind::Func => &space.functions,
                        _ => &space.instances,
                    };
                    space.add(export.kind, Space::imported(from, export.index));
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions.clone().into_iter().map_while(Result::ok) {
                    match function {
                        CanonicalFunction::Lift { .. } => space.functions.push(false),
                        CanonicalFunction::Lower { func_index, .. } => {
                            self.calls += u64::from(!Space::imported(&space.functions, func_index));
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}
