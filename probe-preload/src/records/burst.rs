//! Records a mutex, or a read-write lock for reading, that one thread takes and releases many times without a waiter.
//! The two calls read the clock once each and change a few words in the control block. One record describes all these
//! calls ([`probe_abi::Burst`]).
//!
//! Three facts make a burst exact. The mutex is taken by `pthread_mutex_trylock`, which never waits. A release first
//! checks for waiters. And each mutex has a word with its last holder, which shows that no other thread has held it in
//! between. So the order in which threads held a mutex stays complete: a burst has sums instead of times only for a
//! period in which one thread alone held the mutex. A read-write lock has a word that counts its writers. While the
//! word stays the same, no writer has held the lock. The order of readers does not matter.
//!
//! When there is hardly any room for records, bursts are not written any more. Their operations are only counted
//! ([`BURST_COUNTED`]), so that operations with a waiter can still be written. Any other operation of the thread ends
//! its burst ([`settle`]). So does an operation on a mutex of a special kind.

use crate::clock;
use crate::operations::mutex::{lock_word, plain_kind};
use crate::operations::{mutex, rwlock};
use crate::process;
use crate::records::ring::{Own, own_at_hand};
use crate::records::word::add_one;
use crate::tls::tls;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use probe_abi::interpose::{BURST_COUNTED, Phase, RingWord};
use probe_abi::{Burst, Kind, MOST_APART_NS, MOST_HELD_NS, MOST_SPAN_NS, OperationFlags};

/// One operation in this number is measured for its cost. The measured operation is a release, and its acquisition is
/// assumed to cost the same.
const MEASURED: u32 = 64;

/// Number of words for the last holders of mutexes. If two mutexes share a word, each only ends the other's bursts.
const OWNERS: usize = 4096;
static LAST: [AtomicU32; OWNERS] = [const { AtomicU32::new(0) }; OWNERS];

/// Number of words that count the writers of read-write locks. If two locks share a word, each only ends the other's
/// bursts.
const WRITTEN: usize = 1024;
static WRITES: [AtomicU32; WRITTEN] = [const { AtomicU32::new(0) }; WRITTEN];

/// Whether bursts are possible. A burst replaces locking by trying, so no other library between this one and libc may
/// depend on which functions the program calls.
static POSSIBLE: AtomicBool = AtomicBool::new(false);
/// Whether a burst of acquisitions for reading is possible.
static POSSIBLE_READS: AtomicBool = AtomicBool::new(false);

/// Functions of one library that belong together are less than this number of bytes apart.
const NEAR: usize = 1 << 16;

/// Decides whether bursts are possible. Must be called after the originals of the functions for mutexes and read-write
/// locks have been looked up.
pub fn find() {
    let [lock, trylock, unlock] =
        [&mutex::lock::REAL, &mutex::trylock::REAL, &mutex::unlock::REAL].map(crate::real::Real::get);
    let possible = crate::real::is_glibc() && lock.abs_diff(trylock) < NEAR && lock.abs_diff(unlock) < NEAR;
    POSSIBLE.store(possible, Ordering::Relaxed);
    let [read, try_read, unlock] =
        [&rwlock::read::REAL, &rwlock::try_read::REAL, &rwlock::unlock::REAL].map(crate::real::Real::get);
    let possible = crate::real::is_glibc() && read.abs_diff(try_read) < NEAR && read.abs_diff(unlock) < NEAR;
    POSSIBLE_READS.store(possible, Ordering::Relaxed);
}

/// The word of an object in a table.
#[inline(always)]
fn word_of<const PLACES: usize>(table: &[AtomicU32; PLACES], object: usize) -> Option<&AtomicU32> {
    table.get(((object >> 3) ^ (object >> 15)) % PLACES)
}

/// Notes that this thread holds a read-write lock for writing. Only the thread that holds the lock may call this
/// function.
#[inline(always)]
pub fn is_written(lock: usize) {
    if let Some(writes) = word_of(&WRITES, lock) {
        writes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Notes that this thread holds a mutex. Returns `true` if no other thread has held the mutex since this thread last
/// did. Only the thread that holds the mutex may call this function.
#[inline(always)]
pub fn is_again_mine(mutex: usize) -> bool {
    // The address of a thread's own words identifies the thread as long as it exists. During a pause, threads do not
    // note what they hold. So the number of pauses is part of the word, and words from before a pause match no thread.
    let pauses = process::shared().map_or(0, |shared| shared.recording() as u32);
    let me =
        ((core::ptr::from_ref(tls()) as usize >> 6) as u32).wrapping_add(pauses.wrapping_mul(0x9e37_79b1));
    let Some(last) = word_of(&LAST, mutex) else { return false };
    let mine = last.load(Ordering::Relaxed) == me;
    if !mine {
        last.store(me, Ordering::Relaxed);
    }
    mine
}

/// The thread's words, if its operations may become part of a burst now. The thread must be in no other operation, and
/// not in a signal handler that interrupts a change of these words.
#[inline(always)]
fn may_fold() -> Option<(Own, u64)> {
    let own = own_at_hand()?;
    let version = own.word(RingWord::BURST_VERSION).load(Ordering::Relaxed);
    let idle = own.word(RingWord::PHASE).load(Ordering::Relaxed) as u8 == Phase::Idle as u8;
    let whole = own.word(RingWord::LEAVE_OUT).load(Ordering::Relaxed) == 0 || !process::has_one_thread();
    (idle && whole && version.is_multiple_of(2)).then_some((own, version))
}

/// Marks the words as being changed, until [`changed`]. Must be called before anything is read for them.
#[inline(always)]
fn changes(own: &Own, version: u64) {
    own.word(RingWord::BURST_VERSION).store(version + 1, Ordering::Relaxed);
    fence(Ordering::Release);
}

#[inline(always)]
fn changed(own: &Own, version: u64) {
    own.word(RingWord::BURST_VERSION).store(version + 2, Ordering::Release);
}

/// Takes a mutex if it is free and a burst is possible. `false`: nothing has been done.
#[inline(always)]
pub fn takes(mutex: usize, caller: usize) -> bool {
    if !POSSIBLE.load(Ordering::Relaxed) || mutex == 0 {
        return false;
    }
    let Some((own, version)) = may_fold() else { return false };
    let Some(flags) = plain_kind(mutex).filter(|_| lock_word(mutex) == 0) else { return false };
    if mutex::trylock::REAL.call([mutex]) != 0 {
        return false;
    }
    let mine = is_again_mine(mutex);
    has(&own, version, mutex, caller, u64::from(flags), mine);
    true
}

/// Takes a read-write lock for reading if no writer has it or waits for it. `false`: nothing has been done.
#[inline(always)]
pub fn takes_read(lock: usize, caller: usize) -> bool {
    if !POSSIBLE_READS.load(Ordering::Relaxed) || lock == 0 || rwlock::may_have_writer(lock) {
        return false;
    }
    let Some((own, version)) = may_fold() else { return false };
    if rwlock::try_read::REAL.call([lock]) != 0 {
        return false;
    }
    let writes = word_of(&WRITES, lock).map_or(0, |writes| writes.load(Ordering::Relaxed));
    let kind = u64::from(OperationFlags::READS) | u64::from(writes & MOST_WRITES) << 16;
    has(&own, version, lock, caller, kind, true);
    true
}

/// Mask for the count of writers in a burst's words. Only if this number of writers plus one came within a moment, the
/// count would look unchanged.
const MOST_WRITES: u32 = 0x7fff;

/// Notes that this thread has taken the object. `kind` has the flags and, above them, the count of writers, and must
/// stay the same within a burst.
#[inline(always)]
fn has(own: &Own, version: u64, object: usize, caller: usize, kind: u64, mine: bool) {
    changes(own, version);
    let now_ns = clock::now_ns();
    if !mine || !goes_on(own, object, caller, kind, now_ns) {
        begins(own, object, caller, kind, now_ns);
    }
    own.word(RingWord::BURST_SINCE).store(now_ns, Ordering::Relaxed);
    changed(own, version);
}

/// Whether the open burst may include one more acquisition.
#[inline(always)]
fn goes_on(own: &Own, mutex: usize, caller: usize, kind: u64, now_ns: u64) -> bool {
    let word = |index| own.word(index).load(Ordering::Relaxed);
    word(RingWord::BURST_OBJECT) == mutex as u64
        && (word(RingWord::BURST_NUMBER) & !BURST_COUNTED) >> 32 == kind
        && word(RingWord::BURST_CALLER) == caller as u64
        && word(RingWord::BURST_SINCE) == 0
        && now_ns.wrapping_sub(word(RingWord::BURST_ENDED)) < MOST_APART_NS
        && now_ns.wrapping_sub(word(RingWord::BURST_BEGAN)) < MOST_SPAN_NS
        && word(RingWord::BURST_COUNT) < u64::from(u16::MAX)
}

/// Begins a new burst.
#[inline(never)]
fn begins(own: &Own, mutex: usize, caller: usize, kind: u64, now_ns: u64) {
    write(own);
    let number = if own.is_pressed() {
        BURST_COUNTED
    } else {
        add_one(own.word(RingWord::ATTEMPTS)) & u64::from(u32::MAX)
    };
    for (index, value) in [
        (RingWord::BURST_OBJECT, mutex as u64),
        (RingWord::BURST_CALLER, caller as u64),
        (RingWord::BURST_RELEASE, 0),
        (RingWord::BURST_NUMBER, number | kind << 32),
        (RingWord::BURST_BEGAN, now_ns),
        (RingWord::BURST_ENDED, now_ns),
        (RingWord::BURST_COUNT, 0),
        (RingWord::BURST_HELD, 0),
        (RingWord::BURST_HELD_LEAST, u64::from(u32::MAX)),
        (RingWord::BURST_APART_LEAST, u64::from(u32::MAX)),
    ] {
        own.word(index).store(value, Ordering::Relaxed);
    }
}

/// Notes that a mutex without a waiter is about to be released. `false`: nothing has been noted. The program may free
/// the mutex as soon as it is released, so it is not read afterwards.
#[inline(always)]
pub fn gives(mutex: usize, caller: usize) -> bool {
    if !POSSIBLE.load(Ordering::Relaxed) || mutex == 0 {
        return false;
    }
    let Some((own, version)) = may_fold() else { return false };
    is_taken(&own, mutex) && lock_word(mutex) == 1 && gave(&own, version, caller)
}

/// Like `gives`, for a read-write lock for which no writer waits, if this thread has it for reading.
#[inline(always)]
pub fn gives_read(lock: usize, caller: usize) -> bool {
    if !POSSIBLE_READS.load(Ordering::Relaxed) || lock == 0 {
        return false;
    }
    let Some((own, version)) = may_fold() else { return false };
    is_taken(&own, lock) && !rwlock::may_have_writer(lock) && gave(&own, version, caller)
}

/// Whether the open burst is of this object, and the object is taken now.
#[inline(always)]
fn is_taken(own: &Own, object: usize) -> bool {
    let get = |index: usize| own.word(index).load(Ordering::Relaxed);
    get(RingWord::BURST_SINCE) != 0 && get(RingWord::BURST_OBJECT) == object as u64
}

/// Notes that the burst's object is about to be released. `false`: the release does not fit the burst, and nothing has
/// been noted.
#[inline(always)]
fn gave(own: &Own, version: u64, caller: usize) -> bool {
    let word = |index: usize| own.word(index);
    let get = |index: usize| word(index).load(Ordering::Relaxed);
    let since_ns = get(RingWord::BURST_SINCE);
    let (pairs, release) = (get(RingWord::BURST_COUNT), get(RingWord::BURST_RELEASE));
    if pairs == 0 {
        if i32::try_from((caller as u64).wrapping_sub(get(RingWord::BURST_CALLER)) as i64).is_err() {
            return false;
        }
    } else if release != caller as u64 {
        return false;
    }
    let called_ns = called_ns(own);
    changes(own, version);
    let now_ns = clock::now_ns();
    let held_ns = now_ns.saturating_sub(since_ns);
    let short = held_ns < MOST_HELD_NS;
    if short {
        let least = |index: usize, value: u64| {
            if value < get(index) {
                word(index).store(value, Ordering::Relaxed);
            }
        };
        if pairs == 0 {
            word(RingWord::BURST_RELEASE).store(caller as u64, Ordering::Relaxed);
        } else {
            least(RingWord::BURST_APART_LEAST, since_ns.saturating_sub(get(RingWord::BURST_ENDED)));
        }
        least(RingWord::BURST_HELD_LEAST, held_ns);
        word(RingWord::BURST_HELD).store(get(RingWord::BURST_HELD) + held_ns, Ordering::Relaxed);
        word(RingWord::BURST_ENDED).store(now_ns, Ordering::Relaxed);
        word(RingWord::BURST_SINCE).store(0, Ordering::Relaxed);
        word(RingWord::BURST_COUNT).store(pairs + 1, Ordering::Relaxed);
        // The burst's record itself counts as one of its operations.
        let (sum, more) = match get(RingWord::BURST_NUMBER) & BURST_COUNTED {
            0 => (RingWord::BURST_OPERATIONS, if pairs == 0 { 1 } else { 2 }),
            _ => (RingWord::COUNTED, 2),
        };
        word(sum).store(get(sum) + more, Ordering::Relaxed);
    }
    changed(own, version);
    if short && called_ns != 0 {
        tell_cost(own, called_ns);
    }
    short
}

/// The present time, if the cost of this release will be measured; otherwise 0.
#[inline(always)]
fn called_ns(own: &Own) -> u64 {
    let operations = own.tls.operations.get().wrapping_add(1);
    own.tls.operations.set(operations);
    if operations.is_multiple_of(MEASURED) { clock::now_ns() } else { 0 }
}

/// Adds the cost of a release, once for the release and once for its acquisition. Each operation reads the clock once.
/// The time of the second reading, which only the measurement makes, is subtracted.
#[cold]
#[inline(never)]
fn tell_cost(own: &Own, called_ns: u64) {
    let done_ns = clock::now_ns();
    let reading_ns = clock::now_ns().saturating_sub(done_ns);
    let took_ns = done_ns.saturating_sub(called_ns).saturating_sub(reading_ns);
    if took_ns <= probe_abi::interpose::MOST_COST_NS / 2 {
        let (sum, costs) = (own.word(RingWord::COST_NS), own.word(RingWord::COSTS));
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(2 * took_ns), Ordering::Relaxed);
        costs.store(costs.load(Ordering::Relaxed).wrapping_add(2), Ordering::Relaxed);
    }
}

/// Writes the open burst as a record, because another operation follows.
#[inline(always)]
pub fn settle(own: &Own) {
    if own.word(RingWord::BURST_OBJECT).load(Ordering::Relaxed) != 0 {
        settle_open(own);
    }
}

#[inline(never)]
fn settle_open(own: &Own) {
    let version = own.word(RingWord::BURST_VERSION).load(Ordering::Relaxed);
    if !version.is_multiple_of(2) {
        // This is a signal handler that has interrupted a change of the burst. The change continues afterwards.
        return;
    }
    changes(own, version);
    write(own);
    own.word(RingWord::BURST_OBJECT).store(0, Ordering::Relaxed);
    own.word(RingWord::BURST_SINCE).store(0, Ordering::Relaxed);
    changed(own, version);
}

/// Writes the open burst into the ring. If an acquisition has not been released yet, writes that one after it.
fn write(own: &Own) {
    let word = |index: usize| own.word(index).load(Ordering::Relaxed);
    let (object, caller) = (word(RingWord::BURST_OBJECT), word(RingWord::BURST_CALLER));
    if object == 0 {
        return;
    }
    let (pairs, since_ns) = (word(RingWord::BURST_COUNT), word(RingWord::BURST_SINCE));
    let number = word(RingWord::BURST_NUMBER);
    let (is_counted, flags) = (number & BURST_COUNTED != 0, number >> 32 & 0xffff);
    let number = number as u32;
    if pairs > 0 && !is_counted {
        let (began_ns, ended_ns) = (word(RingWord::BURST_BEGAN), word(RingWord::BURST_ENDED));
        let half = |value: u64| value & u64::from(u32::MAX);
        let apart_least = if pairs > 1 { word(RingWord::BURST_APART_LEAST) } else { 0 };
        let words = [
            object,
            caller,
            half(ended_ns.saturating_sub(began_ns)) | word(RingWord::BURST_HELD) << 32,
            half(word(RingWord::BURST_HELD_LEAST)) | half(apart_least) << 32,
            half(word(RingWord::BURST_RELEASE).wrapping_sub(caller)) | (pairs & 0xffff) << 32 | flags << 48,
        ];
        if !own.put(Kind::Burst, number, ended_ns, words) {
            let lost = own.word(RingWord::BURST_LOST);
            lost.store(lost.load(Ordering::Relaxed) + (2 * pairs - 1), Ordering::Relaxed);
        }
    }
    if since_ns != 0 {
        let has_number = pairs == 0 && !is_counted;
        let lock_number = if has_number { u64::from(number) } else { add_one(own.word(RingWord::ATTEMPTS)) };
        let last = Burst::taking(flags as u16) as u64 | (flags & !u64::from(OperationFlags::READS)) << 16;
        own.put(Kind::Operation, lock_number as u32, since_ns, [since_ns, object, 0, caller, last]);
    }
}
