//! Reads one ring of the shared memory, into which one thread of the program writes.

use super::cost::Sums;
use super::open_burst::{Look, OpenBurst, ReportedBurst};
use super::ring_memory::Passed;
use super::shared::Shared;
use engine::event::PendingOperation;
use probe_abi::interpose::{BURST_COUNTED, MOST_COST_NS, MOST_LEFT_OUT_PS, Phase, RECORD_WORDS, RingWord};
use probe_abi::{Burst, Context, Header, Kind, Operation};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use zerocopy::FromBytes;

/// Cost of an operation in its thread and in the ring reader together, nanoseconds: about as measured by `cargo xtask
/// bench interpose` and in Barnes of SPLASH.
const OPERATION_NS: f64 = 350.0;

/// Cost of an operation that becomes part of a burst, nanoseconds.
const BURST_NS: f64 = 45.0;

/// How far the cost of a thread's operations may exceed its budget: by the budget of this time, nanoseconds. With the
/// default budget that is less than a full ring, so nothing is lost before.
const DEBT_NS: f64 = 250e6;

/// A thread that would fill its ring within this time, ns, counts as busy.
const BUSY_NS: u64 = 160_000_000;

/// Up to this number of rings, all keep the memory that they have ever used while there is enough. If there are more
/// rings, only those of busy threads keep their memory.
pub(super) const GENEROUS: usize = 32;

/// The reader's state for one ring. Only values in longpole's own memory are trusted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    /// Its thread: `pid << 32 | tid`; 0 = none yet.
    pub owner: u64,
    /// The ring's thread was found since the last turn.
    pub is_new: bool,
    /// Places read.
    tail: u64,
    /// The place up to which the ring's thread knows that records have been read. Memory before it is returned or
    /// marked as idle.
    passed: Passed,
    /// The ring's head at the last turn: places before it had been taken at that time.
    last_head: u64,
    /// A place is being written that was not yet taken at this time: its record will be newer.
    pub writing_since_ns: Option<u64>,
    /// Number of pieces of the ring that could not be records of its thread.
    pub undecodable: u64,
    /// Places that were taken and never filled.
    pub torn: u64,
    /// Whether the thread has done anything since the last check for its being alive.
    pub active: bool,
    /// Time at which the thread was known to be alive, or was checked, ns.
    pub looked_ns: u64,
    /// Cost of the thread's operations in excess of their budget, nanoseconds.
    debt_ns: f64,
    /// Time at which the debt was last computed, ns.
    weighed_ns: u64,
    /// Assumed cost of the operations of the last turn, nanoseconds, in the thread and in the ring reader.
    pub turn_cost_ns: f64,
    /// Sums of the costs of the ring's threads that have been taken so far.
    costs: Sums,
    /// Numbers of folded operations that were reported before their thread wrote them.
    told: ReportedBurst,
    /// The control block was being changed: at which version, and since when at the earliest.
    changing: Option<(u64, u64)>,
    /// No folded and unreported operation of the thread is older than this, ns; `None`: nothing is folded.
    pub burst_since_ns: Option<u64>,
    /// Number of operations that the ring's threads had folded at the last turn.
    burst_operations: u64,
    /// Numbers that were reported from the control block and whose records were never written.
    unwritten: u64,
}

/// Whether a turn emptied a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Emptied {
    /// Everything that was there when the turn began was read.
    Yes,
    /// The ring still holds records.
    More,
}

/// Parameters of reading one ring in one turn.
pub(super) struct Turn<'a> {
    pub shared: &'a Shared,
    /// Number of the ring.
    pub number: usize,
    /// The clock before anything of this turn was read, ns.
    pub before_ns: u64,
    /// The clock at the beginning of the preceding turn, ns.
    pub last_ns: u64,
    /// Largest number of records to read.
    pub most: u64,
    /// The share of the thread's time that recording may cost; `None`: no limit.
    pub share: Option<f64>,
    /// Whether memory that has been read is returned, unless the thread is busy ([`BUSY_NS`]) and will soon need it
    /// again.
    pub frugal: bool,
    /// Memory that has been read is returned in any case: others need it.
    pub short: bool,
    /// Recording has ended: nothing more will be folded.
    pub last: bool,
}

impl<'a> Turn<'a> {
    /// A turn that only examines the ring and takes no record.
    pub fn looking(shared: &'a Shared, number: usize) -> Turn<'a> {
        Turn {
            shared,
            number,
            before_ns: 0,
            last_ns: 0,
            most: 0,
            share: None,
            frugal: false,
            short: false,
            last: false,
        }
    }
}

impl Turn<'_> {
    pub fn control(&self, word: usize) -> &AtomicU64 {
        self.shared.word(self.shared.layout().control(self.number) + word)
    }
}

impl Ring {
    /// Passes on the ring's records; returns their number. `clock` is read again for records that are newer than the turn.
    pub fn read(
        &mut self,
        turn: &Turn<'_>,
        clock: &mut dyn FnMut() -> u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> (u64, Emptied) {
        // The open burst is read before the ring: a burst that the thread writes in between is then seen twice
        // instead of never.
        let look = OpenBurst::look(turn.shared, turn.number, false);
        // A thread takes the ring before it takes a place, so the owner is visible after this load.
        let head = turn.control(RingWord::HEAD).load(Ordering::Acquire);
        self.see_owner(turn);
        let last_head = std::mem::replace(&mut self.last_head, head);
        let taken = head.wrapping_sub(self.tail);
        let in_bursts = Ring::burst_operations(turn);
        let in_bursts = in_bursts.wrapping_sub(std::mem::replace(&mut self.burst_operations, in_bursts));
        self.active |= taken != 0 || in_bursts != 0;
        self.turn_cost_ns = 0.0;
        if taken != 0 || in_bursts != 0 {
            self.weigh(turn, head.wrapping_sub(last_head), in_bursts);
        }
        if taken == 0 {
            self.writing_since_ns = None;
            return (self.tell(turn, look, false, sink), Emptied::Yes);
        }
        if taken > turn.shared.layout().ring_records as u64 {
            // No writer of longpole's own takes more places than there are. So the target has overwritten the words,
            // and they mean nothing.
            self.undecodable = self.undecodable.saturating_add(1);
            self.tail = head;
            self.passed.over(turn, head);
            return (0, Emptied::Yes);
        }
        let mut newest_ns = turn.before_ns;
        let open_number = look.number();
        let (mut records, mut written) = (0, false);
        let mut waiting = false;
        let ring_records = turn.shared.layout().ring_records as u64;
        let since_last_ns = turn.before_ns.saturating_sub(turn.last_ns);
        let quiet = taken.saturating_mul(BUSY_NS) < ring_records.saturating_mul(since_last_ns);
        let gives_back = turn.short || turn.frugal && quiet;
        let layout = turn.shared.layout();
        for _ in 0..taken.min(turn.most) {
            let record = turn.shared.record(layout.place(turn.number, self.tail));
            let [time, ..] = record;
            if time.load(Ordering::Acquire) == 0 {
                waiting = true;
                break;
            }
            let words = record.each_ref().map(|word| word.load(Ordering::Relaxed));
            time.store(0, Ordering::Release);
            self.tail = self.tail.wrapping_add(1);
            self.passed.to(turn, self.tail, gives_back);
            if words[0] > newest_ns {
                newest_ns = clock();
            }
            let bytes: [u8; RECORD_WORDS * 8] = zerocopy::transmute!(words.map(u64::to_le));
            let (number, kind) = (words[1] as u32, (words[1] >> 48) as u8);
            if is_record(&bytes, self.owner, newest_ns) {
                written |= open_number == Some(number);
                if !self.told.takes_back(kind, number, words[0]) {
                    sink(&bytes);
                }
                records += 1;
            } else {
                self.undecodable = self.undecodable.saturating_add(1);
            }
        }
        self.passed.all(turn, self.tail, gives_back);
        // An unfilled place that is not before the last turn's head was taken since that turn.
        let new = self.tail.wrapping_sub(last_head) < 1 << 63;
        self.writing_since_ns = match self.writing_since_ns {
            _ if !waiting => None,
            Some(since_ns) if !new => Some(since_ns),
            _ => Some(turn.last_ns),
        };
        let emptied = if waiting || records >= taken { Emptied::Yes } else { Emptied::More };
        records += self.tell(turn, look, written, sink);
        (records, emptied)
    }

    /// Reports the open burst of the ring's thread, if it can no longer change and has not been `written` in the
    /// meantime. Returns the number of records.
    fn tell(&mut self, turn: &Turn<'_>, look: Look, written: bool, sink: &mut dyn FnMut(&[u8])) -> u64 {
        let mut records = 0;
        self.burst_since_ns = None;
        match look {
            Look::Nothing => self.changing = None,
            Look::Changing(version) => {
                // The burst that is being made is newer than the last reading that did not see it.
                let since_ns = self.changing.filter(|(before, _)| *before == version).map(|(_, since)| since);
                let since_ns = since_ns.unwrap_or(turn.last_ns);
                self.changing = Some((version, since_ns));
                self.burst_since_ns = Some(since_ns);
            }
            Look::There(open) => {
                self.changing = None;
                let (owner, now_ns) = (self.owner, turn.before_ns);
                if !written && open.is_over(now_ns) || turn.last {
                    open.tell(&mut self.told, owner, &mut |bytes| {
                        records += 1;
                        if is_record(bytes, owner, now_ns) {
                            sink(bytes);
                        } else {
                            self.undecodable = self.undecodable.saturating_add(1);
                        }
                    });
                } else if !written {
                    self.burst_since_ns = Some(open.last_ns());
                }
            }
        }
        records
    }

    /// Lets a thread stop recording uncontended operations if recording them exceeds its budget. This is never undone:
    /// the permission has no effect on a thread that is not alone in its process.
    fn weigh(&mut self, turn: &Turn<'_>, operations: u64, in_bursts: u64) {
        self.turn_cost_ns = operations as f64 * OPERATION_NS + in_bursts as f64 * BURST_NS;
        let Some(share) = turn.share else { return };
        let since_last_ns = turn.before_ns.saturating_sub(self.weighed_ns) as f64;
        self.weighed_ns = turn.before_ns;
        let allowed_ns = if self.debt_ns > 0.0 { share * since_last_ns } else { 0.0 };
        self.debt_ns = (self.debt_ns + self.turn_cost_ns - allowed_ns).max(0.0);
        if self.debt_ns > share * DEBT_NS {
            turn.control(RingWord::LEAVE_OUT).store(1, Ordering::Relaxed);
        }
    }

    /// Reads which thread has the ring, unless that is known.
    pub fn see_owner(&mut self, turn: &Turn<'_>) {
        if self.owner == 0 {
            self.owner = turn.control(RingWord::OWNER).load(Ordering::Acquire);
            self.is_new = self.owner != 0;
        }
    }

    /// Whether all written records have been read, and everything that was folded has been reported.
    pub fn is_empty(&self, turn: &Turn<'_>) -> bool {
        turn.control(RingWord::HEAD).load(Ordering::Acquire) == self.tail && self.burst_since_ns.is_none()
    }

    /// Reports the open burst of a thread that has ended and may have left the burst half changed.
    pub fn give_up_folding(&mut self, turn: &Turn<'_>, sink: &mut dyn FnMut(&[u8])) -> u64 {
        let look = OpenBurst::look(turn.shared, turn.number, true);
        self.tell(turn, look, false, sink)
    }

    /// Skips the place that is being written, if a later place is filled or the thread has ended.
    pub fn give_up(&mut self, turn: &Turn<'_>, owner_is_gone: bool) {
        let head = turn.control(RingWord::HEAD).load(Ordering::Acquire);
        let next = turn.shared.layout().place(turn.number, self.tail.wrapping_add(1));
        let gone_on = head.wrapping_sub(self.tail) > 1 && turn.shared.word(next).load(Ordering::Acquire) != 0;
        if head != self.tail && (owner_is_gone || gone_on) {
            self.torn = self.torn.saturating_add(1);
            self.tail = self.tail.wrapping_add(1);
            self.passed.all(turn, self.tail, turn.short);
            self.writing_since_ns = None;
        }
    }

    /// Records that found no room.
    pub fn dropped(&self, shared: &Shared, number: usize) -> u64 {
        let unwritten = self.unwritten;
        let control = shared.layout().control(number);
        let head = shared.word(control + RingWord::HEAD).load(Ordering::Acquire);
        let attempts = shared.word(control + RingWord::ATTEMPTS).load(Ordering::Acquire);
        let stretches = shared.word(control + RingWord::STRETCHES).load(Ordering::Acquire);
        // A thread counts an attempt before it takes the place, so the number may be one too large for a moment. An
        // open burst has a number and no place. Impossible numbers count as 0.
        let open_burst = shared.word(control + RingWord::BURST_OBJECT).load(Ordering::Acquire) != 0
            && shared.word(control + RingWord::BURST_NUMBER).load(Ordering::Relaxed) & BURST_COUNTED == 0;
        let missing = attempts.wrapping_sub(head).wrapping_sub(stretches).wrapping_sub(u64::from(open_burst));
        let sane = |number: u64| if number < 1 << 48 { number } else { 0 };
        let lost = shared.word(control + RingWord::BURST_LOST).load(Ordering::Relaxed);
        sane(missing.wrapping_sub(unwritten)) + sane(lost)
    }

    /// The cost to the ring's threads of recording, since the last call.
    pub fn take_costs(&mut self, turn: &Turn<'_>) -> Sums {
        let word = |word: usize| turn.control(word).load(Ordering::Relaxed);
        let records = word(RingWord::HEAD).saturating_add(Ring::burst_operations(turn));
        let (measured, took_ns) = (word(RingWord::COSTS), word(RingWord::COST_NS));
        // The target may have written anything there. The library adds to the sum before it counts the measurement.
        let most_ns = measured.saturating_add(1).saturating_mul(MOST_COST_NS);
        if records < 1 << 48 && measured <= records && took_ns <= most_ns {
            self.costs.advance(Sums { records, measured, took_ns })
        } else {
            Sums::default()
        }
    }

    /// A counter of the ring, by the counter's place in the control words.
    pub fn counter(shared: &Shared, number: usize, word: usize) -> u64 {
        let counter = shared.word(shared.layout().control(number) + word);
        // The target may have written anything.
        Some(counter.load(Ordering::Relaxed)).filter(|&count| count < 1 << 48).unwrap_or(0)
    }

    /// Operations that the ring's threads have folded, whether the burst was written or only counted: both cost the
    /// threads the same.
    fn burst_operations(turn: &Turn<'_>) -> u64 {
        let word = |word: usize| turn.control(word).load(Ordering::Relaxed);
        word(RingWord::BURST_OPERATIONS).wrapping_add(word(RingWord::COUNTED))
    }

    /// The cost to the ring's threads of operations that were not recorded on purpose, nanoseconds.
    pub fn left_out_ns(shared: &Shared, number: usize) -> u64 {
        let each_ps = shared.word(shared.layout().control(number) + RingWord::LEFT_OUT_PS);
        let each_ps = each_ps.load(Ordering::Relaxed).min(MOST_LEFT_OUT_PS);
        Ring::counter(shared, number, RingWord::LEFT_OUT).saturating_mul(each_ps) / 1_000
    }

    /// Frees the ring for another thread. Its thread must have ended, and everything must have been read.
    pub fn free(&mut self, shared: &Shared, number: usize) {
        let control = shared.layout().control(number);
        if let Look::There(open) = OpenBurst::look(shared, number, true) {
            let (counted, one_more) = self.told.of_one_gone(&open);
            if one_more {
                shared.word(control + RingWord::ATTEMPTS).fetch_add(1, Ordering::Relaxed);
            }
            self.unwritten = self.unwritten.saturating_add(counted + u64::from(one_more));
        }
        self.told = ReportedBurst::default();
        self.changing = None;
        for word in [RingWord::BURST_OBJECT, RingWord::BURST_SINCE, RingWord::BURST_VERSION] {
            shared.word(control + word).store(0, Ordering::Relaxed);
        }
        shared.word(control + RingWord::PHASE).store(Phase::Idle as u64, Ordering::Relaxed);
        shared.word(control + RingWord::LEAVE_OUT).store(0, Ordering::Relaxed);
        self.owner = 0;
        self.debt_ns = 0.0;
        self.active = false;
        self.writing_since_ns = None;
        self.passed.end(shared, number, self.tail);
        shared.word(control + RingWord::OWNER).store(0, Ordering::Release);
    }

    /// The operation that the ring's thread is in the middle of.
    pub fn pending(&self, shared: &Shared, number: usize) -> Option<PendingOperation> {
        let control = shared.layout().control(number);
        let word = |word: usize| shared.word(control + word).load(Ordering::Relaxed);
        let before = shared.word(control + RingWord::PHASE).load(Ordering::Acquire);
        let pending = PendingOperation {
            pid: (self.owner >> 32) as u32,
            tid: self.owner as u32,
            began_ns: word(RingWord::BEGAN),
            object: word(RingWord::OBJECT),
            second: word(RingWord::SECOND),
            caller: word(RingWord::CALLER),
            operation: u16::try_from(word(RingWord::OPERATION)).unwrap_or(u16::MAX),
        };
        fence(Ordering::Acquire);
        let same = word(RingWord::PHASE) == before;
        (self.owner != 0 && same && before as u8 == Phase::Inside as u8).then_some(pending)
    }
}

/// Whether the library in that thread can have written this record by `newest_ns`.
fn is_record(bytes: &[u8], owner: u64, newest_ns: u64) -> bool {
    let Ok((operation, _)) = Operation::read_from_prefix(bytes) else { return false };
    let header = &operation.header;
    let whose = u64::from(header.pid) << 32 | u64::from(header.tid);
    let makes_sense = match Kind::from_byte(header.kind) {
        Some(Kind::Operation) => operation.began_ns <= header.time_ns,
        Some(Kind::Burst) => Burst::read_from_prefix(bytes).is_ok_and(|(burst, _)| {
            burst.count > 0 && burst.held_ns <= burst.span_ns && u64::from(burst.span_ns) <= header.time_ns
        }),
        _ => false,
    };
    makes_sense
        && header.context == Context::Task as u8
        && header.cpu == Header::NO_CPU
        && whose == owner
        && header.time_ns <= newest_ns
}
