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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const KIB_OF_PIECES: usize = 40_000;

    /// How much of the mapping that this lies in is resident, in KiB: what other tests do at the same time does not count.
    fn resident_kib(within: &[u8]) -> usize {
        let address = within.as_ptr() as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let around = |line: &str| {
            let (from, to) = line.split(' ').next()?.split_once('-')?;
            Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
        };
        let mut lines = maps.lines().skip_while(|line| !around(line).is_some_and(|range| range.contains(&address)));
        let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn what_a_thread_has_freed_goes_back() {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return;
        }
        let freed = std::thread::spawn(|| {
            // Small pieces: large ones go back by themselves. The last one keeps the arena's end where it is.
            let mut pieces: Vec<Box<[u8]>> = (0..KIB_OF_PIECES).map(|_| vec![1; 1024].into_boxed_slice()).collect();
            let last = pieces.pop().unwrap();
            let held = resident_kib(&last);
            drop(pieces);
            (held, last)
        });
        let (held, last) = freed.join().unwrap();
        give_back();
        let kept = resident_kib(&last);
        assert!(kept + KIB_OF_PIECES / 2 < held, "{kept} of {held} KiB are left");
    }
}
