//! Read-write locks whose readers come again and again, so that a writer finds the lock free only by chance. (This method is
//! longpole's own.)
//!
//! The readers' work stays as recorded, so without the lock the run takes as long. But readers may read on only until the writer
//! is done. What shows them is the writer's wait, and how much shorter it is in a run in which writers go first.

use crate::experiment::Edit;
use crate::limit::LimitKind;
use crate::limit::search::Search;
use crate::limit::threads::holders;
use crate::limit::watched_run::WatchedRun;
use crate::predict::Timing;
use crate::program::{ObjectId, Operation};
use rustc_hash::FxHashSet;

/// A writer that waits for this share of the run does little else.
const MOST: f64 = 0.5;
/// The wait is the readers' doing if it is shorter by at least this part where writers go first.
const SHORTER: f64 = 0.25;

impl Search {
    /// The least time, nanoseconds, if readers do not keep the writer that waits longest for its lock.
    pub(in crate::limit) fn without_starved_writer(&self, run: &WatchedRun) -> Option<(Edit, f64)> {
        let (thread, lock, waited) = self.writer_that_waits(run)?;
        if run.share(waited) < MOST {
            return None;
        }
        let mut first = self.program().clone();
        let place = first.writers_first.binary_search(&lock).err()?;
        first.writers_first.insert(place, lock);
        let timing = Timing::new(&first, self.trials.model()).ok()?;
        let then = self.watched(&timing, run.cpus);
        let saved = waited.saturating_sub(then.states.waited(thread, lock));
        let is_readers = then.is_complete && saved as f64 >= SHORTER * waited as f64;
        let edit = Edit::WritersFirst { lock, thread };
        is_readers.then(|| (edit, run.time_ns() * (1.0 - run.share(waited))))
    }

    /// The thread that waits longest for a lock that it takes to write and others to read, with that wait in ticks.
    fn writer_that_waits(&self, run: &WatchedRun) -> Option<(usize, ObjectId, u64)> {
        let threads = || self.program().threads.iter().enumerate();
        let taken = |is_of: fn(&Operation) -> Option<ObjectId>| {
            threads().flat_map(move |(number, thread)| {
                let locks: FxHashSet<ObjectId> = thread.operations.iter().filter_map(is_of).collect();
                locks.into_iter().map(move |lock| (number, lock))
            })
        };
        let read: FxHashSet<(usize, ObjectId)> = taken(|operation| match operation {
            Operation::ReadLock(lock) => Some(*lock),
            _ => None,
        })
        .collect();
        let is_read: FxHashSet<ObjectId> = read.iter().map(|(_, lock)| *lock).collect();
        let written = taken(|operation| match operation {
            Operation::WriteLock(lock) => Some(*lock),
            _ => None,
        });
        // A thread that reads, too, may wait for a writer.
        let writers = written.filter(|writer| !read.contains(writer) && is_read.contains(&writer.1));
        let waits = writers.map(|(thread, lock)| (thread, lock, run.states.waited(thread, lock)));
        waits.max_by_key(|(thread, lock, waited)| (*waited, *lock, *thread))
    }

    /// The kind of limit, in the program's words.
    pub(in crate::limit) fn of_starved_writer(
        &self,
        lock: ObjectId,
        thread: usize,
        run: &WatchedRun,
    ) -> LimitKind {
        let program = self.program();
        LimitKind::StarvedWriter {
            lock: self.object_name(lock).to_owned(),
            thread: program.threads.get(thread).map(|thread| thread.name.clone()).unwrap_or_default(),
            waiting: run.share(run.states.waited(thread, lock)),
            holder: holders::under(program, self.owners(), &[lock]).first(program),
        }
    }
}
