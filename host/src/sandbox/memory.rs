//! What a compiler leaves behind (SPEC 9: the host does not grow because of a guest).
//!
//! A compiler works on threads of its own, and glibc keeps what each of them has freed, in an arena for each: a few hundred
//! megabytes after a component of twelve.
#![allow(unsafe_code)]

use std::time::Duration;

/// A load that took less has left little.
pub(super) const LONG: Duration = Duration::from_millis(100);

/// Gives memory that was freed back to the system. Takes some tens of milliseconds where there is much of it: not for an async
/// worker. Does nothing where the allocator is not glibc's.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: the signature is that of malloc.h; it may be called at any time, from any thread, and touches only
        // memory that nobody holds.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn resident_bytes() -> u64 {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    #[test]
    fn what_a_thread_has_freed_goes_back() {
        // Small pieces: large ones go back by themselves. The last piece of all keeps the arena's end where it is.
        const MIB: u64 = 1 << 20;
        let piece = || vec![1_u8; 1000].into_boxed_slice();
        let (kept, before) = std::thread::spawn(move || {
            let mut pieces: Vec<Box<[u8]>> = (0..200_000).map(|_| piece()).collect();
            let last = pieces.pop();
            drop(pieces);
            (last, resident_bytes())
        })
        .join()
        .unwrap();
        give_back();
        let after = resident_bytes();
        assert!(after + 100 * MIB < before, "{} MiB of {} are left", after / MIB, before / MIB);
        drop(kept);
    }
}
