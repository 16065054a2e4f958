//! What compiling a function takes: time and memory, in one unit, which is about 0.2 µs or 30 bytes.
//!
//! The weights were measured with functions that do one thing ten thousand times. The compiler's time grows with the square of the
//! blocks of a function.

use wasmparser::{BinaryReaderError, BlockType, CompositeInnerType, FunctionBody, Operator, SubType};

/// What a function costs when there is nothing in it.
pub(super) const FUNCTION: u64 = 500;
/// A block, for itself.
const BLOCK: u64 = 50;
const BLOCK_SPACE: u64 = 300;
/// Blocks times blocks, over this.
const SQUARE: u64 = 20;
const CALL: u64 = 50;
const CALL_SPACE: u64 = 120;
const BYTE_SPACE: u64 = 8;
/// The values that a call or a jump passes along for nothing, and what each further one costs.
const FREE_VALUES: u64 = 16;
const VALUE: u64 = 50;
/// How many variables a level of nested loops weighs as much as.
const LOOP: u64 = 10;

/// How many values go in and come out.
#[derive(Clone, Copy, Default)]
pub(super) struct Values {
    parameters: u64,
    results: u64,
}

impl Values {
    pub(super) fn of(ty: &SubType) -> Values {
        match &ty.composite_type.inner {
            CompositeInnerType::Func(ty) => {
                Values { parameters: ty.params().len() as u64, results: ty.results().len() as u64 }
            }
            _ => Values::default(),
        }
    }

    fn both(self) -> u64 {
        self.parameters + self.results
    }
}

/// The module at hand.
#[derive(Default)]
pub(super) struct Module {
    pub(super) types: Vec<Values>,
    /// Of each function, the imported ones first, its type.
    pub(super) functions: Vec<u32>,
    /// The function whose body comes next.
    pub(super) next: usize,
}

impl Module {
    fn ty(&self, index: u32) -> Values {
        self.types.get(index as usize).copied().unwrap_or_default()
    }

    fn function(&self, index: usize) -> Values {
        self.functions.get(index).map(|ty| self.ty(*ty)).unwrap_or_default()
    }

    fn block(&self, ty: BlockType) -> Values {
        match ty {
            BlockType::Empty => Values::default(),
            BlockType::Type(_) => Values { parameters: 0, results: 1 },
            BlockType::FuncType(index) => self.ty(index),
        }
    }
}

/// What is in a function's body.
pub(super) struct Body {
    bytes: u64,
    /// What may live across its blocks.
    variables: u64,
    blocks: u64,
    /// The most loops inside of each other.
    deepest: u64,
    calls: u64,
    /// What is passed along beyond what is free.
    values: u64,
}

/// A block that is open.
struct Open {
    is_loop: bool,
    /// What a jump to it passes along.
    values: u64,
}

impl Body {
    /// As far as the code can be read; what cannot is not compiled either.
    pub(super) fn of(body: &FunctionBody<'_>, module: &mut Module) -> Body {
        let own = module.function(module.next);
        module.next += 1;
        let mut found = Body {
            bytes: body.as_bytes().len() as u64,
            variables: locals(body).unwrap_or_default().saturating_add(own.parameters),
            blocks: 1,
            deepest: 0,
            calls: 0,
            values: 0,
        };
        // An error ends the count.
        let _ = found.read(body, module, own);
        found
    }

    fn read(&mut self, body: &FunctionBody<'_>, module: &Module, own: Values) -> Result<(), BinaryReaderError> {
        let mut open = vec![Open { is_loop: false, values: own.results }];
        let mut loops = 0_u64;
        for operator in body.get_operators_reader()? {
            match operator? {
                Operator::Loop { blockty } => {
                    let ty = module.block(blockty);
                    open.push(Open { is_loop: true, values: ty.parameters });
                    loops += 1;
                    self.deepest = self.deepest.max(loops);
                    self.block(ty.both());
                }
                Operator::Block { blockty }
                | Operator::If { blockty }
                | Operator::TryTable { try_table: wasmparser::TryTable { ty: blockty, .. } } => {
                    let ty = module.block(blockty);
                    open.push(Open { is_loop: false, values: ty.results });
                    self.block(ty.both());
                }
                Operator::End => loops -= u64::from(open.pop().is_some_and(|open| open.is_loop)),
                Operator::Else => self.block(0),
                Operator::BrIf { relative_depth } => self.block(target(&open, relative_depth)),
                Operator::Br { relative_depth } => self.pass(target(&open, relative_depth)),
                Operator::Return => self.pass(own.results),
                // Each target of a table is a way into a block, and each block has one for the values.
                Operator::BrTable { targets } => {
                    let ways = u64::from(targets.len()).saturating_add(1);
                    self.blocks += ways / 16;
                    let values = target(&open, targets.default()).saturating_sub(FREE_VALUES);
                    self.values = self.values.saturating_add(values.saturating_mul(ways.min(open.len() as u64)));
                }
                Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                    self.call(module.function(function_index as usize));
                }
                // What it points at is looked up first, which may fail.
                Operator::CallIndirect { type_index, .. } | Operator::ReturnCallIndirect { type_index, .. } => {
                    self.blocks += 2;
                    self.call(module.ty(type_index));
                }
                Operator::CallRef { type_index } | Operator::ReturnCallRef { type_index } => {
                    self.call(module.ty(type_index));
                }
                Operator::TableGet { .. }
                | Operator::TableGrow { .. }
                | Operator::TableCopy { .. }
                | Operator::TableFill { .. } => {
                    self.blocks += 2;
                    self.calls += 1;
                }
                // They call the host.
                Operator::MemoryGrow { .. }
                | Operator::MemoryCopy { .. }
                | Operator::MemoryFill { .. }
                | Operator::MemoryInit { .. }
                | Operator::TableInit { .. }
                | Operator::RefFunc { .. } => {
                    self.calls += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn block(&mut self, values: u64) {
        self.blocks += 1;
        self.pass(values);
    }

    fn call(&mut self, ty: Values) {
        self.calls += 1;
        self.pass(ty.both());
    }

    fn pass(&mut self, values: u64) {
        self.values = self.values.saturating_add(values.saturating_sub(FREE_VALUES));
    }

    /// What grows faster than the code.
    fn knots(&self) -> u64 {
        let across = self.variables.saturating_add(self.deepest.saturating_mul(LOOP));
        let square = self.blocks.saturating_mul(self.blocks) / SQUARE;
        self.blocks.saturating_mul(across).saturating_add(square).saturating_add(self.values.saturating_mul(VALUE))
    }

    /// In time; of all functions, one after the other.
    pub(super) fn time(&self) -> u64 {
        let code = self.bytes + CALL * self.calls + BLOCK * self.blocks;
        FUNCTION.saturating_add(code).saturating_add(self.knots())
    }

    /// In memory, which is given back after each function; and in time, when that is more.
    pub(super) fn space(&self) -> u64 {
        let code = BYTE_SPACE * self.bytes + CALL_SPACE * self.calls + BLOCK_SPACE * self.blocks;
        FUNCTION.saturating_add(code).saturating_add(self.knots())
    }
}

/// What a jump so many blocks out passes along.
fn target(open: &[Open], depth: u32) -> u64 {
    let at = open.len().checked_sub(1 + depth as usize);
    at.and_then(|at| open.get(at)).map_or(0, |open| open.values)
}

fn locals(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    body.get_locals_reader()?.into_iter().try_fold(0_u64, |sum, group| Ok(sum.saturating_add(u64::from(group?.0))))
}
