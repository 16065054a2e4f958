//! The built-in decider as a component: glue only. The ladder is in the `decider` crate, the bindings in
//! `decider-guest`. Compiled by `decider-artifact`'s build script; elsewhere than on wasm it is empty.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

decider_guest::export_decider!(decider_guest::decider::describe, decider_guest::decider::reconcile);
