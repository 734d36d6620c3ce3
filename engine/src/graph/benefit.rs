//! The Maximum Benefit Metric (1994, near-critical paths, section VI): an upper bound on the gain from improving a part of
//! the program, by the k longest paths: `MBM_k(i) = min over j of ( d(i)_j + (d_cp − d_j) )`.
//!
//! Over *all* paths the minimum is the length of the critical path less that of the longest path without i: logical zeroing.
//! So as k grows, the metric falls from the critical path metric (k = 1) to logical zeroing. Once it gets there, no further
//! path can change it.

use super::activity::ActivityGraph;
use super::paths::NearPaths;
use super::subjects::{Marks, Subject, Subjects};
use super::timing::VertexTimes;
use super::zeroing::{Places, zeroing};
use crate::time::Ticks;

/// Number of subjects that are computed: those with most time on the critical path. Each other subject could gain a few
/// thousandths of it at most, and there may be as many as threads.
const MOST_SUBJECTS: usize = 512;
/// Largest number of values in memory at once.
const MOST_NUMBERS: usize = 1 << 23;

/// Upper bounds on the gain from improving a part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Benefit {
    /// The part.
    pub subject: Subject,
    /// Its time on the critical path: the Critical Path Metric.
    pub critical: Ticks,
    /// The Maximum Benefit Metric over the given paths.
    pub maximum: Ticks,
    /// The metric over all paths: logical zeroing.
    pub zeroing: Ticks,
    /// Number of given critical paths that contain the subject.
    pub critical_paths: usize,
    /// Number of given shorter paths that contain the subject.
    pub near_paths: usize,
}

impl Benefit {
    /// Whether no further path can change the metric.
    pub fn settled(&self) -> bool {
        self.maximum == self.zeroing
    }
}

/// Benefits of the [`MOST_SUBJECTS`] subjects with most time on the critical path, over the paths given so far, largest
/// first. O(edges + subjects · (paths + detours)).
pub fn benefits(
    graph: &ActivityGraph,
    timing: &VertexTimes,
    paths: &NearPaths<'_>,
    subjects: &Subjects,
) -> Vec<Benefit> {
    let places = Places::of(graph);
    let path = timing.critical_path(graph);
    let mut critical = vec![0_u64; subjects.all.len()];
    let marks = subjects.marks(graph, &subjects.all);
    for edge in &path {
        marks.each(edge.0 as usize, |subject, part| critical[subject] += part);
    }
    drop(marks);
    // Subjects without time on the critical path can gain nothing.
    let mut there: Vec<(Subject, u64)> =
        subjects.all.iter().copied().zip(critical).filter(|(_, critical)| *critical > 0).collect();
    there.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    there.truncate(MOST_SUBJECTS);
    let mut benefits = Vec::new();
    // In chunks, since each path and each detour needs a number in memory for each subject.
    let rows = paths.found().max(paths.detours.detours.len()).max(places.count).max(1);
    for some in there.chunks((MOST_NUMBERS / rows).max(1)) {
        let (which, critical): (Vec<Subject>, Vec<u64>) = some.iter().copied().unzip();
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

/// For each subject: by how much each detour changes the subject's time on a path.
struct Along {
    width: usize,
    /// `width` numbers for each detour.
    changes: Vec<i64>,
}

impl Along {
    fn of(
        graph: &ActivityGraph,
        timing: &VertexTimes,
        paths: &NearPaths<'_>,
        places: &Places,
        marks: &Marks<'_>,
        width: usize,
    ) -> Along {
        // Time of each subject on the longest way to each vertex.
        let mut known = vec![0_i64; places.count * width];
        let mut changes = vec![0_i64; paths.detours.detours.len() * width];
        let mut junctions = (1..paths.detours.junctions.len() as u32).peekable();
        let mut here = vec![0_i64; width];
        for vertex in 1..graph.vertices() {
            let place = |edge: usize| places.of[graph.tail(edge)] as usize;
            let way = |edge: usize, known: &[i64], here: &mut [i64]| {
                here.copy_from_slice(&known[place(edge) * width..][..width]);
                marks.each(edge, |subject, part| {
                    here[subject] = here[subject].saturating_add(i64::try_from(part).unwrap_or(i64::MAX));
                });
            };
            let at_vertex =
                |junction: &u32| paths.detours.junctions[*junction as usize].vertex as usize == vertex;
            let best = timing.best[vertex] as usize;
            if let Some(junction) = junctions.next_if(at_vertex) {
                way(best, &known, &mut here);
                for (number, detour) in (0..).map_while(|rank| paths.detours.at(junction, rank)) {
                    let change = &mut changes[number as usize * width..][..width];
                    way(detour.edge as usize, &known, change);
                    for (change, here) in change.iter_mut().zip(&here) {
                        *change -= *here;
                    }
                }
            }
            let (from, to) = (place(best), places.of[vertex] as usize);
            if from != to {
                known.copy_within(from * width..(from + 1) * width, to * width);
            }
            let here = &mut known[to * width..][..width];
            marks.each(best, |subject, part| {
                here[subject] = here[subject].saturating_add(i64::try_from(part).unwrap_or(i64::MAX));
            });
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
        // Time of each subject on each path.
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
