//! Contradictions in a program that the simulation tolerates: one finding for each kind, with the first case.

use crate::finding::Finding;
use crate::program::{EdgeId, ObjectId, Program, ThreadId};

#[derive(Debug, Default)]
pub(in crate::schedule) struct ConsistencyWarnings {
    not_held: Warning,
    created_twice: Warning,
    released_twice: Warning,
}

/// The first case and the number of cases.
#[derive(Debug, Default)]
struct Warning {
    count: u64,
    first: Option<Finding>,
}

impl Warning {
    fn note(&mut self, first: impl FnOnce() -> Finding) {
        self.first.get_or_insert_with(first);
        self.count += 1;
    }

    fn finding(&self) -> Option<Finding> {
        let mut finding = self.first.clone()?;
        if let Finding::UnlockNotHeld { more, .. }
        | Finding::CreatedTwice { more, .. }
        | Finding::ReleasedTwice { more, .. } = &mut finding
        {
            *more = self.count.saturating_sub(1);
        }
        Some(finding)
    }
}

impl ConsistencyWarnings {
    pub(in crate::schedule) fn findings(&self) -> Vec<Finding> {
        [&self.not_held, &self.created_twice, &self.released_twice]
            .into_iter()
            .filter_map(Warning::finding)
            .collect()
    }

    pub(in crate::schedule) fn not_held(
        &mut self,
        program: &Program,
        thread: u32,
        operation: u32,
        object: ObjectId,
    ) {
        self.not_held.note(|| Finding::UnlockNotHeld {
            thread: program.threads[thread as usize].name.clone(),
            operation,
            object: program.objects[object.0 as usize].clone(),
            more: 0,
        });
    }

    pub(in crate::schedule) fn created_twice(
        &mut self,
        program: &Program,
        thread: u32,
        operation: u32,
        other: ThreadId,
    ) {
        self.created_twice.note(|| Finding::CreatedTwice {
            thread: program.threads[thread as usize].name.clone(),
            operation,
            created: program.threads[other.0 as usize].name.clone(),
            more: 0,
        });
    }

    pub(in crate::schedule) fn released_twice(
        &mut self,
        program: &Program,
        thread: u32,
        operation: u32,
        edge: EdgeId,
    ) {
        self.released_twice.note(|| Finding::ReleasedTwice {
            thread: program.threads[thread as usize].name.clone(),
            operation,
            edge: program.edge_name(edge).into_owned(),
            more: 0,
        });
    }
}
