//! Reports of the last minutes, and the number of busy CPUs over time.

use super::state::Snapshot;
use engine::event::Overhead;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How long reports are kept.
const SPAN: Duration = Duration::from_secs(600);
/// Time between two kept reports, and between two levels of busy CPUs: memory is bounded.
const APART: Duration = Duration::from_secs(5);

/// A report, and the time at which it was made.
pub type Shown = (Arc<Snapshot>, Duration);

/// The reports of the last ten minutes.
#[derive(Clone, Debug, Default)]
pub struct History {
    kept: VecDeque<Shown>,
}

impl History {
    /// Adds a report. One in five seconds is kept, without its recording.
    pub fn add(&mut self, (snapshot, came): &Shown) {
        let is_soon = self.kept.back().is_some_and(|(_, last)| came.saturating_sub(*last) < APART);
        if is_soon {
            return;
        }
        self.kept.push_back((Arc::new(Snapshot { recording: None, ..(**snapshot).clone() }), *came));
        while self.kept.front().is_some_and(|(_, first)| came.saturating_sub(*first) > SPAN) {
            self.kept.pop_front();
        }
    }

    /// The last kept report before this time.
    pub fn before(&self, came: Duration) -> Option<Shown> {
        self.kept.iter().rfind(|(_, at)| *at < came).cloned()
    }

    /// How many requests a second the program answered at this endpoint, in each kept report, and the time from the first to
    /// the last.
    pub fn rates(&self, endpoint: &str) -> (VecDeque<f64>, Duration) {
        let rate = |snapshot: &Snapshot| {
            let mut ends = snapshot.limits.traffic.iter();
            ends.find(|end| end.served && end.name == endpoint).map_or(0.0, |end| end.per_second)
        };
        let came = |shown: Option<&Shown>| shown.map_or(Duration::ZERO, |(_, came)| *came);
        let long = came(self.kept.back()).saturating_sub(came(self.kept.front()));
        (self.kept.iter().map(|(snapshot, _)| rate(snapshot)).collect(), long)
    }

    /// The first kept report after this time.
    pub fn after(&self, came: Duration) -> Option<Shown> {
        self.kept.iter().find(|(_, at)| *at > came).cloned()
    }
}

/// Number of CPUs that the program kept busy, by the kernel's clocks, for all of the time, analysed or not.
#[derive(Clone, Debug, Default)]
pub struct BusyCpus {
    /// Means over [`APART`], the newest last.
    levels: VecDeque<f64>,
    since: Overhead,
    latest: Option<f64>,
}

impl BusyCpus {
    /// Adds the program's CPU time since the start of the recording.
    pub fn count(&mut self, now: &Overhead) {
        let part = now.since(&self.since);
        if part.wall_ns == 0 {
            return;
        }
        let level = part.target_ns as f64 / part.wall_ns as f64;
        self.latest.get_or_insert(level);
        if u128::from(part.wall_ns) < APART.as_nanos() {
            return;
        }
        self.latest = Some(level);
        self.since = *now;
        self.levels.push_back(level);
        let most = SPAN.as_secs() / APART.as_secs();
        if self.levels.len() as u64 > most {
            self.levels.pop_front();
        }
    }

    /// The mean of the last five seconds; `None`: not yet known.
    pub fn latest(&self) -> Option<f64> {
        self.latest
    }

    /// Their [`chart`], and the time that it covers.
    pub fn line(&self, columns: usize, most: f64, unicode: bool) -> (String, Duration) {
        let long = APART * u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        (chart(&self.levels, columns, most, unicode), long)
    }
}

/// A bar chart of at most `columns` characters, the newest last, with heights relative to `most`. With too few columns, each
/// character is the mean of several levels.
pub fn chart(levels: &VecDeque<f64>, columns: usize, most: f64, unicode: bool) -> String {
    let glyphs: &[char] = if unicode {
        &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    } else {
        &['_', '.', '-', '=', '+', '*', '#', '@']
    };
    let each = levels.len().div_ceil(columns.max(1)).max(1);
    let newest_first: Vec<f64> = levels.iter().rev().copied().collect();
    let means = newest_first.chunks(each).map(|of| of.iter().sum::<f64>() / of.len() as f64);
    let glyph = |level: f64| {
        let part = (level / most.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * (glyphs.len() - 1) as f64;
        glyphs.get(part.round() as usize).copied().unwrap_or(' ')
    };
    let mut line: Vec<char> = means.map(glyph).collect();
    line.reverse();
    line.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_history_has_ten_minutes_of_screens_one_in_five_seconds() {
        let mut history = History::default();
        for second in 0..1_000 {
            let snapshot = Snapshot { threads: second as usize, ..Snapshot::default() };
            history.add(&(Arc::new(snapshot), Duration::from_secs(second)));
        }
        let at =
            |shown: Option<Shown>| shown.map(|(snapshot, came)| (snapshot.threads as u64, came.as_secs()));
        assert_eq!(history.kept.len(), 121);
        assert_eq!(at(history.before(Duration::from_secs(999))), Some((995, 995)));
        assert_eq!(at(history.before(Duration::from_secs(995))), Some((990, 990)));
        assert_eq!(at(history.after(Duration::from_secs(990))), Some((995, 995)));
        assert_eq!(
            (at(history.before(Duration::from_secs(395))), at(history.after(Duration::from_secs(995)))),
            (None, None)
        );
    }

    #[test]
    fn busy_cpus_are_shown_as_levels_of_five_seconds_each() {
        let mut busy = BusyCpus::default();
        assert_eq!((busy.latest(), busy.line(10, 2.0, true)), (None, (String::new(), Duration::ZERO)));
        let (mut target_ns, mut wall_ns) = (0, 0);
        let mut run = |busy: &mut BusyCpus, tenths: u64, seconds: u64| {
            for _ in 0..seconds {
                (target_ns, wall_ns) = (target_ns + tenths * SECOND / 10, wall_ns + SECOND);
                busy.count(&Overhead { target_ns, wall_ns, ..Overhead::default() });
            }
        };
        run(&mut busy, 5, 1);
        assert_eq!(busy.latest(), Some(0.5), "known at once");
        run(&mut busy, 5, 4);
        run(&mut busy, 20, 10);
        run(&mut busy, 0, 5);
        assert_eq!(busy.latest(), Some(0.0));
        assert_eq!(busy.line(10, 2.0, true), ("▃██▁".to_owned(), Duration::from_secs(20)));
        assert_eq!(busy.line(2, 2.0, false).0, "++", "1.25 and 1.0 of 2");
        assert_eq!(busy.line(0, 0.0, true).0, "█", "a column is the least, and any level is all of nothing");
        run(&mut busy, 10, 5_000);
        assert_eq!(busy.line(1_000, 2.0, true).0.chars().count(), 120);
    }
}
