//! The Maximum Benefit Metric (1994, near-critical paths, section VI): how much can be gained at most from a part of the
//! program, seen from the k longest paths: `MBM_k(i) = min over j of ( d(i)_j + (d_cp − d_j) )`.
//!
//! Over *all* paths the minimum is the length of the critical path less that of the longest path without i: logical
//! zeroing. So the metric falls from the critical path metric (k = 1) to logical zeroing as k grows, and where it has got
//! there no further path can change it.

use super::activity::ActivityGraph;
use super::paths::NearPaths;
use super::subjects::{AT_ONCE, Subject, Subjects};
use super::timing::Timing;
use super::zeroing::{Places, zeroing};
use crate::time::Ticks;

/// Numbers kept at once.
const MOST_NUMBERS: usize = 1 << 23;

/// What a part of the program can gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benefit {
    /// The part.
    pub subject: Subject,
    /// Its time on the critical path: the Critical Path Metric.
    pub critical: Ticks,
    /// The Maximum Benefit Metric over the paths that were given.
    pub maximum: Ticks,
    /// The same over all paths: logical zeroing.
    pub zeroing: Ticks,
    /// How many of the critical paths given have any of it.
    pub critical_paths: usize,
    /// How many of the shorter ones.
    pub near_paths: usize,
}

impl Benefit {
    /// No further path can change the metric.
    pub fn settled(&self) -> bool {
        self.maximum == self.zeroing
    }
}

/// The benefit of all subjects with time on the critical path, over the paths given so far, largest first.
/// O(subjects · (edges + paths)).
pub fn benefits(
    graph: &ActivityGraph,
    timing: &Timing,
    paths: &NearPaths<'_>,
    subjects: &Subjects,
) -> Vec<Benefit> {
    let places = Places::of(graph);
    let path = timing.critical_path(graph);
    let mut benefits = Vec::new();
    // What each path has of each subject must be kept: not of too many at once.
    let at_once = (MOST_NUMBERS / paths.found().max(1)).clamp(1, AT_ONCE);
    for some in subjects.all.chunks(at_once) {
        let marks = subjects.marks(graph, some);
        let mut critical = vec![0_u64; some.len()];
        for edge in &path {
            for_each(marks[edge.0 as usize], |subject| critical[subject] += graph.length(edge.0 as usize));
        }
        // Others can gain nothing.
        let there: Vec<usize> = (0..some.len()).filter(|subject| critical[*subject] > 0).collect();
        let which: Vec<Subject> = there.iter().map(|subject| some[*subject]).collect();
        let critical: Vec<u64> = there.iter().map(|subject| critical[*subject]).collect();
        let marks = subjects.marks(graph, &which);
        let along = Along::of(graph, timing, paths, &places, &marks, which.len());
        benefits.extend(along.benefits(paths, &which, &critical));
    }
    let which: Vec<Subject> = benefits.iter().map(|benefit| benefit.subject).collect();
    for (benefit, zeroing) in benefits.iter_mut().zip(zeroing(graph, timing, subjects, &which)) {
        benefit.zeroing = zeroing;
    }
    benefits.sort_by(|a, b| {
        (b.maximum, b.critical).cmp(&(a.maximum, a.critical)).then(a.subject.cmp(&b.subject))
    });
    benefits
}

fn for_each(mut marks: u64, mut then: impl FnMut(usize)) {
    while marks != 0 {
        then(marks.trailing_zeros() as usize);
        marks &= marks - 1;
    }
}

/// By how much each detour changes what a path has of each subject.
struct Along {
    width: usize,
    /// For each detour, `width` numbers.
    changes: Vec<i64>,
}

impl Along {
    fn of(
        graph: &ActivityGraph,
        timing: &Timing,
        paths: &NearPaths<'_>,
        places: &Places,
        marks: &[u64],
        width: usize,
    ) -> Along {
        // What the longest way to each vertex has of each subject.
        let mut known = vec![0_i64; places.count * width];
        let mut changes = vec![0_i64; paths.detours.detours.len() * width];
        let mut junctions = (1..paths.detours.junctions.len() as u32).peekable();
        let mut here = vec![0_i64; width];
        for vertex in 1..graph.vertices() {
            let way = |edge: usize, known: &[i64], here: &mut [i64]| {
                let place = places.of[graph.tail(edge)] as usize * width;
                here.copy_from_slice(&known[place..place + width]);
                let length = i64::try_from(graph.length(edge)).unwrap_or(i64::MAX);
                for_each(marks[edge], |subject| here[subject] = here[subject].saturating_add(length));
            };
            let at_vertex =
                |junction: &u32| paths.detours.junctions[*junction as usize].vertex as usize == vertex;
            let best = timing.best[vertex] as usize;
            if let Some(junction) = junctions.next_if(at_vertex) {
                for (number, detour) in (0..).map_while(|rank| paths.detours.at(junction, rank)) {
                    let change = &mut changes[number as usize * width..][..width];
                    way(detour.edge as usize, &known, change);
                    way(best, &known, &mut here);
                    for (change, here) in change.iter_mut().zip(&here) {
                        *change -= *here;
                    }
                }
            }
            way(best, &known, &mut here);
            known[places.of[vertex] as usize * width..][..width].copy_from_slice(&here);
        }
        Along { width, changes }
    }

    fn benefits(&self, paths: &NearPaths<'_>, which: &[Subject], critical: &[u64]) -> Vec<Benefit> {
        let width = self.width;
        let of_critical: Vec<i64> =
            critical.iter().map(|time| i64::try_from(*time).unwrap_or(i64::MAX)).collect();
        let mut benefits: Vec<Benefit> = which
            .iter()
            .zip(critical)
            .map(|(subject, time)| Benefit {
                subject: *subject,
                critical: Ticks(*time),
                maximum: Ticks(*time),
                zeroing: Ticks(0),
                critical_paths: 0,
                near_paths: 0,
            })
            .collect();
        // What each path has of each subject.
        let mut times: Vec<i64> = Vec::with_capacity(paths.found.len() * width);
        for (number, path) in paths.found.iter().enumerate() {
            for subject in 0..width {
                let time = if number == 0 {
                    of_critical[subject]
                } else {
                    let change = self.changes[path.detour as usize * width + subject];
                    times[path.parent as usize * width + subject].saturating_add(change)
                };
                times.push(time);
                let benefit = &mut benefits[subject];
                let time = u64::try_from(time).unwrap_or(0);
                benefit.maximum = benefit.maximum.min(Ticks(time.saturating_add(path.cost)));
                if time > 0 {
                    let paths =
                        if path.cost == 0 { &mut benefit.critical_paths } else { &mut benefit.near_paths };
                    *paths += 1;
                }
            }
        }
        benefits
    }
}
