//! What compiling a component would cost, before it is compiled (SPEC 9).
//!
//! A compiler can be made to work for minutes, and to take gigabytes, by a file of some kilobytes: with many tiny functions, with
//! many blocks in one, with loops inside of loops, with many variables that live across many blocks. Compiling cannot be interrupted, so a walk over
//! the code counts first.

use wasmparser::{CanonicalFunction, Parser, Payload, TypeRef};

use super::error::LoadError;
use super::limits::Limits;
use super::linking::Linking;
use super::weight::{Body, FUNCTION, Module, Values};

/// The part of the whole that a single function may have: it bounds the memory that is needed at once.
const SHARE_OF_ONE: u64 = 10;
/// The most components that may lie in each other: what a component of parts needs is a handful, and the compiler's memory grows
/// with the square.
const DEEPEST: u64 = 20;
/// The most modules and components in all.
const PARTS: u64 = 1_000;

/// Counts; a component that would be too expensive is refused. What is no component is left to the compiler, which has the
/// better words.
pub(super) fn check(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    let (mut count, mut linking) = (Count::default(), Linking::default());
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else { return Ok(()) };
        linking.see(&payload);
        limit("number of calls between its components", linking.calls(), 0)?;
        match payload {
            // Core modules are not nested: types and functions are those of the module at hand.
            Payload::Version { .. } => {
                count.module = Module::default();
                count.open += 1;
                count.parts += 1;
                limit("number of components in each other", count.open, DEEPEST)?;
                limit("number of modules and components", count.parts, PARTS)?;
            }
            Payload::End(_) => count.open = count.open.saturating_sub(1),
            Payload::TypeSection(types) => {
                for group in types {
                    let Ok(group) = group else { return Ok(()) };
                    count.module.types.extend(group.into_types().map(|ty| Values::of(&ty)));
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let Ok(import) = import else { return Ok(()) };
                    if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = import.ty {
                        count.module.functions.push(ty);
                        count.module.next += 1;
                    }
                }
            }
            Payload::FunctionSection(functions) => {
                for ty in functions {
                    let Ok(ty) = ty else { return Ok(()) };
                    count.module.functions.push(ty);
                }
            }
            Payload::CodeSectionEntry(body) => {
                count.functions += 1;
                let body = Body::of(&body, &mut count.module);
                count.total = count.total.saturating_add(body.time());
                limit("complexity of a function", body.space(), limits.complexity / SHARE_OF_ONE)?;
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    let Ok(function) = function else { return Ok(()) };
                    // Each is code of its own.
                    count.functions += 1;
                    let lowered = matches!(function, CanonicalFunction::Lower { .. });
                    count.total = count.total.saturating_add(if lowered { 100 * FUNCTION } else { FUNCTION });
                }
            }
            _ => {}
        }
        limit("complexity of its code", count.total, limits.complexity)?;
        let (found, most) = (count.functions, u64::from(limits.functions));
        if found > most {
            return Err(LoadError::TooComplex { what: "number of functions", found, limit: most });
        }
    }
    Ok(())
}

fn limit(what: &'static str, found: u64, limit: u64) -> Result<(), LoadError> {
    match found > limit {
        true => Err(LoadError::TooComplex { what, found, limit }),
        false => Ok(()),
    }
}

#[derive(Default)]
struct Count {
    functions: u64,
    total: u64,
    /// Those that have begun and not ended.
    open: u64,
    parts: u64,
    module: Module,
}
