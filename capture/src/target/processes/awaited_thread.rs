//! Finds, in the program's own memory, the thread that another thread waits for. If a wait began before the recording,
//! nothing else shows that. The C library keeps the holder of a mutex next to the futex word (glibc, `struct
//! __pthread_mutex_s`) or in it (musl; priority inheritance, futex(2)). The word that a join waits for holds the number
//! of the thread that is to end. The memory may hold anything else, so the analysis trusts it only if such waits form a
//! circle.

use super::proc_dir::ProcDir;
use super::proc_text::status_field;
use engine::event::{AwaitedThread, FutexFact, ThreadFact, ThreadState, awaited_futex};
use probe_abi::{Call, futex_operation};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Largest number of threads of a process that are examined: a deadlock has only a few.
const MOST: usize = 4_096;
/// `FUTEX_TID_MASK` (include/uapi/linux/futex.h).
const TID: u32 = 0x3fff_ffff;
/// `FUTEX_WAITERS` (include/uapi/linux/futex.h).
const WAITERS: u32 = 0x8000_0000;
/// glibc's value of a mutex with waiters; no thread has this or a smaller number.
const LOCKED: u32 = 2;
/// Bytes of glibc's mutex that are read: lock, count, owner, users, kind.
const BYTES: usize = 20;
/// `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`.
const WAITS: [u32; 3] = [0, 6, 9];

/// Sets the awaited thread in the facts of a process's sleeping threads.
pub(super) fn add(folder: &ProcDir, threads: &mut [ThreadFact]) {
    let Ok(memory) = File::open(folder.path("mem")) else { return };
    let numbers = Numbers::of(folder, threads);
    for thread in threads.iter_mut().filter(|thread| thread.state == ThreadState::Sleeping).take(MOST) {
        let Ok(call) = folder.text(&format!("task/{}/syscall", thread.tid)) else { continue };
        let Some(futex) = futex(&call) else { continue };
        let mut bytes = [0; BYTES];
        // Near the end of a mapping there may be fewer bytes than a mutex has.
        let length = memory.read_at(&mut bytes, futex.word).unwrap_or(0);
        let inner = bytes.get(..length).and_then(|bytes| holder(bytes, futex.operation));
        let Some(tid) = inner.and_then(|inner| numbers.host(inner)) else { continue };
        thread.awaits = Some(AwaitedThread { futex, tid });
    }
}

/// The futex call without a time limit in a line of /proc/PID/task/TID/syscall: `202 0x55 0x80 0x2 0x0 0x0 0x0 0x7f 0x7f`.
fn futex(call: &str) -> Option<FutexFact> {
    let mut words = call.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (argument0, argument1, _value, limit) = (argument()?, argument()? as u32, argument()?, argument()?);
    if limit != 0 {
        return None;
    }
    let futex = awaited_futex(Call { number, argument0, argument1 })?;
    (futex.words == 0 && WAITS.contains(&futex_operation(futex.operation))).then_some(futex)
}

/// The number of the thread that holds the lock or is to end, in the process's own PID namespace.
fn holder(bytes: &[u8], operation: u32) -> Option<u32> {
    const PRIVATE: u32 = 128;
    let at = |place: usize| {
        let bytes = bytes.get(place * 4..place * 4 + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let word = at(0)?;
    // A join, or a mutex whose word has holder and waiters' bit. Without that bit the word may be a counter.
    if word & TID > LOCKED {
        return (operation & PRIVATE == 0 || word & WAITERS != 0).then_some(word & TID);
    }
    // A mutex of glibc counts its users while it is held, and its kind is a small number.
    let is_mutex = operation & PRIVATE != 0
        && word == LOCKED
        && at(3).is_some_and(|users| users > 0)
        && at(4).is_some_and(|kind| kind < 1024);
    at(2).filter(|owner| is_mutex && *owner > 0)
}

/// The threads of a process, by their numbers in the process's own PID namespace.
struct Numbers(BTreeMap<u32, u32>);

impl Numbers {
    fn of(folder: &ProcDir, threads: &[ThreadFact]) -> Numbers {
        let ids = |file: &str| {
            let status = folder.text(file).unwrap_or_default();
            let ids = status_field(&status, "NSpid").unwrap_or_default().split_ascii_whitespace();
            ids.filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
        };
        let has_own = ids("status").len() > 1;
        let inner = |tid: u32| {
            if has_own { ids(&format!("task/{tid}/status")).last().copied() } else { Some(tid) }
        };
        Numbers(threads.iter().filter_map(|thread| Some((inner(thread.tid)?, thread.tid))).collect())
    }

    fn host(&self, inner: u32) -> Option<u32> {
        self.0.get(&inner).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn the_futex_of_a_thread_is_read_from_its_system_call() {
        let call = "202 0x5581f040 0x80 0x2 0x0 0x0 0x0 0x7f64 0x7f65\n";
        assert_eq!(futex(call), Some(FutexFact { word: 0x5581_f040, operation: 0x80, words: 0 }));
        for other in
            ["running\n", "0 0x3 0x7f\n", "202 5 0x80\n", "202 0x40\n", "202 0x40 0x81 0x1 0x0\n", ""]
        {
            assert_eq!(futex(other), None, "{other}");
        }
        assert_eq!(futex("202 0x40 0x80 0x2 0x7ffe10 0x0 0x0 0x7f64 0x7f65\n"), None, "a time limit");
    }

    #[test]
    fn the_holder_of_a_mutex_is_read_from_memory_around_its_word() {
        const PRIVATE_WAIT: u32 = 128;
        const JOIN: u32 = 9 | 256;
        assert_eq!(holder(&bytes(&[2, 0, 4711, 1, 0]), PRIVATE_WAIT), Some(4711));
        // Priority inheritance and musl: with the bit for waiters.
        assert_eq!(holder(&bytes(&[0x8000_1267, 0, 0, 0, 0]), 6 | 128), Some(4711));
        assert_eq!(holder(&bytes(&[4711]), JOIN), Some(4711));
        assert_eq!(holder(&bytes(&[4711, 0, 0, 0, 0]), PRIVATE_WAIT), None, "a counter");
        // Bytes of another kind of lock with three states and data behind its word, and bytes that were cut off.
        assert_eq!(holder(&bytes(&[2, 0, 4711, 0, 0]), PRIVATE_WAIT), None);
        assert_eq!(holder(&bytes(&[2, 0, 4711, 1, 0x7f00_0000]), PRIVATE_WAIT), None);
        assert_eq!(holder(&bytes(&[1, 0, 4711, 1, 0]), PRIVATE_WAIT), None);
        assert_eq!(holder(&bytes(&[2, 0]), PRIVATE_WAIT), None);
        assert_eq!(holder(&[2, 0], PRIVATE_WAIT), None);
    }
}
