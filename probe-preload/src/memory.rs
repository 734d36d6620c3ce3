//! Unmaps most of the shared memory before the program locks its memory (`mlockall`). Otherwise the kernel would make
//! all of the shared memory real memory: tens of gigabytes, of which hardly anything is used. Or the kernel would
//! refuse the call, because the shared memory counts against the limit. So all rings are unmapped except those of the
//! process's own threads, and a few more if these hardly count. A thread that finds no mapped free ring is handled like
//! any thread without a ring: its operations are counted.
//!
//! The same happens before a program limits its address space (`RLIMIT_AS`), of which the shared memory takes
//! gigabytes. The shared memory keeps a small part of the limit, so that the program can have as many threads and as
//! much memory as without longpole.

use crate::process::{self, Shared};
use crate::system::{self, PAGE};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use probe_abi::interpose::{CONTROL_WORDS, RingWord, SharedWord};

/// Number of rings that stay for further threads, if the program may lock any amount of memory.
const MORE: u64 = 16;
/// A limit above this number of bytes counts as no limit.
const MUCH: u64 = 1 << 30;
/// Largest number of rings for which `LEFT` has a bit.
const RINGS: usize = 1 << 14;

/// One bit for each ring that is still mapped. Valid if `FEW` is set.
static LEFT: [AtomicU64; RINGS / 64] = [const { AtomicU64::new(0) }; RINGS / 64];
static FEW: AtomicBool = AtomicBool::new(false);

/// The rings that are still mapped. Exists only if most rings are unmapped.
#[derive(Clone, Copy)]
pub struct Few(());

impl Few {
    /// Whether this ring is still mapped.
    pub fn is_left(self, ring: usize) -> bool {
        LEFT.get(ring / 64).is_some_and(|word| word.load(Ordering::Relaxed) >> (ring % 64) & 1 == 1)
    }
}

/// The rings that are still mapped; `None` if all rings are.
pub fn few() -> Option<Few> {
    FEW.load(Ordering::Relaxed).then_some(Few(()))
}

/// The shared memory may take one part in this number of a limit on the address space.
pub const PART_OF_ADDRESSES: u64 = 64;

/// Must be called when the program is about to lock its memory.
pub fn lock_comes() {
    leave_few(|_| if system::may_lock(MUCH) { MORE } else { 0 });
}

/// Must be called when the program is about to limit its address space to this many bytes.
pub fn limit_comes(bytes: u64) {
    let part = bytes / PART_OF_ADDRESSES;
    let all = process::shared().map_or(0, |shared| shared.layout.words() as u64 * 8);
    if part < all {
        leave_few(|ring_bytes| (part / ring_bytes.max(1)).min(MORE));
    }
}

/// Unmaps all rings except those of this process's threads and some further ones. `more` computes the number of further
/// rings from the size of a ring in bytes.
fn leave_few(more: impl FnOnce(u64) -> u64) {
    // This thread takes its ring now, so that its ring stays mapped.
    crate::records::ring::prepare();
    let Some(shared) = process::shared() else { return };
    if FEW.load(Ordering::Relaxed) || shared.layout.rings > RINGS {
        return;
    }
    let epoch = process::epoch();
    if !process::is_recorded(epoch) {
        give_up(&shared, |_| false);
        return;
    }
    let more = more(shared.rings_at().1 as u64);
    let first = shared.word(SharedWord::NEXT_RING).fetch_add(more, Ordering::Relaxed);
    let more = first..first.saturating_add(more);
    let process = u64::from(process::process_of(epoch));
    let is_kept = |ring: usize| {
        let owner = shared.word(shared.layout.control(ring) + RingWord::OWNER).load(Ordering::Relaxed);
        more.contains(&(ring as u64)) || owner >> 32 == process
    };
    give_up(&shared, is_kept);
}

/// Unmaps the rings that are not kept. From then on, no thread takes one of them. The bits are set before the
/// unmapping, because a thread that is just about to take a ring must see which ones stay.
fn give_up(shared: &Shared, is_kept: impl Fn(usize) -> bool) {
    let rings = shared.layout.rings;
    let keep = |ring: usize| {
        if let Some(word) = LEFT.get(ring / 64) {
            word.fetch_or(1 << (ring % 64), Ordering::Relaxed);
        }
    };
    (0..rings).filter(|&ring| is_kept(ring)).for_each(keep);
    FEW.store(true, Ordering::SeqCst);
    // A thread may have taken a ring in between. So the kept rings are marked a second time.
    (0..rings).filter(|&ring| is_kept(ring)).for_each(keep);
    let (start, bytes) = shared.rings_at();
    unmap_between(start, bytes, rings, |ring| Few(()).is_left(ring));
    // Control blocks begin after the header, which is one page. Only whole pages of them are unmapped.
    let (start, block) = (start - (shared.layout.ring(0) - shared.layout.control(0)) * 8, CONTROL_WORDS * 8);
    unmap_between(start, PAGE, (rings * block) / PAGE, |page| {
        let rings = page * PAGE / block..=((page + 1) * PAGE - 1) / block;
        rings.into_iter().any(|ring| Few(()).is_left(ring))
    });
}

/// Unmaps those of several equal parts of memory that are not kept. Adjacent parts are unmapped with one call.
fn unmap_between(start: usize, bytes: usize, parts: usize, is_kept: impl Fn(usize) -> bool) {
    let mut from = 0;
    for part in 0..=parts {
        if part == parts || is_kept(part) {
            if part > from {
                // SAFETY: no thread of this process has one of these rings, or takes one from now on.
                unsafe { system::unmap(start + from * bytes, (part - from) * bytes) };
            }
            from = part + 1;
        }
    }
}
