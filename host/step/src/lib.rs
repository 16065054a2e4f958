//! A journal, step by step (`docs/step.md`): forwards and back, what a record changed, which rule decided and which row of
//! the table it was. [`Session`] does commands, [`run`] a list of them; neither knows a terminal.
//!
//! [`Words`] and [`text`] say records, instants and lengths of time in words, for whoever shows them.

mod command;
pub mod facts;
mod page;
mod script;
mod session;
mod show;
mod survey;
pub mod table;
mod tape;
pub mod text;
mod trail;
mod words;

pub use command::{Command, CommandError, HELP, Place, Target, Way};
pub use page::WIDTH;
pub use script::{ScriptError, run};
pub use session::{Answer, Session, StepError};
pub use tape::{Scene, Tape};
pub use trail::Trail;
pub use words::{Words, became, ended, observed, swapped, verb};
