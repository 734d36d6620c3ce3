//! Read-write locks: the functions in which threads wait for them, and their futex words.

use std::collections::BTreeMap;

/// The mode in which a thread wants a read-write lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadWrite {
    /// Together with other readers.
    Reading,
    /// Alone.
    Writing,
}

impl ReadWrite {
    /// The other mode.
    pub fn other(self) -> ReadWrite {
        match self {
            ReadWrite::Reading => ReadWrite::Writing,
            ReadWrite::Writing => ReadWrite::Reading,
        }
    }
}

/// Bytes from the first to the last futex word of a C library's read-write lock (glibc's `__pthread_rwlock_arch_t`:
/// `__readers` at 0, `__wrphase_futex` at 8, `__writers_futex` at 12).
const REACH_OF_C: u64 = 12;
/// Bytes from the first futex word to the last in Rust's read-write lock (`std::sys::sync::rwlock::futex`: `state` at
/// 0, `writer_notify` at 4).
const REACH_OF_RUST: u64 = 4;

/// The mode in which a function waits for a read-write lock, and the bytes from such a lock's first futex word to its last.
///
/// `None`: the function does not wait for a read-write lock.
pub fn read_write_wait(function: &str) -> Option<(ReadWrite, u64)> {
    let has = |part: &str| function.contains(part);
    if has("pthread_rwlock") {
        let mode = if has("rdlock") {
            ReadWrite::Reading
        } else if has("wrlock") {
            ReadWrite::Writing
        } else {
            return None;
        };
        return Some((mode, REACH_OF_C));
    }
    // Other crates have functions of these names, but in other modules.
    let is_rust = has("rwlock") && has("futex");
    let mode = match () {
        () if is_rust && has("read_contended") => ReadWrite::Reading,
        () if is_rust && has("write_contended") => ReadWrite::Writing,
        () => return None,
    };
    Some((mode, REACH_OF_RUST))
}

/// First word of the lock that each word belongs to, by process and address. Values of `words` are the bytes from a lock's
/// first word to its last.
pub fn read_write_words(words: &BTreeMap<(u32, u64), u64>) -> BTreeMap<(u32, u64), u64> {
    let mut first: Option<(u32, u64)> = None;
    let of_lock = |(&(pid, address), &reach): (&(u32, u64), &u64)| {
        let same = first.filter(|first| first.0 == pid && address - first.1 <= reach);
        let of = same.unwrap_or((pid, address));
        first = Some(of);
        ((pid, address), of.1)
    };
    words.iter().map(of_lock).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_wait_for_a_read_write_lock_are_known_by_name() {
        let mode = |name| read_write_wait(name).map(|(mode, _)| mode);
        for reading in [
            "pthread_rwlock_rdlock",
            "__pthread_rwlock_timedrdlock64",
            "std::sys::sync::rwlock::futex::RwLock::read_contended",
        ] {
            assert_eq!(mode(reading), Some(ReadWrite::Reading), "{reading}");
        }
        for writing in ["___pthread_rwlock_wrlock", "std::sys::sync::rwlock::futex::RwLock::write_contended"]
        {
            assert_eq!(mode(writing), Some(ReadWrite::Writing), "{writing}");
        }
        for other in ["pthread_rwlock_unlock", "pthread_mutex_lock", "read_contended", "pthread_create"] {
            assert_eq!(mode(other), None, "{other}");
        }
    }

    #[test]
    fn words_of_neighbouring_read_write_locks_are_kept_apart() {
        let c = [((1, 8), 12), ((1, 12), 12), ((1, 64), 12), ((2, 68), 12)];
        let firsts: Vec<u64> = read_write_words(&BTreeMap::from(c)).into_values().collect();
        assert_eq!(firsts, [8, 8, 64, 68]);
        let rust = [((1, 0), 4), ((1, 4), 4), ((1, 8), 4), ((1, 12), 4)];
        let firsts: Vec<u64> = read_write_words(&BTreeMap::from(rust)).into_values().collect();
        assert_eq!(firsts, [0, 0, 8, 8]);
    }
}
