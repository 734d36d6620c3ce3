//! Times of fast and slow requests by call stack, for flame graphs of the difference.

use super::calls::Calls;
use super::cause::Cause;
use super::groups::Group;
use super::model::CauseKind;
use super::names::Namer;
use super::summary::follow;
use super::sums::{Hits, Sums};
use crate::program::Program;
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;

/// A stack, or a cause without a stack, on which requests spent time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpentOn {
    /// The lock that the request waited for at that time, and the thread that held the lock.
    pub lock: Option<(String, String)>,
    /// The kind of the cause.
    pub kind: CauseKind,
    /// The name, as in [`super::CauseRow::name`]; empty for computing.
    pub name: String,
    /// Functions, the outermost first; only for computing.
    pub frames: Vec<String>,
}

/// Mean times of a request of the fast half and of a slow request, ns. Each column adds up to its mean latency.
pub type Means = [f64; 2];

/// All stacks and causes with their mean times, sorted. `program` must be made from `timeline`.
pub fn stacks(timeline: &Timeline, program: &Program, calls: &Calls) -> Vec<(SpentOn, Means)> {
    let (_, sums) = follow(timeline, program, calls);
    let namer = Namer::of(timeline, program, &sums);
    let mut all: FxHashMap<SpentOn, Means> = FxHashMap::default();
    for (number, key, ns) in sums.all() {
        let lock = key.lock.map(|lock| (namer.lock(lock), namer.thread(key.thread)));
        for (place, group) in [Group::Fast, Group::Slow].into_iter().enumerate() {
            let mean = match sums.counts[group as usize] {
                0 => continue,
                count => ns[group as usize] as f64 / count as f64,
            };
            let mut add = |spent: SpentOn, ns: f64| all.entry(spent).or_default()[place] += ns;
            if let Cause::Computing(top) = key.cause {
                let spent = |frames| SpentOn {
                    lock: lock.clone(),
                    kind: CauseKind::Computing,
                    frames,
                    ..SpentOn::default()
                };
                let found = hits(&sums, group, number);
                let count: u64 =
                    found.iter().flat_map(|hits| hits.stacks.values()).map(|count| u64::from(*count)).sum();
                if count == 0 {
                    add(spent(vec![namer.function(top)]), mean);
                }
                for (stack, own) in found.iter().flat_map(|hits| &hits.stacks) {
                    let places = program.samples.stack(*stack).rev();
                    let frames = places.map(|(_, place)| namer.function(Some(place.function))).collect();
                    add(spent(frames), mean * f64::from(*own) / count as f64);
                }
            } else {
                let (kind, name) = namer.cause(&key);
                add(SpentOn { lock: lock.clone(), kind, name, ..SpentOn::default() }, mean);
            }
        }
    }
    let mut all: Vec<(SpentOn, Means)> = all.into_iter().filter(|(_, means)| *means != [0.0; 2]).collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

/// The samples of a key in a group; without any, those of the other groups.
fn hits(sums: &Sums, group: Group, number: u32) -> Vec<&Hits> {
    let of = |group: usize| sums.hits.get(&(group, number)).filter(|hits| hits.samples() > 0);
    match of(group as usize) {
        Some(own) => vec![own],
        None => (0..sums.counts.len()).filter_map(of).collect(),
    }
}
