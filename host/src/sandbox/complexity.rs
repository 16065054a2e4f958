//! What compiling a component would cost, before it is compiled (SPEC 9).
//!
//! A compiler can be made to work for minutes, and to take gigabytes, by a file of some kilobytes: with many tiny functions, with
//! loops inside of loops, with many variables that live across many blocks. Compiling cannot be interrupted, so a walk over
//! the code counts first.

use wasmparser::{BinaryReaderError, CanonicalFunction, FunctionBody, Operator, Parser, Payload};

use super::error::LoadError;
use super::limits::Limits;

/// The part of the whole that a single function may have: it bounds the memory that is needed at once.
const SHARE_OF_ONE: u64 = 10;
/// What a function costs when there is nothing in it.
const FUNCTION: u64 = 500;
/// The most components that may lie in each other: what a component of parts needs is a handful, and the compiler's memory grows
/// with the square.
const DEEPEST: u64 = 20;
/// The most modules and components in all.
const PARTS: u64 = 1_000;
/// How many variables a level of nested loops weighs as much as.
const LOOP: u64 = 10;

/// Counts; a component that would be too expensive is refused. What is no component is left to the compiler, which has the
/// better words.
pub(super) fn check(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    let mut count = Count::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(payload) = payload else { return Ok(()) };
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
                    let parameters = |ty: wasmparser::SubType| match ty.composite_type.inner {
                        wasmparser::CompositeInnerType::Func(ty) => ty.params().len(),
                        _ => 0,
                    };
                    count.module.parameters.extend(group.into_types().map(parameters));
                }
            }
            Payload::FunctionSection(functions) => {
                for ty in functions {
                    let Ok(ty) = ty else { return Ok(()) };
                    count.module.types.push(ty);
                }
            }
            Payload::CodeSectionEntry(body) => {
                count.functions += 1;
                let one = count.function(&body);
                count.total = count.total.saturating_add(one);
                limit("complexity of a function", one, limits.complexity / SHARE_OF_ONE)?;
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    let Ok(function) = function else { return Ok(()) };
                    // Each is code of its own.
                    count.functions += 1;
                    if matches!(function, CanonicalFunction::Lower { .. }) {
                        count.total = count.total.saturating_add(100 * FUNCTION);
                    }
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

/// The module at hand.
#[derive(Default)]
struct Module {
    /// Of each type, how many parameters it has.
    parameters: Vec<usize>,
    /// Of each function, its type.
    types: Vec<u32>,
    /// The functions seen so far.
    next: usize,
}

impl Count {
    /// Its bytes, and its blocks times what may live across them.
    fn function(&mut self, body: &FunctionBody<'_>) -> u64 {
        let module = &mut self.module;
        let parameters = module.types.get(module.next).and_then(|ty| module.parameters.get(*ty as usize));
        let parameters = parameters.copied().unwrap_or_default() as u64;
        module.next += 1;
        let bytes = body.as_bytes().len() as u64;
        let variables = locals(body).unwrap_or_default().saturating_add(parameters);
        let Blocks { blocks, deepest } = Blocks::of(body);
        let across = variables.saturating_add(deepest.saturating_mul(LOOP));
        FUNCTION.saturating_add(bytes).saturating_add(blocks.saturating_mul(across))
    }
}

fn locals(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    body.get_locals_reader()?.into_iter().try_fold(0_u64, |sum, group| Ok(sum.saturating_add(u64::from(group?.0))))
}

struct Blocks {
    blocks: u64,
    /// The most loops inside of each other.
    deepest: u64,
}

impl Blocks {
    /// As far as the code can be read; what cannot is not compiled either.
    fn of(body: &FunctionBody<'_>) -> Blocks {
        let mut found = Blocks { blocks: 1, deepest: 0 };
        let Ok(operators) = body.get_operators_reader() else { return found };
        // For each open block, whether it is a loop.
        let mut open = Vec::new();
        let mut loops = 0_u64;
        for operator in operators {
            let Ok(operator) = operator else { break };
            match operator {
                Operator::Loop { .. } => {
                    open.push(true);
                    loops += 1;
                    found.deepest = found.deepest.max(loops);
                }
                Operator::Block { .. } | Operator::If { .. } | Operator::TryTable { .. } => open.push(false),
                Operator::End => {
                    if open.pop() == Some(true) {
                        loops -= 1;
                    }
                    continue;
                }
                // Each target of a table is a way into a block.
                Operator::BrTable { targets } => found.blocks += u64::from(targets.len()) / 16,
                Operator::BrIf { .. } | Operator::Else => {}
                _ => continue,
            }
            found.blocks += 1;
        }
        found
    }
}
