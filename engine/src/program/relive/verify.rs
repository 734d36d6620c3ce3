//! Whether the program of a recording comes to its end however it is simulated, and which objects keep it from that. Asked
//! once, before any command sees the program: so all of them see the same one.

use crate::cpus::Cpus;
use crate::finding::{self, Finding};
use crate::predict::{Model, Timing};
use crate::program::{ObjectId, Operation, Program};
use crate::schedule::Simulation;
use crate::timeline::Timeline;
use std::collections::BTreeSet;

/// Objects that keep the program from coming to its end when they are decided anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::program) struct Culprits {
    objects: BTreeSet<u32>,
    /// Conditions that do not count what they seemed to count.
    misread: BTreeSet<u32>,
    all: bool,
}

impl Culprits {
    /// Everything stays as it was recorded.
    pub(in crate::program) fn everything() -> Culprits {
        Culprits { all: true, ..Culprits::default() }
    }

    /// Whether nothing at all is decided anew.
    pub(in crate::program) fn is_all(&self) -> bool {
        self.all
    }

    /// Takes these, too; says whether there was a new one among them.
    pub(in crate::program) fn add(&mut self, others: &[ObjectId]) -> bool {
        let before = self.objects.len();
        self.objects.extend(others.iter().map(|object| object.0));
        self.objects.len() > before
    }

    /// Takes the conditions among these: what one counts is a guess, which a deadlock refutes. Says whether there was a new
    /// one among them.
    pub(in crate::program) fn misread(&mut self, timeline: &Timeline, others: &[ObjectId]) -> bool {
        let before = self.misread.len();
        let is_condition =
            |object: &u32| timeline.locks.get(*object as usize).is_some_and(|lock| lock.kind == "condition");
        self.misread.extend(others.iter().map(|object| object.0).filter(is_condition));
        self.misread.len() > before
    }

    /// Whether what the condition counts is not known.
    pub(super) fn is_misread(&self, condition: u32) -> bool {
        self.misread.contains(&condition)
    }

    /// The objects, of so many.
    pub(super) fn objects(&self, count: usize) -> impl Iterator<Item = u32> + '_ {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        (0..count).filter(|object| self.all || self.objects.contains(object))
    }
}

/// A simulated deadlock.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::program) struct Stuck {
    /// What threads wait for in vain.
    pub(in crate::program) objects: Vec<ObjectId>,
    /// Who waits for what.
    pub(in crate::program) threads: finding::Stuck,
}

/// CPU counts that the program is tried on besides unlimited ones and those of the recording, where it has more threads.
const TRIED: [u32; 5] = [1, 2, 4, 8, 16];

/// Simulates the program in every way in which commands do: on unlimited processors without any costs, and with those of
/// its machine on the CPU counts that are looked at most, both scheduled and shared ideally. `None`: it comes to its end
/// in all of them.
pub(in crate::program) fn verify(program: &Program) -> Option<Stuck> {
    let schedule = Simulation::new(program).ok()?.finish();
    if let Some(stuck) = stuck(program, &schedule.done, &schedule.findings) {
        return Some(stuck);
    }
    let timing = Timing::new(program, &Model::default()).ok()?;
    let own = program.machine.as_ref().and_then(|machine| machine.cpus_used);
    let counts = TRIED.into_iter().chain(own).filter(|count| (*count as usize) < program.threads.len());
    let counts = counts.filter_map(std::num::NonZeroU32::new).map(Cpus::Count);
    counts.chain([Cpus::Infinite]).find_map(|cpus| {
        let outcome = timing.run(cpus, 0);
        stuck(program, &outcome.done, &outcome.findings).or_else(|| {
            let schedule = Simulation::with_costs(program, &timing.costs(cpus)).run_to_end().schedule;
            stuck(program, &schedule.done, &schedule.findings)
        })
    })
}

/// What threads wait for that have not done everything; background threads need not.
fn stuck(program: &Program, done: &[usize], findings: &[Finding]) -> Option<Stuck> {
    let mut stuck: Option<Stuck> = None;
    for (thread, done) in program.threads.iter().zip(done) {
        if thread.background.is_some() {
            continue;
        }
        let Some(next) = thread.operations.get(*done) else { continue };
        let stuck =
            stuck.get_or_insert_with(|| Stuck { objects: Vec::new(), threads: finding::Stuck::default() });
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
    }
    let mut stuck = stuck?;
    stuck.objects.sort_unstable();
    stuck.objects.dedup();
    let deadlock = findings.iter().find_map(|finding| match finding {
        Finding::Deadlock { stuck } | Finding::DeadlockInSimulation { stuck, .. } => Some(stuck.clone()),
        _ => None,
    });
    stuck.threads = deadlock.unwrap_or_default();
    Some(stuck)
}
