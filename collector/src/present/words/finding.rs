//! Findings as sentences.

use super::deadlock::{case, deadlock, waiting};
use super::excerpt;
use super::short::short;
use crate::cell::{counted, duration};
use engine::event::{LeftOut, OperationsTried};
use engine::program::quoted;
use engine::report::{
    Finding, Names, ReplayReason, ReplayedObject, SeenWaiting, Yielded, is_delay_by_others,
};

/// A finding as one sentence, without a full stop. Names are not made safe for terminals: they may contain any
/// characters.
pub fn sentence(finding: &Finding) -> String {
    let found = of_recording(finding).or_else(|| of_run(finding)).or_else(|| of_locks(finding));
    found.unwrap_or_else(|| of_program(finding))
}

/// Findings about what is missing in a recording.
fn of_recording(finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::Loss { records } => format!("{} were lost", plural(*records, "record", "records")),
        Finding::Gap { missing_ns, joined } => {
            let joined = match joined {
                0 => String::new(),
                joined => format!(
                    "; {joined} gaps were too many to be kept apart, so more is unknown than was lost"
                ),
            };
            format!("records are missing in {} of the recording, summed over CPUs{joined}", time(*missing_ns))
        }
        Finding::Contradiction { places, unseen_switches, unknown_ns, .. } => {
            let why = match unseen_switches {
                0 => String::new(),
                unseen => format!(" (the kernel did not report {})", plural(*unseen, "switch", "switches")),
            };
            format!(
                "in {} a thread's events contradict each other, so at least one is missing{why}: {} of thread time is unknown",
                plural(*places, "place", "places"),
                time(*unknown_ns)
            )
        }
        Finding::Inferred { switches } => format!(
            "the kernel did not report {} to threads of the program: the time follows from the thread's CPU time",
            plural(*switches, "switch", "switches")
        ),
        Finding::FileFull { left_out } => format!("the session file had no room for {}", missing(left_out)),
        Finding::Unmatched { waits, of } => {
            format!("{waits} of {of} waits ended without a recorded wake-up: they keep their measured length")
        }
        Finding::CutSession { error }
        | Finding::DamagedSession { error }
        | Finding::TrailingBytes { error }
        | Finding::SessionTooLarge { error } => error.clone(),
        Finding::Excerpt { .. } => excerpt::sentence(finding)?,
        Finding::UnknownRecords { records } => format!(
            "this longpole does not know the kind of {records} records: use the longpole that recorded them"
        ),
        Finding::ProbesLate { missing_ns } => format!(
            "new processes and libraries ran for {} without function probes: calls in that time are missing",
            time(*missing_ns)
        ),
        Finding::NotProbed { processes } => format!(
            "{} got no function probes (too short-lived, or too many at once): their calls are missing",
            plural(*processes, "process", "processes")
        ),
        Finding::StrayExit { exits } => {
            format!("{} without an entry do not count", plural(*exits, "function exit", "function exits"))
        }
        Finding::ProbesRemoved { functions } => format!(
            "too many calls, so longpole removed the probes of {}: later calls count for the callers",
            listed_functions(functions)
        ),
        Finding::AskedOff { functions } => format!(
            "a user removed the probes of {}: calls meanwhile count for the callers",
            listed_functions(functions)
        ),
        Finding::ProbeCost { cost_ns, ran_ns } => format!(
            "{} of probe hits ({:.1} % of the CPU time) is subtracted from the compute time; the cost of a hit was measured in longpole, and may be higher in the program",
            time(*cost_ns),
            percent(*cost_ns, *ran_ns)
        ),
        Finding::FewSamples { undivided_ns, all_ns } => format!(
            "{} of compute time ({:.1} %) has too few samples to be divided: it counts for the innermost function with probes, if there is one",
            duration(*undivided_ns),
            if *all_ns > 0.0 { 100.0 * undivided_ns / all_ns } else { 0.0 }
        ),
        Finding::TruncatedStacks { stacks, of } => format!(
            "{stacks} of {of} sampled stacks lack their outer callers: total times of outer functions are too small (self times are not)"
        ),
        _ => return None,
    })
}

/// Findings about how recording made the run unlike the program's own.
fn of_run(finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::Stopped { stopped_ns } => format!(
            "a debugger or a signal stopped threads for {} in all: that counts as waiting, as long on any number of CPUs",
            time(*stopped_ns)
        ),
        Finding::Hosts { hosts, messages, clock_error_ns } => format!(
            "this is a joined recording of {hosts} hosts: {} that ended waits are part of critical paths, clocks agree within {}, and each host keeps its CPUs, so no other number of CPUs is predicted",
            counted(usize::try_from(*messages).unwrap_or(usize::MAX), "message"),
            duration(*clock_error_ns as f64)
        ),
        Finding::PacketsNotFollowed { wakings } => format!(
            "{} may come from packets that the program's own threads sent over the loopback device: to keep to --overhead, longpole did not follow packets for a while, and such waits keep their recorded length",
            plural(*wakings, "wake-up by the network", "wake-ups by the network")
        ),
        Finding::Children { processes } => format!(
            "{} not recorded: waits for child processes keep their recorded length on any number of CPUs (--children records them)",
            plural(*processes, "child process is", "child processes are")
        ),
        Finding::CpuTime { threads, thread, events_ns, proc_ns } => format!(
            "CPU time from events and from /proc differs for {}, most for {thread}: {} and {}",
            plural(*threads, "thread", "threads"),
            time(*events_ns),
            time(*proc_ns)
        ),
        Finding::OwnClock { thread, slept_ns } => format!(
            "the run ends when {thread} has slept for {}, however fast the other threads are: times are for the same work; a faster program does more work in that time",
            time(*slept_ns)
        ),
        Finding::KernelWorkGrows { share } => format!(
            "the kernel's work on memory that threads share takes {:.0} % of the CPU time: predictions lack how long the threads wait for \
             each other there on other numbers of CPUs",
            share * 100.0
        ),
        Finding::LeftRunning { processes } => left_running(processes),
        Finding::BusyMachine { share } => format!(
            "other programs took {:.0} % of these CPUs' time while the command was measured: measure again on a quiet machine",
            share * 100.0
        ),
        Finding::UnlikeRun { predicted_ns, measured_ns, others_ns }
            if is_delay_by_others(*predicted_ns, *measured_ns, *others_ns) =>
        {
            format!(
                "the program took {} instead of the predicted {}, and other programs took {} of the CPUs' time meanwhile: the prediction is for a machine without them",
                time(*measured_ns),
                time(*predicted_ns),
                time(*others_ns)
            )
        }
        Finding::UnlikeRun { predicted_ns, measured_ns, .. } => format!(
            "on the recorded machine, {} are predicted, but the program took {}: times on other numbers of CPUs may be as far off",
            time(*predicted_ns),
            time(*measured_ns)
        ),
        Finding::Costly { in_threads, .. } if finding.severity() != engine::report::Severity::Information => {
            format!(
                "recording took {:.0} % of the time of the program's threads, so a part of the result is longpole: record for longer",
                in_threads * 100.0
            )
        }
        Finding::Costly { share, in_threads } => format!(
            "longpole itself used CPU time, {:.0} % as much as the program; recording took {:.1} % of the threads' time",
            (share - in_threads) * 100.0,
            in_threads * 100.0
        ),
        Finding::RecordedAgain { lost_share } => format!(
            "{:.0} % of the records were lost, too many to simulate locks: longpole recorded again without lock operations, \
             so threads wait for each other as recorded",
            lost_share * 100.0
        ),
        _ => return None,
    })
}

fn locks_paused(missing_ns: u64, recorded_ns: u64) -> String {
    format!(
        "lock operations were not recorded for {} of {}, to keep to --overhead: only waits for \
         locks are visible there (--interpose always records all)",
        time(missing_ns),
        time(recorded_ns)
    )
}

/// Findings about what is not known of locks.
fn of_locks(finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::LocksLate { missing_ns, recorded_ns } if *missing_ns > recorded_ns / 100 * 95 => {
            "lock operations were not recorded: only waits for locks are visible".to_owned()
        }
        Finding::LocksLate { missing_ns, .. } => format!(
            "the program ran for {} before its lock operations were recorded: earlier ones are missing",
            time(*missing_ns)
        ),
        Finding::LocksPaused { missing_ns, recorded_ns } => locks_paused(*missing_ns, *recorded_ns),
        Finding::LocksLost { places } => format!(
            "in {} lock operations of a thread are missing: locks that the thread held there do not count",
            plural(*places, "place", "places")
        ),
        Finding::OperationsLost { families } => format!(
            "operations of {} were lost, so the holders are not known: only waits are visible, as recorded",
            families.join(", ")
        ),
        Finding::OperationsLeftOut { operations } => format!(
            "{} of threads that were alone in their process were not recorded, to keep to --overhead: no thread can have waited, and `--by lock` does not count them (--overhead none records all)",
            plural(*operations, "mutex operation", "mutex operations")
        ),
        Finding::OperationsCounted { operations } => format!(
            "{} without a waiter were only counted, since they came faster than longpole could read them: \
             `--by lock` does not count them, and on other numbers of CPUs no thread waits for them (a larger --ring-size \
             holds more)",
            plural(*operations, "mutex operation", "mutex operations")
        ),
        Finding::OperationsForbidden { operations } => format!(
            "{} of threads that may not read the clock or call the kernel (seccomp, PR_SET_TSC) were only counted: \
             the locks that such a thread held are not known, only its waits are visible",
            plural(*operations, "lock operation", "lock operations")
        ),
        Finding::OperationsJoined { acquisitions, pairs } => format!(
            "threads took shared mutexes {acquisitions} times, more than are simulated one by one: {pairs} acquisitions stand \
             for them, so waits for these mutexes on other numbers of CPUs are rougher than usual"
        ),
        Finding::OperationsOff { family, processes, after_ns, tried } => {
            operations_off(family, *processes, *after_ns, tried.as_ref())
        }
        Finding::SimulatedDeadlock { stuck } => format!(
            "the simulation alone ends in a deadlock, so its locks stay as recorded: {}",
            stuck.threads.last().map(case).unwrap_or_default()
        ),
        Finding::Replayed { objects, more } => replayed(objects, *more),
        Finding::ConditionsReplayed { conditions } => format!(
            "the recording does not show what condition variables count, so their wake-ups stay as recorded ({}): {}",
            conditions.count(),
            listed(conditions)
        ),
        Finding::NeverAwaited { conditions } => format!(
            "condition variables were signalled but never waited for in the recording; with more CPUs, threads may have to wait ({}): {}",
            conditions.count(),
            listed(conditions)
        ),
        Finding::Uncontended { objects, all_locks, rust, go } => {
            uncontended(*objects, *all_locks, *rust, *go)
        }
        Finding::PutBack { locks, seen, added, each_stands_for } => put_back(*locks, *seen, *added, *each_stands_for),
        Finding::JoinsPutBack { joins, of } => joins_put_back(*joins, *of),
        Finding::HeldNotMeasured { locks } => format!(
            "how long {} without probes {} held is not known (too few stacks at waits and wake-ups, or no function both takes \
             and releases the lock): waits there stay as recorded, and predictions with more parallelism than recorded are optimistic",
            plural(*locks as u64, "lock", "locks"),
            if *locks == 1 { "is" } else { "are" }
        ),
        Finding::Spinning { spun_ns, ran_ns, waits, guessed, hand_overs } => format!(
            "threads spin until another thread is done, for {} ({:.0} % of all CPU time): that counts as waiting. {waits} such waits end as recorded, by the thread that computed then; for {guessed} of them the choice of the thread is a guess. {}",
            time(*spun_ns),
            percent(*spun_ns, *ran_ns),
            match hand_overs {
                0 => "With fewer CPUs than such threads, predictions lack the time that spinning takes from others".to_owned(),
                count => format!("{count} more are for spin locks that only samples show: the holder and the time held are estimated"),
            }
        ),
        Finding::BusyWait { yielded, seen, most_ns, ran_ns } => {
            busy_wait(yielded.as_ref(), seen.as_ref(), *most_ns, *ran_ns)
        }
        _ => return None,
    })
}

fn joins_put_back(joins: usize, of: usize) -> String {
    format!(
        "{joins} of {of} threads had ended before another thread could wait for that: it is assumed to join them, as it joins the \
         others"
    )
}

fn put_back(locks: usize, seen: u64, added: u64, each_stands_for: u64) -> String {
    let joined = match each_stands_for {
        0 | 1 => String::new(),
        many => format!("; one stands for {many}, since there are too many to simulate each"),
    };
    format!(
        "{} had no probes: waits and wake-ups show {seen} acquisitions; {added} more, without a waiter, are estimated from samples \
         of the code under the lock, each as long as the visible ones{joined}",
        plural(locks as u64, "lock", "locks")
    )
}

/// Sentences for findings about a program or its simulation.
fn of_program(finding: &Finding) -> String {
    let cases = |more: &u64| match more {
        0 => String::new(),
        more => format!(" ({more} more cases like it)"),
    };
    match finding {
        Finding::SpelledOut { functions, samples } => format!(
            "{} without probes: {samples} samples divide each stretch of computing among them (`longpole report` has the errors of their times)",
            plural(*functions as u64, "function is", "functions are")
        ),
        Finding::UnlockNotHeld { thread, operation, object, more } => format!(
            "operation {operation} of {thread} unlocks {}, which it does not hold: ignored{}",
            quoted(object),
            cases(more)
        ),
        Finding::CreatedTwice { thread, operation, created, more } => format!(
            "operation {operation} of {thread} creates {created}, which has been created before: ignored{}",
            cases(more)
        ),
        Finding::ReleasedTwice { thread, operation, edge, more } => format!(
            "operation {operation} of {thread} releases {}, which has been released before: ignored{}",
            quoted(edge),
            cases(more)
        ),
        Finding::Deadlock { stuck, others_ran: None } => deadlock(stuck),
        Finding::Deadlock { stuck, others_ran: Some(_) } => format!(
            "a deadlock, from {} on: {}. Predicted times cover what ran before",
            time(stuck.end_ns as u64),
            waiting(stuck)
        ),
        Finding::DeadlockInSimulation { stuck, cpus } => {
            let on = match cpus {
                None => String::new(),
                Some(0) => "on unlimited CPUs ".to_owned(),
                Some(1) => "on 1 CPU ".to_owned(),
                Some(cpus) => format!("on {cpus} CPUs "),
            };
            format!("{on}{} (this did not happen in the recording)", deadlock(stuck))
        }
        Finding::TooLong { recorded: true } => {
            "lengths add up to more than 106 days and were cut there".to_owned()
        }
        Finding::TooLong { recorded: false } => {
            "the predicted run is cut off: it is longer than 53 days, or takes too many steps".to_owned()
        }
        Finding::InvalidProgram { error } => error.clone(),
        Finding::Other { text, .. } => text.clone(),
        // All other kinds of findings get their sentences above.
        other => other.kind().to_owned(),
    }
}

fn replayed(objects: &[ReplayedObject], more: usize) -> String {
    let why = |reason: ReplayReason| match reason {
        ReplayReason::Lost => "operations of its kind were lost, so its holders are not known",
        ReplayReason::HadTwice => "two threads seem to hold it at once",
        ReplayReason::GivenByAnother => "released by a thread that did not take it",
        ReplayReason::WokenFromOutside => "waits for it end without one of its operations",
        ReplayReason::OddBarrier => "the arrivals do not fit its count",
        ReplayReason::CountNotKnown => "its count at the start is not known",
        ReplayReason::CountTooSmall => "more was taken than its count",
        ReplayReason::Deadlock => "its simulation ends in a deadlock that did not happen",
    };
    let named = objects.iter().map(|object| format!("{} ({})", object.name, why(object.reason)));
    let named = Names { names: named.collect(), more };
    format!(
        "waits for locks and other objects stay as recorded on any number of CPUs ({}): {}",
        named.count(),
        listed(&named)
    )
}

fn uncontended(objects: usize, all_locks: bool, rust: bool, go: bool) -> String {
    let of_go = "Go's runtime decides what goroutines wait for, and its locks and channels are not visible (its futexes are for \
                 threads that wait for goroutines): predictions with more parallelism than recorded are optimistic for goroutines";
    if all_locks {
        return "locks that no thread had to wait for leave no trace in the recording: with more CPUs they may limit more than \
                shown"
            .to_owned();
    }
    if rust {
        return "Rust's own locks leave no trace in the recording where no thread had to wait: with more CPUs they may limit more \
                than shown"
            .to_owned();
    }
    let (count, it) = match objects {
        0 => return of_go.to_owned(),
        1 => ("1 object".to_owned(), "it"),
        many => (format!("{many} objects"), "them"),
    };
    let go = if go { format!("; {of_go}") } else { String::new() };
    format!(
        "uncontended acquisitions of {count} are not visible; predictions with more parallelism than recorded are optimistic for {it}{go}"
    )
}

fn operations_off(
    family: &str,
    processes: usize,
    after_ns: Option<u64>,
    tried: Option<&OperationsTried>,
) -> String {
    let of = if processes == 1 { String::new() } else { format!(" of {processes} processes") };
    let cost = tried.map_or(String::new(), |tried| format!(": {}", operations_tried(tried)));
    match after_ns {
        Some(after_ns) => format!(
            "{family}{of} were used too often and lost their probes after {:.3} s: from then on only waits are visible",
            after_ns as f64 / 1e9
        ),
        None => format!("{family}{of} have no probes{cost}, so only waits are visible"),
    }
}

/// The result of a trial of lock functions.
pub fn operations_tried(tried: &OperationsTried) -> String {
    match tried.calls {
        Some(calls) => format!(
            "the program uses them {calls} times in a second of its CPU time, and probes would cost {:.0} %",
            tried.cost_ppm as f64 / 1e4
        ),
        None => "their uses could not be counted here".to_owned(),
    }
}

fn busy_wait(yielded: Option<&Yielded>, seen: Option<&SeenWaiting>, most_ns: u64, ran_ns: u64) -> String {
    let mut how = Vec::new();
    if let Some(yielded) = yielded {
        let had = match yielded.ns {
            0 => String::new(),
            ns => format!(", after {} of CPU time ({:.0} % of all)", time(ns), percent(ns, ran_ns)),
        };
        how.push(format!(
            "they called sched_yield {} times{had}, most often {}",
            yielded.times, yielded.most
        ));
    }
    if let Some(seen) = seen {
        how.push(format!(
            "{} of {} samples found them in {}, about {} ({:.0} %)",
            seen.samples,
            seen.of,
            seen.function,
            time(seen.ns),
            percent(seen.ns, ran_ns)
        ));
    }
    let wrong = match most_ns {
        0 => "predictions are too short where threads have to wait longer".to_owned(),
        ns => format!(
            "predictions are too long by up to {} of CPU time where threads wait for less time, and too short where they wait for \
             longer",
            time(ns)
        ),
    };
    format!(
        "threads wait but keep their CPUs busy: {}. The recording does not show for whom, so that counts as computing: {wrong}",
        how.join("; ")
    )
}

/// Processes that a command leaves running.
pub fn left_running(left: &Names) -> String {
    let count = left.count();
    let (processes, they) = if count == 1 { ("process", "it") } else { ("processes", "they") };
    format!(
        "the command left {count} {processes} running when it ended: {}. Later measurements shared the machine with {}, and {they} may still run: give a command that waits \
         for the processes it starts",
        listed(left),
        if count == 1 { "it" } else { "them" }
    )
}

/// A list of what a file had no room for, e.g. `3 stacks of samples and 1 note about gaps and probes`; empty if nothing.
pub fn missing(left_out: &LeftOut) -> String {
    let LeftOut { facts, notes, stacks, end } = *left_out;
    let all = [
        (facts, "fact (threads, functions, names, code)", "facts (threads, functions, names, code)"),
        (notes, "note about gaps and probes", "notes about gaps and probes"),
        (stacks, "stack of samples", "stacks of samples"),
        (end, "thread or lock operation at the end", "threads and lock operations at the end"),
    ];
    let there = all.into_iter().filter(|(count, ..)| *count > 0);
    let there: Vec<String> = there.map(|(count, one, several)| plural(count, one, several)).collect();
    match there.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
    }
}

/// The first names and the number of all others: `a, b and 3 more`.
fn listed(names: &Names) -> String {
    let more = if names.more > 0 { format!(" and {} more", names.more) } else { String::new() };
    format!("{}{more}", names.names.join(", "))
}

/// Like [`listed`], with shortened names of functions.
fn listed_functions(functions: &Names) -> String {
    let names = functions.names.iter().map(|name| short(name)).collect();
    listed(&Names { names, more: functions.more })
}

fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn time(ns: u64) -> String {
    duration(ns as f64)
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
#[path = "finding_tests.rs"]
mod tests;
