//! Wake-ups for nothing, as rows of the ledger: their number and their CPU time are recorded. A simulation lacks most of this
//! time, since it has no waits that find nothing.

use crate::experiment::Edit;
use crate::limit::WORTH;
use crate::limit::search::Search;
use crate::limit::watched_run::WatchedRun;
use crate::program::{ObjectMeaning, RecordedObject};

/// Fewer wake-ups that find nothing are by chance.
const FEWEST: u64 = 100;
/// If more than this share of an object's wake-ups find nothing to do, all waiting threads are woken for one of them.
/// With two waiting threads, half of the wake-ups find nothing.
const MUCH: f64 = 1.0 / 3.0;
/// Wake-ups explain the time that is missing in a prediction if their CPU time is at least this share of it; switches
/// take further time.
const EXPLAINS: f64 = 0.3;

impl Search {
    /// The least time without wake-ups that find nothing, nanoseconds, by the number of the recorded object.
    pub(in crate::limit) fn without_wakings_for_nothing(&self, run: &WatchedRun) -> Vec<(Edit, f64)> {
        let objects = self.recorded.objects.iter().enumerate();
        let often = objects.filter(|(_, object)| {
            // An interpreter wakes one thread, which may find that another one has taken its lock.
            !ObjectMeaning::of(&object.name).is_interpreter_lock()
                && object.for_nothing >= FEWEST
                && object.for_nothing as f64 > MUCH * object.waits as f64
        });
        let shares =
            often.filter_map(|(number, object)| Some((number, self.share_for_nothing(object, run)?)));
        let worth = shares.filter(|(_, share)| *share >= WORTH);
        worth.map(|(number, share)| (Edit::WakeOne(number), run.time_ns() * (1.0 - share))).collect()
    }

    /// The largest share of the recorded run that is saved without the wake-ups for nothing. `None`: the CPU count is
    /// not the recorded machine's.
    fn share_for_nothing(&self, object: &RecordedObject, run: &WatchedRun) -> Option<f64> {
        let measured_ns = self.measured_ns(run)?;
        let cpus = run.cpus.or(1).max(1) as f64;
        let share = object.for_nothing_ns as f64 / cpus / measured_ns;
        let missing = self.unexplained(run);
        let explains = missing > 0.0 && share >= EXPLAINS * missing;
        Some(if explains { share.max(missing) } else { share }.min(1.0))
    }
}
