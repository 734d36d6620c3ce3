//! Findings about a recording, a program or a simulation: each kind with its numbers. Modules that show results word them.

mod names;
mod trust;

pub use names::Names;
pub use trust::Trust;

use crate::event::{LeftOut, OperationsTried};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

/// How much a finding can change the answer, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The answer is wrong, or there is none.
    Wrong,
    /// The answer may be off: by up to this much thread time, nanoseconds, if known.
    MayBeOff(Option<u64>),
    /// Good to know.
    Information,
}

/// Why an object's waits are replayed as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayReason {
    /// Operations of the object's family were lost in its process.
    Lost,
    /// Two threads held the object at once.
    HadTwice,
    /// A thread released the object without holding it.
    GivenByAnother,
    /// Something other than an operation on the object ended a wait for the object.
    WokenFromOutside,
    /// The arrivals at a barrier do not fit its count.
    OddBarrier,
    /// The initial count of a semaphore is not known.
    CountNotKnown,
    /// Threads took more permits from a semaphore than it had.
    CountTooSmall,
    /// The simulated object ends in a deadlock that the recording does not have.
    Deadlock,
}

/// An object whose waits are replayed as recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedObject {
    /// Its name.
    pub name: String,
    /// Why the object's waits are replayed.
    pub reason: ReplayReason,
}

/// The thread that holds the object that another thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its name.
    pub thread: String,
    /// Whether the holder is the waiting thread itself.
    pub itself: bool,
    /// Whether the holder has ended.
    pub ended: bool,
}

/// What a thread waits forever for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[expect(missing_docs, reason = "names and holders of what the variant says")]
pub enum WaitsFor {
    /// To be created.
    Creation,
    Signal {
        name: String,
    },
    Semaphore {
        name: String,
    },
    Lock {
        name: String,
        holder: Option<Holder>,
    },
    Condition {
        name: String,
    },
    SpinLock {
        name: String,
        holder: Option<Holder>,
    },
    /// A read-write lock, for reading.
    Reading {
        name: String,
        holder: Option<Holder>,
    },
    /// A read-write lock, for writing.
    Writing {
        name: String,
        holder: Option<Holder>,
    },
    /// A barrier at which `arrived` of `of` threads have arrived.
    Barrier {
        name: String,
        arrived: u32,
        of: u32,
    },
    Once {
        name: String,
    },
    OwnEnd,
    End {
        thread: String,
    },
    WakeUp {
        name: String,
    },
    /// Nothing that makes a thread wait, as far as is known.
    NotKnown,
}

/// A thread that waits forever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckThread {
    /// Its name.
    pub thread: String,
    /// What the thread waits for.
    pub waits_for: WaitsFor,
    /// The function in which the thread waits, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// Threads that wait forever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stuck {
    /// Time of the last event, nanoseconds from the start; the result ends there.
    pub end_ns: f64,
    /// The first of the threads that wait forever.
    pub threads: Vec<StuckThread>,
    /// Number of further threads.
    pub more: usize,
}

/// A finding.
///
/// As JSON it is an object: `kind`, the variant's name, and its numbers. An object of another kind, or without a number, is
/// read as [`Finding::Other`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[expect(missing_docs, reason = "each variant says what its numbers are")]
pub enum Finding {
    /// Records were lost.
    Loss { records: u64 },
    /// Records are missing for this time, summed over CPUs; `joined` gaps were merged with others.
    Gap { missing_ns: u64, joined: u64 },
    /// New processes and libraries ran for this time before their functions had probes.
    ProbesLate { missing_ns: u64 },
    /// Programs and libraries ran for this time before their lock operations were recorded.
    LocksLate { missing_ns: u64, recorded_ns: u64 },
    /// Recording lock operations from inside paused for this time, to keep to the budget.
    LocksPaused { missing_ns: u64, recorded_ns: u64 },
    /// Processes that never got function probes.
    NotProbed { processes: u64 },
    /// Wake-ups by the network while packets over the loopback device were not followed: threads of the program may have sent
    /// the packets.
    PacketsNotFollowed { wakings: u64 },
    /// Threads were stopped by a debugger or a signal for this time, summed.
    Stopped { stopped_ns: u64 },
    /// Events contradict a thread's state. `unseen_switches`: switches that the kernel did not report; `recorded_ns`: length
    /// of the recording.
    Contradiction {
        places: u64,
        unseen_switches: u64,
        unknown_ns: u64,
        #[serde(default)]
        recorded_ns: u64,
    },
    /// Switches that the kernel did not report, inferred from its count of CPU time.
    Inferred { switches: u64 },
    /// Lock operations of threads are missing in this number of places.
    LocksLost { places: u64 },
    /// Operations of these families were lost: only their waits are recorded.
    OperationsLost { families: Vec<String> },
    /// Lock operations of threads that were alone in their process were not recorded.
    OperationsLeftOut { operations: u64 },
    /// Operations that no thread waited for were counted, not recorded.
    OperationsCounted { operations: u64 },
    /// Operations of threads that may not read the clock were counted, not recorded.
    OperationsForbidden { operations: u64 },
    /// Acquisitions of mutexes that several threads use, and the smaller number of pairs that stand for them.
    OperationsJoined { acquisitions: u64, pairs: u64 },
    /// A family of lock functions has no probes in some processes: they were removed after `after_ns`, or never set because
    /// of a trial's result.
    OperationsOff { family: String, processes: usize, after_ns: Option<u64>, tried: Option<OperationsTried> },
    /// Function exits without an entry.
    StrayExit { exits: u64 },
    /// Recordings of several hosts were joined.
    Hosts { hosts: u64, messages: u64, clock_error_ns: u64 },
    /// Child processes that are not recorded.
    Children { processes: u64 },
    /// Facts, notes and stacks that did not fit into the session file.
    FileFull { left_out: LeftOut },
    /// CPU time from events and from /proc differ for some threads; `thread` differs most.
    CpuTime { threads: u64, thread: String, events_ns: u64, proc_ns: u64 },
    /// Functions whose probes were removed because of too many calls.
    #[serde(rename = "folded")]
    #[strum(serialize = "folded")]
    ProbesRemoved { functions: Names },
    /// Functions whose probes were removed on request.
    AskedOff { functions: Names },
    /// Cost of probe hits, of `ran_ns` on CPUs, taken out of compute time.
    ProbeCost { cost_ns: u64, ran_ns: u64 },
    /// Waits that ended without a recorded wake-up, of all that ended.
    Unmatched { waits: u64, of: u64 },
    /// Recorded or predicted lengths exceed the largest representable one and were cut to it.
    TooLong { recorded: bool },
    /// With simulated locks the program ends in a deadlock that did not happen in reality, so these locks are replayed.
    SimulatedDeadlock { stuck: Stuck },
    /// Objects whose waits are replayed as recorded: the first ones, and how many more.
    Replayed { objects: Vec<ReplayedObject>, more: usize },
    /// Condition variables whose purpose is not known.
    ConditionsReplayed { conditions: Names },
    /// Condition variables that were signalled and never waited for.
    NeverAwaited { conditions: Names },
    /// Objects that leave a trace only where a thread waits for them. `all_locks`: all locks of the program are such
    /// objects; `rust`: locks of Rust's library are; `go`: the program has goroutines, which are not visible.
    Uncontended { objects: usize, all_locks: bool, rust: bool, go: bool },
    /// Acquisitions of locks without probes. Threads waited or woke others at `seen` of them. `added` ones are estimated from
    /// samples of the code under the lock, and each stands for several.
    PutBack { locks: usize, seen: u64, added: u64, each_stands_for: u64 },
    /// Joins of threads that had already ended, which leave no trace and are assumed; `of`: all threads created in rounds.
    JoinsPutBack { joins: usize, of: usize },
    /// Locks without probes whose hold times are not known.
    HeldNotMeasured { locks: usize },
    /// Polling and spinning that counts as waiting. The end of `guessed` of the `waits` is a guess; `hand_overs` more are for
    /// spin locks that only samples show.
    Spinning { spun_ns: u64, ran_ns: u64, waits: u32, guessed: u32, hand_overs: usize },
    /// Busy waiting that counts as computing.
    BusyWait { yielded: Option<Yielded>, seen: Option<SeenWaiting>, most_ns: u64, ran_ns: u64 },
    /// Compute time with too few samples to attribute it.
    FewSamples { undivided_ns: f64, all_ns: f64 },
    /// Samples whose stacks do not reach the thread's first function.
    TruncatedStacks { stacks: u64, of: u64 },
    /// The run ends when this thread has slept this long. The sleep is taken out: times are for the same work.
    OwnClock { thread: String, slept_ns: u64 },
    /// The kernel's work on memory that threads share has this share of the CPU time; only one thread at a time can do it.
    KernelWorkGrows { share: f64 },
    /// Functions without probes, written out as calls from samples.
    SpelledOut { functions: usize, samples: u64 },
    /// Unlocks of an object not held, which are ignored: the first case, and how many more.
    UnlockNotHeld { thread: String, operation: u32, object: String, more: u64 },
    /// Threads created twice: the first case, and how many more.
    CreatedTwice { thread: String, operation: u32, created: String, more: u64 },
    /// Edges released twice: the first case, and how many more.
    ReleasedTwice { thread: String, operation: u32, edge: String, more: u64 },
    /// Threads of the program wait forever. In a recorded program they waited for each other until the recording's end.
    /// `others_ran`: whether other threads ran during that time.
    Deadlock {
        stuck: Stuck,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others_ran: Option<bool>,
    },
    /// Threads wait forever in the simulation, on `cpus` CPUs if known (0: unlimited), but did not in the recording.
    DeadlockInSimulation { stuck: Stuck, cpus: Option<u32> },
    /// The program is invalid; `error` says what is wrong and where.
    InvalidProgram { error: String },
    /// The end of the file is missing: writing it was interrupted.
    CutSession { error: String },
    /// Part of the file is damaged.
    DamagedSession { error: String },
    /// Bytes follow the end of the file.
    TrailingBytes { error: String },
    /// The file exceeds the size that is read.
    SessionTooLarge { error: String },
    /// A part of the recording was analysed. `apart`: [`crate::timeline::Typical::apart`], if the part was chosen among all
    /// parts of that length.
    Excerpt {
        /// Its start, nanoseconds from the recording's start.
        from_ns: u64,
        length_ns: u64,
        /// The recording's length.
        whole_ns: u64,
        records: u64,
        /// Number of records in the complete recording.
        of: u64,
        apart: Option<f64>,
        /// Whether the part was chosen by a sample of the records.
        sampled: bool,
    },
    /// Records of unknown kinds.
    UnknownRecords { records: u64 },
    /// The command left processes running when it ended.
    LeftRunning { processes: Names },
    /// Other programs used this share of the CPUs during the measurement.
    BusyMachine { share: f64 },
    /// The predicted time of the recorded machine differs from the recording's.
    UnlikeRun {
        predicted_ns: u64,
        measured_ns: u64,
        #[serde(default)]
        others_ns: u64,
    },
    /// Recording used this share of the program's own CPU time; `in_threads`: the part in the program's threads.
    Costly {
        share: f64,
        #[serde(default)]
        in_threads: f64,
    },
    /// The command was recorded again without lock operations, since this share of the records was lost.
    RecordedAgain { lost_share: f64 },
    /// A kind, from a document, that this version does not know.
    #[serde(untagged)]
    Other { kind: String, text: String },
}

/// Calls of `sched_yield` by which threads gave up CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Yielded {
    /// Number of calls.
    pub times: u64,
    /// Time on the CPUs before the calls, nanoseconds; 0 where samples show how much of it was waiting.
    pub ns: u64,
    /// The thread with most calls.
    pub most: String,
}

/// Samples in functions that only wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenWaiting {
    /// Samples in functions that wait.
    pub samples: u64,
    /// All samples.
    pub of: u64,
    /// Time that the samples in such functions stand for, nanoseconds.
    pub ns: u64,
    /// The most frequent function.
    pub function: String,
}

/// A prediction that is off by more than this share, or a recording that takes more of the threads' time, is no answer.
const MUCH: f64 = 0.3;
/// If recording takes at most this share of the CPU time of the program's threads, it does not distort their times.
const DISTORTS: f64 = 0.1;

impl Finding {
    /// Whether goroutines ran, whose waits are not visible.
    pub(crate) fn is_of_go(&self) -> bool {
        matches!(self, Finding::Uncontended { go: true, .. })
    }

    /// The stable word for the finding's kind, as in JSON.
    pub fn kind(&self) -> &str {
        match self {
            Finding::Other { kind, .. } => kind,
            known => known.into(),
        }
    }

    /// How much the finding can change the answer.
    pub fn severity(&self) -> Severity {
        match self {
            Finding::Deadlock { others_ran: None, .. }
            | Finding::DeadlockInSimulation { .. }
            | Finding::InvalidProgram { .. }
            | Finding::TooLong { .. }
            | Finding::CutSession { .. }
            | Finding::DamagedSession { .. } => Severity::Wrong,
            Finding::UnlikeRun { predicted_ns, measured_ns, others_ns } => {
                let off_ns = predicted_ns.abs_diff(*measured_ns);
                if is_delay_by_others(*predicted_ns, *measured_ns, *others_ns) {
                    Severity::MayBeOff(Some(off_ns))
                } else if off_ns as f64 > MUCH * *measured_ns as f64 {
                    Severity::Wrong
                } else {
                    Severity::MayBeOff(Some(off_ns))
                }
            }
            Finding::Costly { in_threads, .. } if *in_threads > MUCH => Severity::Wrong,
            Finding::Costly { in_threads, .. } if *in_threads <= DISTORTS => Severity::Information,
            Finding::ProbesRemoved { .. }
            | Finding::ProbeCost { .. }
            | Finding::Inferred { .. }
            | Finding::OwnClock { .. }
            | Finding::Excerpt { apart: None, .. }
            | Finding::SpelledOut { .. }
            | Finding::JoinsPutBack { .. }
            // `Replayed` lists the objects.
            | Finding::SimulatedDeadlock { .. }
            | Finding::LeftRunning { .. }
            | Finding::RecordedAgain { .. }
            | Finding::Children { .. }
            | Finding::Hosts { .. }
            | Finding::Stopped { .. } => Severity::Information,
            Finding::Gap { missing_ns, .. }
            | Finding::ProbesLate { missing_ns }
            | Finding::LocksLate { missing_ns, .. }
            | Finding::LocksPaused { missing_ns, .. } => Severity::MayBeOff(Some(*missing_ns)),
            // Less than a thousandth disappears in the rounding of results.
            Finding::Contradiction { unknown_ns, recorded_ns, .. }
                if unknown_ns.saturating_mul(1000) < *recorded_ns =>
            {
                Severity::Information
            }
            Finding::Contradiction { unknown_ns, .. } => Severity::MayBeOff(Some(*unknown_ns)),
            Finding::BusyWait { most_ns, .. } => Severity::MayBeOff(Some(*most_ns)),
            Finding::CpuTime { events_ns, proc_ns, .. } => {
                Severity::MayBeOff(Some(events_ns.abs_diff(*proc_ns)))
            }
            Finding::FewSamples { undivided_ns, all_ns } if undivided_ns < &(0.5 * all_ns) => {
                Severity::Information
            }
            _ => Severity::MayBeOff(None),
        }
    }

    /// Threads that wait forever, if the program itself has that deadlock.
    pub fn deadlock(&self) -> Option<&Stuck> {
        match self {
            Finding::Deadlock { stuck, .. } => Some(stuck),
            _ => None,
        }
    }

    /// Whether both findings are of the same kind, whatever their numbers.
    pub fn is_like(&self, other: &Finding) -> bool {
        self.kind() == other.kind()
    }
}

/// Whether other programs used CPUs for at least as long as the run exceeded the prediction.
pub fn is_delay_by_others(predicted_ns: u64, measured_ns: u64, others_ns: u64) -> bool {
    measured_ns > predicted_ns && measured_ns - predicted_ns <= others_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts rely on the words for kinds: the method and the document must agree.
    #[test]
    fn a_note_is_read_back_from_its_json() {
        let names = Names::first(1, ["f".to_owned(), "g".to_owned()]);
        let tried = Some(OperationsTried { calls: Some(5), cost_ppm: 7 });
        let stuck = StuckThread { thread: "T".to_owned(), waits_for: WaitsFor::OwnEnd, function: None };
        let stuck = Stuck { end_ns: 1.5, threads: vec![stuck], more: 2 };
        for finding in [
            Finding::Gap { missing_ns: 5, joined: 0 },
            Finding::OperationsOff { family: "mutex".to_owned(), processes: 2, after_ns: None, tried },
            Finding::ProbesRemoved { functions: names },
            Finding::TooLong { recorded: true },
            Finding::DeadlockInSimulation { stuck, cpus: Some(4) },
            Finding::Other { kind: "new".to_owned(), text: "a text".to_owned() },
        ] {
            let json = serde_json::to_value(&finding).expect("JSON");
            assert_eq!(json["kind"], finding.kind());
            assert_eq!(serde_json::from_value::<Finding>(json).expect("a finding"), finding);
        }
        let of = |json: &str| serde_json::from_str::<Finding>(json).expect("a finding");
        let other = Finding::Other { kind: "loss".to_owned(), text: "7 were".to_owned() };
        assert_eq!(of(r#"{"kind":"loss","text":"7 were"}"#), other);
        assert_eq!(of(r#"{"kind":"loss","records":7,"text":"7 were"}"#), Finding::Loss { records: 7 });
    }

    #[test]
    fn each_kind_of_note_is_in_the_glossary() {
        let glossary = include_str!("../../../docs/glossary.md");
        let is_missing = |kind: &&&str| !glossary.contains(&format!("`{kind}`")) && **kind != "other";
        assert_eq!(Finding::VARIANTS.iter().filter(is_missing).count(), 0);
    }

    /// A contradiction of 447 µs in three seconds must not lower the trust in an answer.
    #[test]
    fn a_contradiction_too_short_to_matter_is_information() {
        let of = |unknown_ns, recorded_ns| {
            Finding::Contradiction { places: 2, unseen_switches: 2, unknown_ns, recorded_ns }.severity()
        };
        assert_eq!(of(447_000, 3_000_000_000), Severity::Information);
        assert_eq!(of(4_470_000, 3_000_000_000), Severity::MayBeOff(Some(4_470_000)));
        assert_eq!(of(u64::MAX, 1), Severity::MayBeOff(Some(u64::MAX)), "a hostile one");
        assert_eq!(of(447_000, 0), Severity::MayBeOff(Some(447_000)), "an old document");
    }
}
