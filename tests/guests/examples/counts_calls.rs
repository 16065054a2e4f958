//! Counts its calls in a static, on the heap and in grown memory, and answers with the three counts in `wake-at-ms`:
//! bits 0 to 15, 16 to 31 and 32 to 47. Each has to be one for ever.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![cfg(target_arch = "wasm32")]

extern crate alloc;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use decider::{Plan, Snapshot};
use hostile_guests::describe;

/// Far above what the module starts with.
const GROWN: usize = 8 << 20;
const PAGE: usize = 64 << 10;

static CALLS: AtomicU64 = AtomicU64::new(0);
static ON_HEAP: AtomicPtr<u64> = AtomicPtr::new(core::ptr::null_mut());

fn reconcile(_: &Snapshot) -> Plan {
    let in_static = CALLS.fetch_add(1, Ordering::Relaxed) + 1;

    if ON_HEAP.load(Ordering::Relaxed).is_null() {
        ON_HEAP.store(Box::into_raw(Box::new(0)), Ordering::Relaxed);
    }
    let pages = core::arch::wasm32::memory_size(0);
    let wanted = (GROWN + PAGE) / PAGE;
    if pages < wanted {
        core::arch::wasm32::memory_grow(0, wanted - pages);
    }
    // SAFETY: the box is never freed; the grown page lies far above the heap of a guest that allocates a few bytes.
    let (on_heap, in_grown) = unsafe {
        let heap = ON_HEAP.load(Ordering::Relaxed);
        heap.write_volatile(heap.read_volatile() + 1);
        let grown = GROWN as *mut u64;
        grown.write_volatile(grown.read_volatile() + 1);
        (heap.read_volatile(), grown.read_volatile())
    };
    Plan { wake_at_ms: in_static | on_heap << 16 | in_grown << 32, ..Plan::default() }
}

decider_guest::export_decider!(describe, reconcile);
