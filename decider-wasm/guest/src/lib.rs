//! What every decider written in Rust needs to become a component, so that a policy is two functions and a line:
//!
//! ```ignore
//! #![no_std]
//! decider_guest::export_decider!(describe, reconcile);
//! ```
//!
//! with `fn describe() -> Description` and `fn reconcile(&Snapshot) -> Plan` in the types of the `decider` crate, which
//! this one re-exports. The crate brings the bindings, an allocator that only rises, and a panic that traps: an instance
//! lives for one call. Elsewhere than on wasm it is empty, so that a workspace with guests still compiles natively.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

extern crate alloc;

pub use decider;

mod allocator;
mod convert;

/// Generated from `wit/decider.wit`.
#[allow(missing_docs)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "decider",
        pub_export_macro: true,
        default_bindings_module: "decider_guest::bindings",
    });
}

pub use convert::{description, plan, snapshot};

#[global_allocator]
static ALLOCATOR: allocator::Rising = allocator::Rising;

/// The host sees `unreachable`. There is nobody to print a message to.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Exports a decider: `describe` is a `fn() -> Description`, `reconcile` a `fn(&Snapshot) -> Plan`.
#[macro_export]
macro_rules! export_decider {
    ($describe:path, $reconcile:path) => {
        struct Exported;

        impl $crate::bindings::exports::homeostat::decider::policy::Guest for Exported {
            fn describe() -> $crate::bindings::exports::homeostat::decider::policy::Description {
                $crate::description($describe())
            }

            fn reconcile(
                snapshot: $crate::bindings::exports::homeostat::decider::policy::Snapshot,
            ) -> $crate::bindings::exports::homeostat::decider::policy::Plan {
                $crate::plan($reconcile(&$crate::snapshot(snapshot)))
            }
        }

        $crate::bindings::export!(Exported with_types_in $crate::bindings);
    };
}
