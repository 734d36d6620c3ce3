//! Whether the program of a recording comes to its end on unlimited processors, and which objects keep it from that.

use crate::program::{ObjectId, Operation, Program};
use crate::schedule::Simulation;
use std::collections::BTreeSet;

/// Objects that keep the program from coming to its end when they are decided anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::program) struct Culprits {
    objects: BTreeSet<u32>,
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

    /// The objects, of so many.
    pub(super) fn objects(&self, count: usize) -> impl Iterator<Item = u32> + '_ {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        (0..count).filter(|object| self.all || self.objects.contains(object))
    }
}

/// A simulated deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::program) struct Stuck {
    /// What threads wait for in vain.
    pub(in crate::program) objects: Vec<ObjectId>,
    /// Who waits for what, for people.
    pub(in crate::program) text: String,
}

/// Simulates the program on unlimited processors; `None`: it comes to its end.
pub(in crate::program) fn verify(program: &Program) -> Option<Stuck> {
    let schedule = Simulation::new(program).ok()?.finish();
    let mut stuck: Option<Stuck> = None;
    for (thread, done) in program.threads.iter().zip(&schedule.done) {
        let Some(next) = thread.operations.get(*done) else { continue };
        let stuck = stuck.get_or_insert_with(|| Stuck { objects: Vec::new(), text: String::new() });
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
    let deadlock = schedule.findings.iter().find(|finding| finding.kind == "deadlock");
    stuck.text = deadlock.map(|finding| finding.text.clone()).unwrap_or_default();
    Some(stuck)
}
