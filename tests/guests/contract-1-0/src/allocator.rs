//! An allocator that only rises: an instance lives for one call, so nothing is worth freeing.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32::{memory_grow, memory_size};
use core::cell::UnsafeCell;

const PAGE: usize = 64 * 1024;

unsafe extern "C" {
    /// Where the linker ends the static data; everything above is free.
    static __heap_base: u8;
}

pub(crate) struct Rising;

struct Next(UnsafeCell<usize>);

// SAFETY: the target has no threads.
unsafe impl Sync for Next {}

/// The first free address; 0 before the first allocation.
static NEXT: Next = Next(UnsafeCell::new(0));

/// Makes memory reach `end`. Grows by an eighth more than asked where that is allowed, so that filling columns does
/// not grow page by page.
#[cold]
fn reach(end: usize) -> bool {
    let missing = end.div_ceil(PAGE).saturating_sub(memory_size(0));
    let more = missing.saturating_add(memory_size(0) / 8);
    missing == 0 || memory_grow(0, more) != usize::MAX || memory_grow(0, missing) != usize::MAX
}

// SAFETY: blocks are handed out once, from rising addresses above the static data and below the memory's end, aligned
// as asked; a block is extended only when it is the last one.
unsafe impl GlobalAlloc for Rising {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe {
            let next = match *NEXT.0.get() {
                0 => &raw const __heap_base as usize,
                next => next,
            };
            let start = (next + layout.align() - 1) & !(layout.align() - 1);
            let Some(end) = start.checked_add(layout.size()) else { return core::ptr::null_mut() };
            if end > memory_size(0) * PAGE && !reach(end) {
                return core::ptr::null_mut();
            }
            *NEXT.0.get() = end;
            start as *mut u8
        }
    }

    #[inline]
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    /// Fresh memory of an instance is zero and never used twice.
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        unsafe { self.alloc(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        unsafe {
            if size <= layout.size() {
                return block;
            }
            if block as usize + layout.size() == *NEXT.0.get() {
                let Some(end) = (block as usize).checked_add(size) else { return core::ptr::null_mut() };
                if end > memory_size(0) * PAGE && !reach(end) {
                    return core::ptr::null_mut();
                }
                *NEXT.0.get() = end;
                return block;
            }
            let Ok(layout_new) = Layout::from_size_align(size, layout.align()) else { return core::ptr::null_mut() };
            let moved = self.alloc(layout_new);
            if !moved.is_null() {
                core::ptr::copy_nonoverlapping(block, moved, layout.size());
            }
            moved
        }
    }
}
