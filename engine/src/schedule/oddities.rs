//! Contradictions inside a program that the simulation passes over: one finding for each kind, with its first case.

use super::machine::Machine;
use super::simulation::Simulation;
use super::source::Operations;
use crate::program::{EdgeId, ObjectId, ThreadId, quoted};
use crate::report::Finding;

#[derive(Debug, Default)]
pub(super) struct Oddities {
    not_held: Oddity,
    created_twice: Oddity,
    released_twice: Oddity,
}

#[derive(Debug, Default)]
struct Oddity {
    count: u64,
    first: String,
}

impl Oddity {
    fn note(&mut self, text: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = text();
        }
        self.count += 1;
    }

    fn finding(&self, kind: &str) -> Option<Finding> {
        let more = match self.count {
            0 => return None,
            1 => String::new(),
            count => format!(" ({} more cases like it)", count - 1),
        };
        Some(Finding { kind: kind.to_owned(), text: format!("{}: ignored{more}", self.first) })
    }
}

impl Oddities {
    pub(super) fn findings(&self) -> Vec<Finding> {
        let all = [
            self.not_held.finding("unlock_not_held"),
            self.created_twice.finding("created_twice"),
            self.released_twice.finding("released_twice"),
        ];
        all.into_iter().flatten().collect()
    }
}

impl<M: Machine, O: Operations> Simulation<'_, M, O> {
    pub(super) fn note_not_held(&mut self, thread: u32, object: ObjectId) {
        let (program, operation) = (self.program, self.actors[thread as usize].next);
        self.oddities.not_held.note(|| {
            let (thread, object) =
                (&program.threads[thread as usize].name, &program.objects[object.0 as usize]);
            format!("operation {operation} of {thread} unlocks {}, which it does not hold", quoted(object))
        });
    }

    pub(super) fn note_created_twice(&mut self, thread: u32, other: ThreadId) {
        let (program, operation) = (self.program, self.actors[thread as usize].next);
        self.oddities.created_twice.note(|| {
            let (thread, other) =
                (&program.threads[thread as usize].name, &program.threads[other.0 as usize].name);
            format!("operation {operation} of {thread} creates {other}, which has been created before")
        });
    }

    pub(super) fn note_released_twice(&mut self, thread: u32, edge: EdgeId) {
        let (program, operation) = (self.program, self.actors[thread as usize].next);
        self.oddities.released_twice.note(|| {
            let (thread, edge) = (&program.threads[thread as usize].name, program.edge_name(edge));
            format!(
                "operation {operation} of {thread} releases {}, which has been released before",
                quoted(&edge)
            )
        });
    }
}
