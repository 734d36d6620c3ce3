//! Decides when a condition has held long enough: a state machine over the records in their order of time. It compares the
//! mean of each 100 ms of recorded time with the condition.

use super::program_state::ProgramState;
use crate::plan::trigger::{Condition, Measure};
use engine::event::Facts;
use probe_abi::Record;

/// Length of recorded time for one mean value, nanoseconds.
const SAMPLE_NS: u64 = 100_000_000;

/// A condition that has just held long enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Fired {
    /// The condition.
    pub condition: Condition,
    /// Time at which the condition had held long enough (`CLOCK_MONOTONIC` nanoseconds).
    pub time_ns: u64,
}

/// All conditions of a recording.
#[derive(Debug)]
pub struct Triggers {
    state: ProgramState,
    phases: Vec<Phase>,
    /// Time up to which the sums are complete.
    now_ns: u64,
    /// Time at which the present sample ends, ns.
    due_ns: u64,
    sums: Sums,
}

/// Sums of thread time in a sample, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    running_ns: u64,
    waiting_ns: u64,
    threads_ns: u64,
}

/// How long a condition has held.
#[derive(Debug)]
struct Phase {
    condition: Condition,
    /// 0: the last sample did not meet the condition.
    held_ns: u64,
    /// The condition has fired, and has held since.
    has_fired: bool,
}

impl Triggers {
    /// Watches conditions from the start of a recording on.
    pub fn new(conditions: &[Condition], facts: &Facts) -> Triggers {
        let phase =
            |condition: &Condition| Phase { condition: condition.clone(), held_ns: 0, has_fired: false };
        Triggers {
            state: ProgramState::new(&facts.threads),
            phases: conditions.iter().map(phase).collect(),
            now_ns: facts.start_ns,
            due_ns: facts.start_ns.saturating_add(SAMPLE_NS),
            sums: Sums::default(),
        }
    }

    /// Handles the next record, and adds the conditions that fired before it to `fired`.
    pub fn record(&mut self, record: &Record, fired: &mut Vec<Fired>) {
        self.advance(record.header().time_ns, fired);
        self.state.record(record);
    }

    /// Advances to the time up to which records are complete: without records, conditions may hold, too. A time before the last
    /// one changes nothing.
    pub fn advance(&mut self, to_ns: u64, fired: &mut Vec<Fired>) {
        while to_ns >= self.due_ns {
            self.pass(self.due_ns);
            self.sample(SAMPLE_NS, fired);
            // Nothing changes between two records that are far apart, so the complete samples between them count as
            // one.
            let whole_ns = (to_ns - self.due_ns) / SAMPLE_NS * SAMPLE_NS;
            if whole_ns > 0 {
                self.pass(self.due_ns.saturating_add(whole_ns));
                self.due_ns = self.now_ns;
                self.sample(whole_ns, fired);
            }
            self.due_ns = self.due_ns.saturating_add(SAMPLE_NS);
            if self.due_ns == u64::MAX {
                return;
            }
        }
        self.pass(to_ns);
    }

    /// Adds the time up to `to_ns` to the sums.
    fn pass(&mut self, to_ns: u64) {
        let length_ns = to_ns.saturating_sub(self.now_ns);
        let of = |threads: u32| length_ns.saturating_mul(u64::from(threads));
        let (state, sums) = (&self.state, &mut self.sums);
        sums.running_ns = sums.running_ns.saturating_add(of(state.running()));
        sums.waiting_ns = sums.waiting_ns.saturating_add(of(state.waiting()));
        sums.threads_ns = sums.threads_ns.saturating_add(of(state.threads()));
        self.now_ns = self.now_ns.max(to_ns);
    }

    /// Ends a sample of this length at `due_ns`.
    fn sample(&mut self, length_ns: u64, fired: &mut Vec<Fired>) {
        let Sums { running_ns, waiting_ns, threads_ns } = std::mem::take(&mut self.sums);
        let end_ns = self.due_ns;
        for phase in &mut self.phases {
            let value = match phase.condition.measure {
                Measure::Parallelism => running_ns as f64 / length_ns as f64,
                // Without a thread there is no share.
                Measure::LockWait if threads_ns == 0 => f64::NAN,
                Measure::LockWait => waiting_ns as f64 / threads_ns as f64,
            };
            if let Some(time_ns) = phase.sample(value, length_ns, end_ns) {
                fired.push(Fired { condition: phase.condition.clone(), time_ns });
            }
        }
    }
}

impl Phase {
    /// Takes a sample's mean, length and end. Returns since when the condition has held long enough, if it fires: once in
    /// each phase in which it holds.
    fn sample(&mut self, value: f64, length_ns: u64, end_ns: u64) -> Option<u64> {
        if !self.condition.is_met(value) {
            (self.held_ns, self.has_fired) = (0, false);
            return None;
        }
        let held_before_ns = self.held_ns;
        self.held_ns = held_before_ns.saturating_add(length_ns);
        let lasting_ns = u64::try_from(self.condition.lasting.as_nanos()).unwrap_or(u64::MAX);
        if self.has_fired || self.held_ns < lasting_ns {
            return None;
        }
        self.has_fired = true;
        let begin_ns = end_ns.saturating_sub(length_ns);
        Some(begin_ns.saturating_add(lasting_ns.saturating_sub(held_before_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::{ThreadFact, ThreadState};
    use probe_abi::{Call, Exit, FUTEX_CALL, Header, Kind, Switch, SwitchFlags, Waking};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn header(kind: Kind, time_ms: u64, cpu: u16, tid: u32) -> Header {
        let pid = if tid == 0 { 0 } else { 7 };
        Header { time_ns: time_ms * MS, sequence: 0, cpu, kind: kind as u8, context: 0, tid, pid }
    }

    /// A CPU switches from one thread to another; 0 is the idle thread. The thread that leaves sleeps in this system
    /// call.
    fn switch(time_ms: u64, cpu: u16, from: u32, to: u32, call: u32) -> Record {
        let tracked = |tid: u32, bit: u32| if tid == 0 { 0 } else { bit };
        Record::Switch(Switch {
            header: header(Kind::Switch, time_ms, cpu, from),
            next_tid: to,
            next_pid: if to == 0 { 0 } else { 7 },
            prev_state: 1,
            flags: tracked(from, SwitchFlags::PREV_TRACKED) | tracked(to, SwitchFlags::NEXT_TRACKED),
            prev_user_sp: 0,
            prev_call: Call { number: call, argument1: 0, argument0: 0x40 },
        })
    }

    fn waking(time_ms: u64, tid: u32) -> Record {
        Record::Waking(Waking {
            header: header(Kind::Waking, time_ms, 0, 1),
            wakee_tid: tid,
            wakee_pid: 7,
            flags: 0,
            wakee_state: 1,
            waker_call: Call::NONE.number,
            cause: 0,
            wakee_call: Call::NONE,
        })
    }

    fn exit(time_ms: u64, cpu: u16, tid: u32) -> Record {
        Record::Exit(Exit { header: header(Kind::Exit, time_ms, cpu, tid), last_of_process: 0, placement: 0 })
    }

    fn asleep(tids: &[u32]) -> Facts {
        let thread =
            |&tid: &u32| ThreadFact { tid, pid: 7, state: ThreadState::Sleeping, ..ThreadFact::default() };
        Facts { threads: tids.iter().map(thread).collect(), ..Facts::default() }
    }

    /// Times at which a condition fires, in milliseconds.
    fn fires(condition: &str, facts: &Facts, records: &[Record], end_ms: u64) -> Vec<u64> {
        let mut triggers = Triggers::new(&[condition.parse().expect("a condition")], facts);
        let mut fired = Vec::new();
        records.iter().for_each(|record| triggers.record(record, &mut fired));
        triggers.advance(end_ms * MS, &mut fired);
        fired.iter().map(|fired| fired.time_ns / MS).collect()
    }

    const READ: u32 = 0;

    #[test]
    fn a_condition_fires_once_in_each_phase_that_lasts_long_enough() {
        let records = [
            switch(0, 0, 0, 1, READ),
            switch(0, 1, 0, 2, READ),
            // Running threads after 1 s: one for 2 s, two for 1 s, one for 500 ms, two for 500 ms, one for 4 s.
            switch(1_000, 1, 2, 0, READ),
            switch(3_000, 1, 0, 2, READ),
            switch(4_000, 1, 2, 0, READ),
            switch(4_500, 1, 0, 2, READ),
            switch(5_000, 1, 2, 0, READ),
        ];
        let facts = asleep(&[1, 2]);
        assert_eq!(fires("parallelism<1.5 for 1s", &facts, &records, 9_000), [2_000, 6_000]);
        assert_eq!(fires("parallelism<1.5 for 3s", &facts, &records, 9_000), [8_000]);
        assert_eq!(fires("parallelism<1 for 100ms", &facts, &records, 9_000), [0u64; 0]);
        assert_eq!(fires("parallelism>1.5 for 1s", &facts, &records, 9_000), [1_000, 4_000]);
    }

    #[test]
    fn lock_wait_counts_sleep_in_futex_calls_only() {
        let facts = asleep(&[1, 2, 3, 4]);
        let all_run = |time| (1..5u32).map(move |tid| switch(time, tid as u16, 0, tid, READ));
        let mut records: Vec<Record> = all_run(0).collect();
        // Sleeping in `read` is not waiting for a lock.
        records.push(switch(500, 1, 1, 0, READ));
        records.push(switch(1_000, 2, 2, 0, FUTEX_CALL));
        assert_eq!(fires("lock_wait>20% for 1s", &facts, &records, 3_000), [2_000]);
        assert_eq!(fires("lock_wait>30% for 1s", &facts, &records, 3_000), [0u64; 0]);
        // After its wake-up the thread waits for a CPU, not for the lock.
        records.push(waking(1_500, 2));
        assert_eq!(fires("lock_wait>20% for 1s", &facts, &records, 3_000), [0u64; 0]);
        // Two of the four threads end: then one of two waits.
        records.pop();
        records.extend([exit(1_500, 3, 3), exit(1_500, 4, 4)]);
        assert_eq!(fires("lock_wait>45% for 1s", &facts, &records, 3_000), [2_500]);
    }

    #[test]
    fn parallelism_below_a_limit_is_met_by_an_idle_program() {
        let records = [switch(50, 0, 1, 0, READ)];
        assert_eq!(fires("parallelism<0.1 for 2s", &asleep(&[1]), &records, 60_000), [2_000]);
        assert_eq!(fires("parallelism<0.1 for 2s", &Facts::default(), &[], 60_000), [2_000]);
        assert_eq!(fires("lock_wait<10% for 2s", &Facts::default(), &[], 60_000), [0u64; 0], "of no thread");
        assert_eq!(fires("parallelism<0.1 for 2s", &Facts::default(), &[], 0), [0u64; 0]);
    }

    #[test]
    fn a_lost_switch_does_not_keep_a_cpu_busy_forever() {
        // The switch of thread 1 away from CPU 0 is missing.
        let records = [switch(0, 0, 0, 1, READ), switch(1_000, 0, 2, 0, READ)];
        assert_eq!(fires("parallelism<0.5 for 1s", &asleep(&[1, 2]), &records, 5_000), [2_000]);
    }

    /// Neither gaps between records nor their order matter.
    #[test]
    fn triggers_tolerate_jumps_of_the_clock() {
        let back = [switch(5_000, 0, 0, 1, READ), switch(4_000, 0, 1, 0, READ)];
        assert_eq!(fires("parallelism<0.5 for 6s", &asleep(&[1]), &back, 7_000), [6_000]);
        let mut triggers = Triggers::new(&["parallelism<0.5 for 1s".parse().expect("one")], &asleep(&[1]));
        let mut fired = Vec::new();
        triggers.advance(u64::MAX, &mut fired);
        triggers.advance(u64::MAX, &mut fired);
        triggers.advance(5, &mut fired);
        assert_eq!(fired.len(), 1);
        let mut late = Triggers::new(&[], &Facts { start_ns: u64::MAX, ..Facts::default() });
        late.advance(u64::MAX, &mut fired);
    }

    proptest! {
        /// The result does not depend on when the watermark advances between records.
        #[test]
        fn triggers_fire_at_the_same_times_for_any_batches(
            steps in proptest::collection::vec((0u64..400, 0u16..3, 1u32..5, any::<bool>(), any::<bool>()), 0..60),
        ) {
            let (mut time, mut records) = (0, Vec::new());
            for (length, cpu, tid, comes, lock) in &steps {
                time += length;
                let call = if *lock { FUTEX_CALL } else { READ };
                records.push(if *comes { switch(time, *cpu, 0, *tid, READ) } else { switch(time, *cpu, *tid, 0, call) });
            }
            for condition in ["parallelism<1.2 for 300ms", "lock_wait>20% for 500ms"] {
                let facts = asleep(&[1, 2, 3, 4]);
                let expected = fires(condition, &facts, &records, time + 1_000);
                let mut triggers = Triggers::new(&[condition.parse().expect("one")], &facts);
                let mut fired = Vec::new();
                for record in &records {
                    for part in 1..4 {
                        let now = triggers.now_ns;
                        triggers.advance(now + record.header().time_ns.saturating_sub(now) * part / 4, &mut fired);
                    }
                    triggers.record(record, &mut fired);
                }
                triggers.advance((time + 1_000) * MS, &mut fired);
                let found: Vec<u64> = fired.iter().map(|fired| fired.time_ns / MS).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
