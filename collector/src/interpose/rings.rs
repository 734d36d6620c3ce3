//! All rings of the shared memory, as further rings beside the kernel's.
//!
//! **What a turn may promise.** The clock is read, then every ring is emptied as far as it was filled. A thread takes
//! its place before it reads the clock for the record's time, so that what is not yet there is newer than this turn's
//! clock, but for places taken and not yet filled: their times are newer than the last turn that did not see them. A
//! thread may be pre-empted right there, so the promise waits for it, though not for longer than [`PATIENCE_NS`]: a
//! stopped process must not hold up all others. What comes later than that is counted as late.

use super::cost::{OperationCosts, Sums};
use super::ring::{Emptied, GENEROUS, Ring, Turn};
use super::shared::Shared;
use crate::probe::OperationsInside;
use engine::event::PendingOperation;
use probe_abi::interpose::SharedWord;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;

/// How long a record that is being written holds up the others.
pub(super) const PATIENCE_NS: u64 = 1_000_000_000;
/// A place that is being written for longer is looked at: its thread may be gone.
const DOUBT_NS: u64 = 20_000_000;
/// How often it is looked what more rings than a few say of operations that are left out.
const LEFT_OUT_EVERY_NS: u64 = 500_000_000;
/// Records of one ring in one turn.
const MOST_PER_RING: u64 = 32_768;
/// A thread that does nothing is looked for so often: the kernel's word that it has ended got lost at most.
const LOOK_EVERY_NS: u64 = 2_000_000_000;
/// Threads in one turn that are looked for: each is a system call, or a few.
const LOOKS: usize = 16;
/// The same when no ring is left that nobody has had.
const LOOKS_WHEN_SCARCE: usize = 64;
/// Turns in which a ring of an ended thread is to be freed, before that is left to those looks.
const TRIES: u32 = 20;
/// Operations of ended threads that are kept.
const MOST_PENDING: usize = 10_000;

/// The rings and what is known of them.
#[derive(Debug)]
pub(super) struct Rings {
    pub shared: Shared,
    /// What recording a thread may cost of its time; `None`: no limit.
    share: Option<f64>,
    rings: Vec<Ring>,
    /// Which ring a thread has.
    by_owner: FxHashMap<u64, usize>,
    /// Threads that the kernel says have ended, and whose rings have not yet been freed; how often that was tried.
    ended: Vec<(u64, u32)>,
    /// The clock of the last turn.
    last_ns: u64,
    /// Where to look next whether threads live.
    next_look: usize,
    /// What threads that have ended were in the middle of.
    pending: Vec<PendingOperation>,
    /// What recording has cost the threads.
    costs: OperationCosts,
    /// What was left out, and what that took, as of [`Rings::left_out_seen_ns`]; the rest is not used.
    left_out_inside: OperationsInside,
    left_out_seen_ns: u64,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turned {
    pub records: usize,
    /// Everything up to here has been handed over; `None`: there is more to take first.
    pub complete_to_ns: Option<u64>,
}

impl Rings {
    pub fn new(shared: Shared, share: Option<f64>) -> Rings {
        let rather = u64::from(share.is_some());
        shared.word(SharedWord::RATHER_LEAVE_OUT).store(rather, Ordering::Relaxed);
        Rings {
            shared,
            share,
            rings: Vec::new(),
            by_owner: FxHashMap::default(),
            ended: Vec::new(),
            last_ns: 0,
            next_look: 0,
            pending: Vec::new(),
            costs: OperationCosts::new(),
            left_out_inside: OperationsInside::default(),
            left_out_seen_ns: 0,
        }
    }

    /// Rings that have been in use.
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// A thread has ended, as the kernel's records say: it writes nothing more.
    pub fn thread_ended(&mut self, pid: u32, tid: u32) {
        if self.ended.len() < self.shared.layout().rings {
            self.ended.push((u64::from(pid) << 32 | u64::from(tid), 0));
        }
    }

    /// Empties all rings. `clock` is `CLOCK_MONOTONIC`; `lives` tells of a `(pid, tid)` whether it does.
    pub fn drain(
        &mut self,
        clock: &mut dyn FnMut() -> u64,
        lives: &mut dyn FnMut(u32, u32) -> bool,
        sink: &mut dyn FnMut(usize, &[u8]),
    ) -> Turned {
        let before_ns = clock();
        let last_ns = std::mem::replace(&mut self.last_ns, before_ns);
        let next = self.shared.word(SharedWord::NEXT_RING).load(Ordering::Acquire);
        self.notice_new(next);
        let frugal = self.rings.len() > GENEROUS;
        let last = self.shared.word(SharedWord::RECORDING).load(Ordering::Relaxed) == 0;
        let mut complete_to_ns = Some(before_ns);
        let (mut total, mut costs) = (0, Sums::default());
        for (number, ring) in self.rings.iter_mut().enumerate() {
            let turn = Turn {
                shared: &self.shared,
                number,
                before_ns,
                last_ns,
                most: MOST_PER_RING,
                share: self.share,
                frugal,
                last,
            };
            let (records, emptied) = ring.read(&turn, clock, &mut |bytes| sink(number, bytes));
            if ring.is_new {
                (ring.is_new, ring.looked_ns) = (false, before_ns);
                self.by_owner.insert(ring.owner, number);
            }
            total += records;
            if records > 0 {
                costs = costs.plus(ring.take_costs(&turn));
            }
            if let Some(since_ns) = ring.writing_since_ns
                && before_ns.saturating_sub(since_ns) > DOUBT_NS
            {
                let gone = ring.owner != 0 && !lives((ring.owner >> 32) as u32, ring.owner as u32);
                if gone || before_ns.saturating_sub(since_ns) > PATIENCE_NS {
                    ring.give_up(&turn, gone);
                }
            }
            if let Some(since_ns) = ring.folding_since_ns
                && before_ns.saturating_sub(since_ns) > DOUBT_NS
                && (last || ring.owner != 0 && !lives((ring.owner >> 32) as u32, ring.owner as u32))
            {
                let turn = Turn { last: true, ..turn };
                total += ring.give_up_folding(&turn, &mut |bytes| sink(number, bytes));
            }
            let folding = ring.folding_since_ns;
            let folding = folding.filter(|since_ns| before_ns.saturating_sub(*since_ns) <= PATIENCE_NS);
            let bound_ns = match ring.writing_since_ns {
                Some(since_ns) if before_ns.saturating_sub(since_ns) <= PATIENCE_NS => since_ns,
                _ => before_ns,
            };
            let bound_ns = folding.map_or(bound_ns, |since_ns| since_ns.min(bound_ns));
            complete_to_ns = match emptied {
                Emptied::Yes => complete_to_ns.map(|to| to.min(bound_ns)),
                Emptied::More => None,
            };
        }
        self.costs.add(costs);
        self.see_left_out(before_ns);
        self.free_ended(lives);
        self.free_some(before_ns, lives);
        Turned { records: usize::try_from(total).unwrap_or(usize::MAX), complete_to_ns }
    }

    /// Rings that threads have taken since.
    fn notice_new(&mut self, next: u64) {
        let used = usize::try_from(next).unwrap_or(usize::MAX).min(self.shared.layout().rings);
        if used > self.rings.len() {
            self.rings.resize_with(used, Ring::default);
        }
    }

    /// Gives rings of threads that have ended to others. Whether they are gone is looked at all the same: a thread that
    /// runs a new program has the ids of one that has ended for it, and its own ring.
    fn free_ended(&mut self, lives: &mut dyn FnMut(u32, u32) -> bool) {
        let mut freed = false;
        for (owner, tries) in std::mem::take(&mut self.ended) {
            let Some(&number) = self.by_owner.get(&owner) else { continue };
            if !lives((owner >> 32) as u32, owner as u32) && self.free(number) {
                freed = true;
            } else if tries < TRIES {
                // It is on its way out, or something is still in there.
                self.ended.push((owner, tries + 1));
            }
        }
        if freed {
            self.reuse();
        }
    }

    /// Frees a ring of a thread that is gone, if everything has been read.
    fn free(&mut self, number: usize) -> bool {
        let Some(ring) = self.rings.get_mut(number) else { return false };
        let turn = Turn::looking(&self.shared, number);
        if !ring.is_empty(&turn) {
            return false;
        }
        if self.pending.len() < MOST_PENDING {
            self.pending.extend(ring.pending(&self.shared, number));
        }
        if self.by_owner.get(&ring.owner) == Some(&number) {
            self.by_owner.remove(&ring.owner);
        }
        ring.free(&self.shared, number);
        true
    }

    /// Threads look for free rings from the first one on: they would go round by themselves, this keeps memory together.
    fn reuse(&mut self) {
        let next = self.shared.word(SharedWord::NEXT_RING).swap(0, Ordering::AcqRel);
        self.notice_new(next);
    }

    /// Looks whether threads live, in case the kernel's word that they have ended got lost. A few each time: whoever is left has their turn later.
    fn free_some(&mut self, now_ns: u64, lives: &mut dyn FnMut(u32, u32) -> bool) {
        let scarce = self.rings.len() == self.shared.layout().rings;
        let mut looks = if scarce { LOOKS_WHEN_SCARCE } else { LOOKS };
        let mut freed = false;
        for _ in 0..self.rings.len() {
            self.next_look = (self.next_look + 1) % self.rings.len();
            let number = self.next_look;
            let Some(ring) = self.rings.get_mut(number) else { return };
            let turn = Turn::looking(&self.shared, number);
            if std::mem::take(&mut ring.active) {
                ring.looked_ns = now_ns;
            }
            if now_ns.saturating_sub(ring.looked_ns) < LOOK_EVERY_NS || ring.writing_since_ns.is_some() {
                continue;
            }
            ring.looked_ns = now_ns;
            // It may have been taken without anything written yet.
            ring.see_owner(&turn);
            if ring.owner == 0 {
                continue;
            }
            if !lives((ring.owner >> 32) as u32, ring.owner as u32) {
                freed |= self.free(number);
            }
            looks -= 1;
            if looks == 0 {
                break;
            }
        }
        if freed {
            self.reuse();
        }
    }

    /// Records that did not fit.
    pub fn dropped(&self) -> u64 {
        let without = self.shared.word(SharedWord::WITHOUT_RING).load(Ordering::Relaxed);
        self.rings.iter().enumerate().fold(without, |sum, (number, ring)| {
            sum.saturating_add(ring.dropped(&self.shared, number)).saturating_add(ring.torn)
        })
    }

    /// Operations of threads alone in their process that were left out, to keep to the budget.
    pub fn left_out(&self) -> u64 {
        let left_out = |number| Ring::left_out(&self.shared, number);
        (0..self.rings.len()).map(left_out).fold(0, u64::saturating_add)
    }

    /// Operations of threads that may touch neither the clock nor the kernel: they were only counted.
    pub fn forbidden(&self) -> u64 {
        let without = self.shared.word(SharedWord::FORBIDDEN).load(Ordering::Relaxed);
        let forbidden = |number| Ring::forbidden(&self.shared, number);
        (0..self.rings.len()).map(forbidden).fold(without, u64::saturating_add)
    }

    /// Operations recorded so far, and those left out as of a moment ago, with what that took of their threads' time.
    pub fn cost(&self) -> OperationsInside {
        let (recorded, recorded_ns) = self.costs.total();
        OperationsInside { recorded, recorded_ns, ..self.left_out_inside }
    }

    /// Looks at all rings, so only now and then where there are many.
    fn see_left_out(&mut self, now_ns: u64) {
        let soon = now_ns.saturating_sub(self.left_out_seen_ns) < LEFT_OUT_EVERY_NS;
        if soon && self.rings.len() > GENEROUS {
            return;
        }
        self.left_out_seen_ns = now_ns;
        let took_ns = |number| Ring::left_out_ns(&self.shared, number);
        self.left_out_inside = OperationsInside {
            left_out: self.left_out(),
            left_out_ns: (0..self.rings.len()).map(took_ns).fold(0, u64::saturating_add),
            ..OperationsInside::default()
        };
    }

    /// Bytes that were no records.
    pub fn undecodable(&self) -> u64 {
        self.rings.iter().fold(0, |sum, ring| sum.saturating_add(ring.undecodable))
    }

    /// What threads are in the middle of, or were when they ended.
    pub fn take_pending(&mut self) -> Vec<PendingOperation> {
        let mut pending = std::mem::take(&mut self.pending);
        for (number, ring) in self.rings.iter().enumerate() {
            if pending.len() < MOST_PENDING {
                pending.extend(ring.pending(&self.shared, number));
            }
        }
        pending.sort_by_key(|operation| (operation.began_ns, operation.tid));
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::interpose::{Phase, RingWord, SharedLayout};
    use probe_abi::{Header, Kind, Operation, Record, SyncOperation};
    use zerocopy::IntoBytes;

    const PID: u32 = 70;

    /// Plays the library in one thread after the other.
    struct Writer<'a> {
        shared: &'a Shared,
        ring: usize,
        tid: u32,
    }

    impl Writer<'_> {
        fn control(&self, word: usize) -> &std::sync::atomic::AtomicU64 {
            self.shared.word(self.shared.layout().control(self.ring) + word)
        }

        fn claims(shared: &Shared, ring: usize, tid: u32) -> Writer<'_> {
            shared.word(SharedWord::NEXT_RING).store(ring as u64 + 1, Ordering::Release);
            let writer = Writer { shared, ring, tid };
            writer.control(RingWord::OWNER).store(u64::from(PID) << 32 | u64::from(tid), Ordering::Release);
            writer
        }

        /// Counts an attempt and takes a place.
        fn takes_place(&self) -> (u64, u64) {
            let number = self.control(RingWord::ATTEMPTS).fetch_add(1, Ordering::Relaxed);
            (number, self.control(RingWord::HEAD).fetch_add(1, Ordering::Relaxed))
        }

        fn fills(&self, (number, place): (u64, u64), time_ns: u64) {
            let kind = Kind::Operation as u8;
            let header = Header {
                time_ns,
                sequence: number as u32,
                cpu: Header::NO_CPU,
                kind,
                context: 0,
                tid: self.tid,
                pid: PID,
            };
            let operation = Operation {
                header,
                began_ns: time_ns - 1,
                object: 0x1000,
                second: 0,
                caller: 0x2000,
                operation: SyncOperation::MutexLock as u16,
                flags: 0,
                outcome: 0,
            };
            let first = self.shared.layout().place(self.ring, place);
            let words: [u64; 8] = zerocopy::transmute!(operation);
            for (offset, word) in words.iter().enumerate().rev() {
                self.shared.word(first + offset).store(*word, Ordering::Release);
            }
        }

        fn writes(&self, time_ns: u64) {
            self.fills(self.takes_place(), time_ns);
        }
    }

    fn rings() -> Rings {
        let shared = Shared::new(SharedLayout::new(4, 1024).expect("layout")).expect("memory");
        Rings::new(shared, Some(0.02))
    }

    /// Memory that `Rings` owns, for the other side.
    fn other_side(rings: &Rings) -> Shared {
        rings.shared.again().expect("mapped again")
    }

    /// What the library says of a few goes for all that came with them; nonsense does not.
    #[test]
    fn what_operations_take_is_what_was_measured_of_some() {
        let mut rings = rings();
        let memory = other_side(&rings);
        let writer = Writer::claims(&memory, 0, 7);
        let says = |measured: u64, took_ns: u64| {
            writer.control(RingWord::COSTS).store(measured, Ordering::Relaxed);
            writer.control(RingWord::COST_NS).store(took_ns, Ordering::Relaxed);
        };
        let after = |rings: &mut Rings, now: u64| {
            (0..10).for_each(|number| writer.writes(now + number));
            turn(rings, now + 100, &[7]);
            (rings.cost().recorded, rings.cost().recorded_ns)
        };
        says(2, 300);
        assert_eq!(after(&mut rings, 1_000), (10, 1_500));
        says(3, 350);
        assert_eq!(after(&mut rings, 2_000), (20, 2_000));
        // More of them than there are, and longer than any is.
        says(u64::MAX, 400);
        assert_eq!(after(&mut rings, 3_000), (20, 2_000));
        says(4, u64::MAX);
        assert_eq!(after(&mut rings, 4_000), (20, 2_000));
        says(4, 450);
        assert_eq!(after(&mut rings, 5_000), (50, 5_000));
        // What is left out counts as well, and nonsense is cut off.
        let left_out = |rings: &mut Rings, now: u64, count: u64, each_ps: u64| {
            writer.control(RingWord::LEFT_OUT).store(count, Ordering::Relaxed);
            writer.control(RingWord::LEFT_OUT_PS).store(each_ps, Ordering::Relaxed);
            turn(rings, now, &[7]);
            (rings.cost().left_out, rings.cost().left_out_ns)
        };
        assert_eq!(left_out(&mut rings, 6_000, 1_000, 2_500), (1_000, 2_500));
        assert_eq!(left_out(&mut rings, 7_000, 1_000, u64::MAX), (1_000, 100_000));
        assert_eq!(left_out(&mut rings, 8_000, u64::MAX, 2_500), (0, 0));
        assert_eq!(rings.cost().recorded_ns, 5_000);
    }

    /// A thread that makes nothing but operations may leave them out; its successor in the ring is asked anew.
    #[test]
    fn a_thread_whose_operations_cost_too_much_may_leave_them_out() {
        const MS: u64 = 1_000_000;
        let mut rings = rings();
        let memory = other_side(&rings);
        let writer = Writer::claims(&memory, 0, 7);
        let leaves_out = || writer.control(RingWord::LEAVE_OUT).load(Ordering::Relaxed) == 1;
        let mut now = 1_000 * MS;
        let mut operations = |rings: &mut Rings, each_turn: u64, turns: u64| {
            for _ in 0..turns {
                (0..each_turn).for_each(|number| writer.writes(now + number));
                now += 10 * MS;
                assert_eq!(turn(rings, now, &[7]).0.len() as u64, each_turn);
            }
        };
        // 50,000 a second are 1.75 % of its time, 100,000 are 3.5: too much by a quarter of a second's 2 % after 0.3 s.
        operations(&mut rings, 500, 100);
        assert!(!leaves_out());
        operations(&mut rings, 900, 20);
        assert!(!leaves_out());
        operations(&mut rings, 900, 40);
        assert!(leaves_out());
        writer.control(RingWord::ATTEMPTS).fetch_add(1, Ordering::Relaxed);
        writer.control(RingWord::STRETCHES).fetch_add(1, Ordering::Relaxed);
        writer.control(RingWord::LEFT_OUT).fetch_add(70, Ordering::Relaxed);
        assert_eq!((rings.dropped(), rings.left_out()), (0, 70));
        rings.thread_ended(PID, 7);
        turn(&mut rings, 9_000 * MS, &[]);
        assert_eq!(writer.control(RingWord::OWNER).load(Ordering::Relaxed), 0, "freed");
        assert!(!leaves_out());
        writer.control(RingWord::LEFT_OUT).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(rings.left_out(), 0, "nonsense is no number");
    }

    /// A thread alone that filled its ring before anybody had come lost what it could have left out.
    #[test]
    fn with_a_budget_a_full_ring_is_no_reason_to_lose_what_may_be_left_out() {
        for (share, rather) in [(Some(0.02), 1), (None, 0)] {
            let shared = Shared::new(SharedLayout::new(4, 1024).expect("layout")).expect("memory");
            let memory = other_side(&Rings::new(shared, share));
            assert_eq!(
                memory.word(SharedWord::RATHER_LEAVE_OUT).load(Ordering::Relaxed),
                rather,
                "{share:?}"
            );
        }
    }

    /// One turn at this time with these threads alive: (ring, time) of each record, and the promise.
    fn turn(rings: &mut Rings, now_ns: u64, alive: &[u32]) -> (Vec<(usize, u64)>, Option<u64>) {
        let mut got = Vec::new();
        let turned = rings.drain(
            &mut || now_ns,
            &mut |pid, tid| pid == PID && alive.contains(&tid),
            &mut |ring, bytes| {
                let record = Record::decode(bytes).expect("a record");
                assert_eq!(record.as_bytes().as_bytes().len(), 64);
                got.push((ring, record.header().time_ns));
            },
        );
        assert_eq!(turned.records, got.len());
        (got, turned.complete_to_ns)
    }

    #[test]
    fn records_come_out_once_and_in_order() {
        let mut rings = rings();
        let shared = other_side(&rings);
        assert_eq!(turn(&mut rings, 50, &[]), (vec![], Some(50)));
        let first = Writer::claims(&shared, 0, 7);
        let second = Writer::claims(&shared, 1, 8);
        first.writes(60);
        second.writes(61);
        first.writes(62);
        assert_eq!(turn(&mut rings, 70, &[7, 8]), (vec![(0, 60), (0, 62), (1, 61)], Some(70)));
        assert_eq!(turn(&mut rings, 80, &[7, 8]), (vec![], Some(80)));
        assert_eq!((rings.dropped(), rings.undecodable()), (0, 0));
    }

    #[test]
    fn a_record_being_written_holds_the_promise_back_and_loses_nothing() {
        let mut rings = rings();
        let shared = other_side(&rings);
        let thread = Writer::claims(&shared, 0, 7);
        turn(&mut rings, 1_000, &[7]);
        let slow = thread.takes_place();
        // A signal handler comes in between.
        thread.writes(1_500);
        // It was not there at 1,000: its time is later.
        assert_eq!(turn(&mut rings, 2_000, &[7]), (vec![], Some(1_000)));
        assert_eq!(turn(&mut rings, 3_000, &[7]), (vec![], Some(1_000)));
        thread.fills(slow, 2_500);
        assert_eq!(turn(&mut rings, 4_000, &[7]), (vec![(0, 2_500), (0, 1_500)], Some(4_000)));
        // The next one holds back anew, from then on.
        let next = thread.takes_place();
        assert_eq!(turn(&mut rings, 5_000, &[7]).1, Some(4_000));
        thread.fills(next, 4_500);
        let after = thread.takes_place();
        assert_eq!(turn(&mut rings, 6_000, &[7]), (vec![(0, 4_500)], Some(5_000)));
        thread.fills(after, 5_500);
        assert_eq!(turn(&mut rings, 7_000, &[7]), (vec![(0, 5_500)], Some(7_000)));
        assert_eq!(rings.dropped(), 0);
    }

    #[test]
    fn a_stopped_thread_holds_back_for_a_while_and_a_dead_one_hardly() {
        let mut rings = rings();
        let shared = other_side(&rings);
        let thread = Writer::claims(&shared, 0, 7);
        turn(&mut rings, 1_000, &[7]);
        let place = thread.takes_place();
        let late = 1_000 + PATIENCE_NS;
        assert_eq!(turn(&mut rings, late, &[7]).1, Some(1_000));
        assert_eq!(turn(&mut rings, late + 1, &[7]).1, Some(late + 1));
        // It was only stopped: the record is still taken.
        thread.fills(place, 1_100);
        assert_eq!(turn(&mut rings, late + 2, &[7]).0, [(0, 1_100)]);
        assert_eq!(rings.dropped(), 0);

        let mut rings = self::rings();
        let shared = other_side(&rings);
        let thread = Writer::claims(&shared, 0, 7);
        turn(&mut rings, 1_000, &[7]);
        thread.takes_place();
        thread.writes(1_500);
        turn(&mut rings, 2_000, &[7]);
        let later = 1_001 + DOUBT_NS;
        turn(&mut rings, later, &[]);
        assert_eq!(turn(&mut rings, later + 1, &[]), (vec![(0, 1_500)], Some(later + 1)));
        assert_eq!(rings.dropped(), 1, "the one that was never written");
    }

    #[test]
    fn what_did_not_fit_is_counted_and_room_is_given() {
        let mut rings = rings();
        let shared = other_side(&rings);
        let thread = Writer::claims(&shared, 2, 7);
        for time in 1..=1_000 {
            thread.writes(time);
        }
        thread.control(RingWord::ATTEMPTS).fetch_add(5, Ordering::Relaxed);
        shared.word(SharedWord::WITHOUT_RING).store(3, Ordering::Relaxed);
        assert_eq!(turn(&mut rings, 2_000, &[7]).0.len(), 1_000);
        assert_eq!(rings.dropped(), 8);
        thread.control(RingWord::FORBIDDEN).store(13, Ordering::Relaxed);
        shared.word(SharedWord::FORBIDDEN).store(2, Ordering::Relaxed);
        assert_eq!((rings.forbidden(), rings.dropped()), (15, 8));
        thread.control(RingWord::FORBIDDEN).store(u64::MAX, Ordering::Relaxed);
        assert_eq!(rings.forbidden(), 2, "nonsense counts nothing");
        assert_eq!(thread.control(RingWord::TAIL).load(Ordering::Relaxed), 1_000);
        // The numbers go on behind those that are missing, and the places round the end.
        thread.writes(2_100);
        thread.writes(2_101);
        assert_eq!(turn(&mut rings, 3_000, &[7]).0, [(2, 2_100), (2, 2_101)]);
        assert_eq!(thread.control(RingWord::ATTEMPTS).load(Ordering::Relaxed), 1_007);
    }

    #[test]
    fn a_ring_of_a_dead_thread_is_free_again_when_it_is_empty() {
        let mut rings = rings();
        let shared = other_side(&rings);
        let thread = Writer::claims(&shared, 0, 7);
        thread.writes(10);
        thread.control(RingWord::BEGAN).store(12, Ordering::Relaxed);
        thread.control(RingWord::PHASE).store(0x300 | Phase::Inside as u64, Ordering::Release);
        // Its records are read in the turn in which it turns out to be gone.
        assert_eq!(turn(&mut rings, 20, &[]).0, [(0, 10)]);
        let owner = |ring: usize| shared.word(shared.layout().control(ring)).load(Ordering::Relaxed);
        // The kernel did not tell: it is looked for once it has been quiet for a while, and not before.
        let later = 20 + LOOK_EVERY_NS;
        turn(&mut rings, later - 1, &[]);
        assert_ne!(owner(0), 0);
        turn(&mut rings, later, &[]);
        assert_eq!((owner(0), shared.word(SharedWord::NEXT_RING).load(Ordering::Relaxed)), (0, 0));
        let next = Writer::claims(&shared, 0, 9);
        next.writes(later + 40);
        assert_eq!(turn(&mut rings, later + 50, &[9]).0, [(0, later + 40)]);
        assert_ne!(owner(0), 0);
        // What the dead one was in the middle of is known at the end.
        let pending = rings.take_pending();
        assert_eq!(pending.iter().map(|p| (p.pid, p.tid, p.began_ns)).collect::<Vec<_>>(), [(PID, 7, 12)]);
    }

    /// Every look is a system call or more; some ninety a second were made for threads that only waited.
    #[test]
    fn a_quiet_thread_is_looked_for_now_and_then() {
        let mut rings = rings();
        let shared = other_side(&rings);
        Writer::claims(&shared, 0, 7).writes(10);
        let busy = Writer::claims(&shared, 1, 8);
        let mut looks = Vec::new();
        for step in 1..=100 {
            let now_ns = step * (LOOK_EVERY_NS / 20);
            busy.writes(now_ns - 1);
            let mut lives = |_, tid| {
                looks.push(tid);
                true
            };
            rings.drain(&mut || now_ns, &mut lives, &mut |_, _| {});
        }
        assert_eq!(looks, [7; 4]);
    }

    #[test]
    fn the_kernels_word_frees_a_ring_at_once_but_not_that_of_a_thread_with_the_same_ids() {
        let mut rings = rings();
        let shared = other_side(&rings);
        let owner = |ring: usize| shared.word(shared.layout().control(ring)).load(Ordering::Relaxed);
        Writer::claims(&shared, 0, 7).writes(10);
        rings.thread_ended(PID, 7);
        turn(&mut rings, 20, &[]);
        assert_eq!(owner(0), 0);
        // A leader that has ended because another thread runs a new program, under its ids.
        Writer::claims(&shared, 1, PID).writes(30);
        rings.thread_ended(PID, PID);
        for now in 40..40 + u64::from(TRIES) * 2 {
            turn(&mut rings, now, &[PID]);
        }
        assert_ne!(owner(1), 0);
        assert_eq!(rings.ended.len(), 0);
    }

    #[test]
    fn a_target_that_writes_nonsense_is_not_believed() {
        let mut rings = rings();
        let shared = other_side(&rings);
        let thread = Writer::claims(&shared, 0, 7);
        // Another thread's record, one from the future, one that ends before it begins, and one of another kind.
        Writer { tid: 8, ..Writer::claims(&shared, 0, 7) }.fills(thread.takes_place(), 10);
        thread.writes(1_000);
        thread.writes(11);
        shared.word(shared.layout().place(0, 2) + 3).store(12, Ordering::Relaxed);
        thread.writes(12);
        shared.word(shared.layout().place(0, 3) + 1).store(0, Ordering::Relaxed);
        thread.writes(13);
        assert_eq!(turn(&mut rings, 100, &[7]).0, [(0, 13)]);
        assert_eq!(rings.undecodable(), 4);
        // Counters that no writer leaves behind.
        for nonsense in [u64::MAX, 1 << 40, 0] {
            thread.control(RingWord::HEAD).store(nonsense, Ordering::Relaxed);
            let (got, complete) = turn(&mut rings, 200, &[7]);
            assert_eq!((got, complete), (vec![], Some(200)));
        }
        for word in [SharedWord::NEXT_RING, SharedWord::RINGS, SharedWord::RING_RECORDS, SharedWord::MAGIC] {
            shared.word(word).store(u64::MAX, Ordering::Relaxed);
        }
        assert_eq!(turn(&mut rings, 300, &[7]).1, Some(300));
        assert_eq!(rings.count(), 4);
    }

    #[test]
    fn memory_of_many_quiet_threads_is_given_back() {
        const TURN_NS: u64 = 5_000_000;
        let layout = SharedLayout::new(64, 4096).expect("layout");
        let mut rings = Rings::new(Shared::new(layout).expect("memory"), None);
        let shared = other_side(&rings);
        let threads: Vec<Writer<'_>> =
            (0..64).map(|ring| Writer::claims(&shared, ring, 100 + ring as u32)).collect();
        let alive: Vec<u32> = (100..164).collect();
        let mut read = 0;
        for round in 1..=100u64 {
            for thread in &threads {
                (0..20).for_each(|i| thread.writes(round * TURN_NS + i));
            }
            read += turn(&mut rings, round * TURN_NS + 50, &alive).0.len();
        }
        assert_eq!(read, 64 * 100 * 20);
        // 2,000 records of each have been through some 32 pages of it.
        let pages = shared.resident_bytes().expect("size") / 4096;
        assert!(pages < 64 * 5, "{pages} pages");
    }

    /// Six hundred threads that were all busy now and then kept all their rings: 1.2 GB, in a container with 512 MB.
    #[test]
    fn memory_of_many_busy_threads_has_a_bound() {
        const TURN_NS: u64 = 5_000_000;
        const THREADS: usize = 96;
        let layout = SharedLayout::new(THREADS, 4096).expect("layout");
        let mut rings = Rings::new(Shared::new(layout).expect("memory"), None);
        let shared = other_side(&rings);
        let threads: Vec<Writer<'_>> =
            (0..THREADS).map(|ring| Writer::claims(&shared, ring, 100 + ring as u32)).collect();
        let alive: Vec<u32> = (100..100 + THREADS as u32).collect();
        turn(&mut rings, 1, &alive);
        let mut read = 0;
        for (round, thread) in (1..).zip(threads.iter().cycle().take(3 * THREADS)) {
            (0..4_000).for_each(|i| thread.writes(round * TURN_NS + i));
            read += turn(&mut rings, round * TURN_NS + 5_000, &alive).0.len();
        }
        assert_eq!(read, 3 * THREADS * 4_000, "nothing of it is lost");
        let bytes = shared.resident_bytes().expect("size");
        let (of_ring, others) = (4096 * 64, 3 * 4096);
        let most = GENEROUS * of_ring + (THREADS - GENEROUS) * others + of_ring;
        assert!(bytes <= most as u64, "{} KiB, at most {} KiB", bytes >> 10, most >> 10);
        assert!(bytes > (GENEROUS * of_ring / 2) as u64, "the first ones keep theirs: {} KiB", bytes >> 10);
    }
}
