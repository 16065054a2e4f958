//! The sans-IO driver (SPEC 5, 6): the only writer of observed state. It folds inputs, runs passes, records an
//! operation as pending before it leaves, and computes the next wake-up. It performs nothing, awaits nothing and reads
//! no clock.

mod budget;
pub mod canon;
pub mod checkpoint;
mod columns;
pub mod command;
mod dispatch;
pub mod driver;
mod fold;
mod folding;
mod forget;
pub mod guard;
pub mod id;
pub mod invariants;
pub mod io;
pub mod ledger;
pub mod mutation;
mod order;
mod orders;
mod orphan;
mod pass;
pub mod pause;
pub mod policy;
pub mod property;
pub mod record;
pub mod recovery;
pub mod rollout;
mod rows;
pub mod schedule;
pub mod shape;
pub mod state;
mod surge;
mod survey;
mod sweep;
mod totals;
pub mod validate;
pub mod view;
pub mod watch;
