//! What the screen shows, and how keys and news change it. Knows nothing of terminals.

use super::keys::{Action, Direction};
use super::prompt::Prompt;
use engine::event::{LossCounts, Overhead, SampleCounts};
use engine::report::{Cpus, Report};
use std::sync::Arc;
use std::time::Duration;

/// Everything the screen shows.
#[derive(Clone, Debug)]
pub struct State {
    /// Who is looked at, e.g. `quicksort (pid 1234)`; not cleaned.
    pub subject: String,
    /// The CPU counts asked for: columns before the first report.
    pub cpus: Vec<Cpus>,
    /// How far it is.
    pub phase: Phase,
    /// Counts that come more often than reports.
    pub counts: LiveCounts,
    /// Since the window was open for the first time.
    pub elapsed: Duration,
    /// The full window asked for.
    pub window: Duration,
    /// Index of the CPU count that the table is sorted by.
    pub sort: usize,
    /// Which time the table shows.
    pub measure: Measure,
    /// What the rows are.
    pub view: View,
    /// First row shown.
    pub scroll: usize,
    /// The help is open.
    pub help: bool,
    /// One line about something that the user should know, e.g. where the program's output goes; not cleaned.
    pub remark: Option<String>,
    /// What is being typed.
    pub prompt: Option<Prompt>,
    /// With when it came.
    shown: Option<(Arc<Snapshot>, Duration)>,
    waiting: Option<(Arc<Snapshot>, Duration)>,
    paused: bool,
    page_rows: usize,
}

/// How far the measurement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Events come.
    Running,
    /// The target has ended, with this explanation. The last report stays.
    Ended(String),
}

/// Counts that are up to date on every refresh, whatever the analysis takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Records read since the start.
    pub events: u64,
    /// What got lost since the start.
    pub loss: LossCounts,
    /// What recording cost since the start, if that is known.
    pub overhead: Option<Overhead>,
    /// The same in the last seconds.
    pub recent_overhead: Option<Overhead>,
    /// What became of samples since the start, if there are any.
    pub samples: Option<SampleCounts>,
}

/// A report and what it was made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The answer.
    pub report: Report,
    /// What to do first and what it would bring.
    pub headline: Option<String>,
    /// Threads in the window.
    pub threads: usize,
    /// How long they lived in the window, all together, nanoseconds.
    pub thread_ns: u64,
    /// Length of the window behind it, nanoseconds.
    pub window_ns: u64,
    /// How long making the report took, once it had its turn.
    pub took: Duration,
    /// The window is shorter than asked for: analysing more events would take too much.
    pub cut_by_events: bool,
}

/// Which time of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// TETID: the function is anywhere on the stack.
    #[default]
    Anywhere,
    /// TET: the function is on top of the stack.
    OnTop,
}

/// What a row of the table is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// A function.
    #[default]
    Functions,
    /// A lock.
    Locks,
}

impl State {
    /// A screen before the first event. Sorted by the largest CPU count asked for that is not infinite.
    pub fn new(subject: String, cpus: Vec<Cpus>, window: Duration) -> State {
        let sort =
            (0..cpus.len()).filter(|&i| cpus[i] != Cpus::Infinite).max_by_key(|&i| cpus[i]).unwrap_or(0);
        State {
            subject,
            cpus,
            phase: Phase::Running,
            counts: LiveCounts::default(),
            elapsed: Duration::ZERO,
            window,
            sort,
            measure: Measure::default(),
            view: View::default(),
            scroll: 0,
            help: false,
            remark: None,
            prompt: None,
            shown: None,
            waiting: None,
            paused: false,
            page_rows: 1,
        }
    }

    /// A new report has come. While paused it waits.
    pub fn show(&mut self, snapshot: Arc<Snapshot>) {
        let came = Some((snapshot, self.elapsed));
        if self.paused {
            self.waiting = came;
        } else {
            self.shown = came;
            self.keep_in_bounds();
        }
    }

    /// The report on the screen.
    pub fn shown(&self) -> Option<&Snapshot> {
        self.shown.as_ref().map(|(snapshot, _)| &**snapshot)
    }

    /// How long the window of the report on the screen has been over.
    pub fn age(&self) -> Duration {
        let age = |(snapshot, came): &(Arc<Snapshot>, Duration)| {
            self.elapsed.saturating_sub(*came).saturating_add(snapshot.took)
        };
        self.shown.as_ref().map(age).unwrap_or_default()
    }

    /// Whether the screen is frozen.
    pub fn paused(&self) -> bool {
        self.paused
    }

    /// Tells how many table rows the screen has room for.
    pub fn set_page_rows(&mut self, rows: usize) {
        self.page_rows = rows.max(1);
        self.keep_in_bounds();
    }

    /// Does what a key asks for. `false` means: leave.
    #[must_use]
    pub fn apply(&mut self, action: Action) -> bool {
        match action {
            Action::Quit => return false,
            Action::SortBy(direction) => {
                let last = self.columns().saturating_sub(1);
                self.sort = match direction {
                    Direction::Back => self.sort.saturating_sub(1),
                    Direction::Forward => (self.sort + 1).min(last),
                };
            }
            Action::Pause => {
                self.paused = !self.paused;
                if !self.paused
                    && let Some(newest) = self.waiting.take()
                {
                    self.shown = Some(newest);
                }
            }
            Action::Help => self.help = !self.help,
            Action::Back => self.help = false,
            // The loop asks: a pattern goes to the probes, not to the screen.
            Action::Ask(_) => {}
            Action::NextMeasure => {
                self.measure = match self.measure {
                    Measure::Anywhere => Measure::OnTop,
                    Measure::OnTop => Measure::Anywhere,
                };
            }
            Action::NextView => {
                self.view = match self.view {
                    View::Functions => View::Locks,
                    View::Locks => View::Functions,
                };
                self.scroll = 0;
            }
            Action::Scroll(rows) => self.scroll = self.scroll.saturating_add_signed(rows),
            Action::Page(Direction::Back) => self.scroll = self.scroll.saturating_sub(self.page_rows),
            Action::Page(Direction::Forward) => self.scroll = self.scroll.saturating_add(self.page_rows),
            Action::Top => self.scroll = 0,
            Action::Bottom => self.scroll = usize::MAX,
        }
        self.keep_in_bounds();
        true
    }

    fn columns(&self) -> usize {
        self.shown().map_or(self.cpus.len(), |snapshot| snapshot.report.results.len())
    }

    /// Rows of the table.
    pub fn row_count(&self) -> usize {
        self.shown().map_or(0, |snapshot| {
            if self.view == View::Locks {
                return snapshot.report.locks.len();
            }
            let names = snapshot.report.results.iter().flat_map(|result| &result.functions);
            names.map(|row| row.function.as_str()).collect::<std::collections::BTreeSet<_>>().len()
        })
    }

    /// Number of the last row on the screen, counted from 1.
    pub fn last_row_shown(&self) -> usize {
        self.scroll.saturating_add(self.page_rows).min(self.row_count())
    }

    fn keep_in_bounds(&mut self) {
        self.sort = self.sort.min(self.columns().saturating_sub(1));
        self.scroll = self.scroll.min(self.row_count().saturating_sub(self.page_rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::samples;

    fn with_report() -> State {
        let mut state = samples::state();
        state.show(Arc::new(samples::snapshot()));
        state
    }

    #[test]
    fn starts_sorted_by_the_largest_finite_cpu_count() {
        let state = samples::state();
        assert_eq!(state.cpus[state.sort], samples::cpus(16));
        let only_infinite = State::new(String::new(), vec![Cpus::Infinite], Duration::ZERO);
        assert_eq!(only_infinite.sort, 0);
    }

    #[test]
    fn arrows_stop_at_the_first_and_last_cpu_count() {
        let mut state = with_report();
        for _ in 0..20 {
            assert!(state.apply(Action::SortBy(Direction::Forward)));
        }
        assert_eq!(state.sort, 5);
        for _ in 0..20 {
            assert!(state.apply(Action::SortBy(Direction::Back)));
        }
        assert_eq!(state.sort, 0);
    }

    #[test]
    fn pause_freezes_the_screen_and_resume_shows_the_newest() {
        let mut state = with_report();
        assert!(state.apply(Action::Pause));
        for window_ns in [1, 2, 3] {
            state.show(Arc::new(Snapshot { window_ns, ..samples::snapshot() }));
        }
        assert_eq!(state.shown().expect("report").window_ns, samples::snapshot().window_ns);
        assert!(state.paused());
        assert!(state.apply(Action::Pause));
        assert_eq!(state.shown().expect("report").window_ns, 3);
    }

    #[test]
    fn scrolling_stays_inside_the_table() {
        let mut state = with_report();
        state.set_page_rows(4);
        let rows = state.row_count();
        assert!(rows > 8, "sample has {rows} rows");
        assert!(state.apply(Action::Scroll(-1)));
        assert_eq!(state.scroll, 0);
        assert!(state.apply(Action::Page(Direction::Forward)));
        assert_eq!(state.scroll, 4);
        assert!(state.apply(Action::Bottom));
        assert_eq!(state.scroll, rows - 4);
        assert!(state.apply(Action::Scroll(1)));
        assert_eq!(state.scroll, rows - 4);
        assert!(state.apply(Action::Top));
        assert_eq!(state.scroll, 0);
    }

    #[test]
    fn a_shorter_report_pulls_scroll_and_sort_back() {
        let mut state = with_report();
        state.set_page_rows(2);
        assert!(state.apply(Action::Bottom));
        let mut small = samples::snapshot();
        small.report.results.truncate(1);
        small.report.results[0].functions.truncate(1);
        state.show(Arc::new(small));
        assert_eq!((state.scroll, state.sort), (0, 0));
    }

    #[test]
    fn locks_take_the_place_of_functions_and_give_it_back() {
        let mut state = with_report();
        let functions = state.row_count();
        assert!(state.apply(Action::Bottom) && state.apply(Action::NextView));
        assert_eq!((state.row_count(), state.scroll), (samples::report().locks.len(), 0));
        assert!(state.apply(Action::NextView));
        assert_eq!(state.row_count(), functions);
    }

    #[test]
    fn quit_is_the_only_key_that_leaves() {
        let mut state = with_report();
        assert!(!state.apply(Action::Quit));
        for action in [Action::Pause, Action::Help, Action::Back, Action::NextMeasure, Action::Bottom] {
            assert!(state.apply(action), "{action:?}");
        }
    }
}
