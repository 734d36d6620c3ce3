//! From a timeline to a program ([`crate::program`]) that simulations can finish. One series of simulations finds
//! whether the program finishes on all tried CPU counts, and which objects prevent that. So all commands get the same
//! program.

use crate::cpus::Cpus;
use crate::finding::Finding;
use crate::predict::{Model, Timing};
pub use crate::program::DeadEnd;
use crate::program::{Operation, Program, from_timeline_with};
use crate::requests::time_of_requests;
use crate::schedule::Simulation;
use crate::timeline::Timeline;

/// The program of a timeline. A function counts once from its outermost call: recursive calls are part of that one, whether
/// the kernel recorded them or not.
pub fn from_timeline(timeline: &Timeline) -> Program {
    from_timeline_on(timeline, &|count, attempt| (0..count).find_map(attempt))
}

/// Makes a number of independent attempts; returns the answer of the first one, by number, that has any.
pub type First = dyn Fn(usize, &(dyn Fn(usize) -> Option<DeadEnd> + Sync)) -> Option<DeadEnd>;

/// Like `from_timeline`; `first` may make several attempts at once.
pub fn from_timeline_on(timeline: &Timeline, first: &First) -> Program {
    with_request_time(timeline, from_timeline_with(timeline, &|program| verify(program, first, true)))
}

/// Like `from_timeline`, for a program that will be scheduled only, never run with ideal sharing: half as many simulations.
pub fn scheduled_from_timeline(timeline: &Timeline) -> Program {
    let first: &First = &|count, attempt| (0..count).find_map(attempt);
    with_request_time(timeline, from_timeline_with(timeline, &|program| verify(program, first, false)))
}

/// Like `from_timeline`, without any simulation: with names, locks and samples, for following the recording itself. Whether
/// the program finishes in a simulation is not known.
pub fn unsimulated_from_timeline(timeline: &Timeline) -> Program {
    from_timeline_with(timeline, &|_| None)
}

fn with_request_time(timeline: &Timeline, mut program: Program) -> Program {
    if let Some((name, spent)) = time_of_requests(timeline, &program)
        && let Some(end) = program.recorded.traffic.iter_mut().find(|end| end.served && end.name == name)
    {
        end.spent = spent;
    }
    program
}

/// CPU counts to try if the program has more threads, in addition to unlimited CPUs and the recording's own count.
const TRIED: [u32; 5] = [1, 2, 4, 8, 16];

/// Simulates the program in every way in which commands do: on unlimited processors without costs, and with its machine's
/// costs on the most usual CPU counts, scheduled and, if `ideally`, shared ideally. `None`: it finishes in all of them.
fn verify(program: &Program, first: &First, ideally: bool) -> Option<DeadEnd> {
    let timing = Timing::new(program, &Model::default()).ok()?;
    let own = program.machine.as_ref().and_then(|machine| machine.cpus_used);
    let counts = TRIED.into_iter().chain(own).filter(|count| (*count as usize) < program.threads.len());
    let counts = counts.filter_map(std::num::NonZeroU32::new).map(Cpus::Count);
    let counts: Vec<Cpus> = counts.chain([Cpus::Infinite]).collect();
    first(counts.len() + 1, &|number| {
        let Some(cpus) = number.checked_sub(1).and_then(|place| counts.get(place)).copied() else {
            let schedule = Simulation::new(program).ok()?.finish();
            return stuck(program, &schedule.done, &schedule.findings);
        };
        let outcome = timing.run(cpus, 0);
        stuck(program, &outcome.done, &outcome.findings).or_else(|| {
            if !ideally {
                return None;
            }
            let schedule = Simulation::with_costs(program, &timing.costs(cpus)).run_to_end().schedule;
            stuck(program, &schedule.done, &schedule.findings)
        })
    })
}

/// The objects and edges that unfinished threads wait for, background threads excepted.
fn stuck(program: &Program, done: &[usize], findings: &[Finding]) -> Option<DeadEnd> {
    let mut stuck: Option<DeadEnd> = None;
    for (thread, done) in program.threads.iter().zip(done) {
        if thread.background.is_some() {
            continue;
        }
        let Some(next) = thread.operations.get(*done) else { continue };
        let stuck = stuck.get_or_insert_with(DeadEnd::default);
        if let Operation::Lock(object)
        | Operation::ReadLock(object)
        | Operation::WriteLock(object)
        | Operation::SpinLock(object)
        | Operation::Barrier(object, _)
        | Operation::SemWait(object)
        | Operation::Once(object, _) = next
        {
            stuck.objects.push(*object);
        }
        if let Operation::Await(edge) = next {
            stuck.edges.push(*edge);
        }
    }
    let mut stuck = stuck?;
    stuck.objects.sort_unstable();
    stuck.objects.dedup();
    let deadlock = findings.iter().find_map(|finding| match finding {
        Finding::Deadlock { stuck, .. } | Finding::DeadlockInSimulation { stuck, .. } => Some(stuck.clone()),
        _ => None,
    });
    stuck.threads = deadlock.unwrap_or_default();
    Some(stuck)
}
