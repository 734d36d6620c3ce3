//! The state of the screen, and how keys and new reports change it. It does not depend on terminals.

use super::history::{BusyCpus, History, Shown};
use super::keys::{Action, Direction, PromptKind};
use super::order::Order;
use super::pages::Page;
use super::prompt::Prompt;
use super::requests::Requests;
use super::view::View;
use crate::present::screen::Table;
use crate::present::study::parallelism::table as parallelism;
use engine::attribution::Neighbours;
use engine::event::{LossCounts, Overhead, Recording, SampleCounts};
use engine::limit::Limits;
use engine::parallelism::Parallelism;
use engine::report::{CpuResult, Cpus, Report};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The state of the screen.
#[derive(Clone, Debug)]
pub struct State {
    /// The target's name, e.g. `quicksort (pid 1234)`; not yet safe for terminals.
    pub subject: String,
    /// Whether the target still runs.
    pub phase: Phase,
    /// Number of CPUs that the program kept busy.
    pub(super) busy: BusyCpus,
    /// Time since recording began.
    pub elapsed: Duration,
    /// A line for the user, e.g. where the program's output goes; not yet safe for terminals.
    pub remark: Option<String>,
    /// The prompt, while the user types.
    pub prompt: Option<Prompt>,
    /// The kind of table.
    pub(super) view: View,
    /// The page that is shown in place of the table.
    pub(super) page: Option<Page>,
    /// The CPU count that the user chose; `None`: the recorded machine's.
    pub(super) chosen: Option<Cpus>,
    /// Text that names of rows must contain.
    pub(super) filter: String,
    /// First visible line of the table or page.
    pub(super) scroll: usize,
    /// Number of lines of the page that fit on the screen.
    pub(super) page_rows: usize,
    tables: [Chosen; View::ALL.len()],
    /// The report on the screen, and the time at which it arrived.
    shown: Option<Shown>,
    waiting: Option<Shown>,
    /// The reports of the last minutes.
    pub(super) history: History,
    paused: bool,
    wish: CpuWish,
}

/// Order and selection of a table's rows, kept from one analysis to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub order: Order,
    /// Key of the selected row; `None`: the first row, or the row to change first.
    pub row: Option<String>,
}

/// The CPU count that the next analysis begins with: the screen sets it, the analysis reads it.
#[derive(Clone, Debug)]
pub struct CpuWish(Arc<AtomicU32>);

/// Stands for the recorded machine's CPU count.
const MACHINE: u32 = u32::MAX;

impl Default for CpuWish {
    fn default() -> CpuWish {
        CpuWish(Arc::new(AtomicU32::new(MACHINE)))
    }
}

impl CpuWish {
    /// The CPU count; `None`: the recorded machine's.
    pub fn get(&self) -> Option<Cpus> {
        match self.0.load(Ordering::Relaxed) {
            MACHINE => None,
            count => Some(Cpus::count(count).unwrap_or(Cpus::Infinite)),
        }
    }

    fn set(&self, cpus: Cpus) {
        let count = match cpus {
            Cpus::Count(count) => count.get(),
            Cpus::Infinite => 0,
        };
        self.0.store(count, Ordering::Relaxed);
    }
}

/// Whether the target still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The target runs.
    Running,
    /// Recording has ended, with this explanation. The last report stays on the screen.
    Ended(String),
}

/// Counts that are updated regularly, even during a long analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Records read since the start.
    pub events: u64,
    /// Records lost since the start.
    pub loss: LossCounts,
    /// Cost of recording since the start, if known.
    pub overhead: Option<Overhead>,
    /// Cost of recording in the last seconds.
    pub recent_overhead: Option<Overhead>,
    /// Counts of samples since the start, by result; `None`: nothing is sampled.
    pub samples: Option<SampleCounts>,
}

/// A report for the screen, with facts about its window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The report.
    pub report: Report,
    /// What limits the program, and the changes.
    pub limits: Limits,
    /// Callers and callees of the functions on most stacks.
    pub neighbours: Vec<Neighbours>,
    /// The parallelism of the measured run, or of the run predicted for the CPU count that the user chose.
    pub parallelism: Parallelism,
    /// The single requests, if `--per` says what they are.
    pub requests: Option<Requests>,
    /// Threads in the window.
    pub threads: usize,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// How long the analysis took, without the time for which it waited.
    pub took: Duration,
    /// The window is shorter than asked for: analysing more events would take too much.
    pub cut_by_events: bool,
    /// The recording from which the report was made, if it is kept.
    pub recording: Option<Arc<Recording>>,
}

impl State {
    /// A screen before the first event.
    pub fn new(subject: String) -> State {
        State {
            subject,
            phase: Phase::Running,
            busy: BusyCpus::default(),
            elapsed: Duration::ZERO,
            remark: None,
            prompt: None,
            view: View::default(),
            page: None,
            chosen: None,
            filter: String::new(),
            scroll: 0,
            page_rows: 1,
            tables: Default::default(),
            shown: None,
            waiting: None,
            history: History::default(),
            paused: false,
            wish: CpuWish::default(),
        }
    }

    /// The CPU count that analyses read.
    pub fn wish(&self) -> CpuWish {
        self.wish.clone()
    }

    /// Begins with the single requests in place of the table.
    pub fn show_requests(&mut self) {
        self.page = Some(Page::Requests);
    }

    /// Takes a new report. While the screen is paused, the report waits.
    pub fn show(&mut self, snapshot: Arc<Snapshot>) {
        let came = (snapshot, self.elapsed);
        self.history.add(&came);
        let came = Some(came);
        if self.paused {
            self.waiting = came;
        } else {
            self.shown = came;
            self.reorder();
        }
    }

    /// Takes new counts.
    pub fn count(&mut self, counts: &LiveCounts) {
        if let Some(overhead) = &counts.overhead {
            self.busy.count(overhead);
        }
    }

    /// The recording behind the report on the screen, if it is kept.
    pub fn recording(&self) -> Option<Arc<Recording>> {
        self.shown.as_ref()?.0.recording.clone()
    }

    /// The report on the screen.
    pub fn shown(&self) -> Option<&Snapshot> {
        self.shown.as_ref().map(|(snapshot, _)| &**snapshot)
    }

    /// Age of the report on the screen: time since the end of its window.
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

    /// The CPU count of the tables: the one that the user chose, else the recorded machine's.
    pub fn cpus(&self) -> Option<Cpus> {
        let report = &self.shown()?.report;
        let has = |cpus: &Cpus| report.results.iter().any(|result| result.cpus == *cpus);
        let machine = report.recorded_cpus.and_then(Cpus::count);
        let largest = report.results.iter().map(|result| result.cpus).filter(|cpus| *cpus != Cpus::Infinite);
        let chosen = self.chosen.filter(has).or(machine.filter(has));
        chosen.or(largest.max()).or(report.results.first().map(|result| result.cpus))
    }

    /// The prediction for that CPU count.
    pub(super) fn result(&self) -> Option<&CpuResult> {
        let cpus = self.cpus()?;
        self.shown()?.report.results.iter().find(|result| result.cpus == cpus)
    }

    /// Gives the rows of a new analysis, or of another CPU count, their places.
    fn reorder(&mut self) {
        for (number, view) in View::ALL.into_iter().enumerate() {
            let Some(table) = self.whole_table(view, &super::lines::ANY) else { continue };
            if let Some(of) = self.tables.get_mut(number) {
                of.order.update(table.rows.iter().map(|row| (row.of.as_str(), row.weight)));
            }
        }
    }

    pub(super) fn table_state(&self) -> Option<&Chosen> {
        self.tables.get(self.view as usize)
    }

    /// Index of the selected row.
    pub(super) fn selected(&self, table: &Table) -> usize {
        let chosen = self.table_state().and_then(|of| of.row.clone());
        let first = || match (self.view, self.shown()) {
            (View::Parallelism, Some(snapshot)) => parallelism::first(&snapshot.parallelism),
            _ => None,
        };
        let place = |row: String| table.rows.iter().position(|other| other.of == row);
        chosen.or_else(first).and_then(place).unwrap_or(0)
    }

    /// The function that the keys `f` and `u` act on, unless the user types another one.
    pub fn chosen_function(&self) -> Option<String> {
        if let Some(Page::Row(View::Functions, of)) = &self.page {
            return Some(of.clone());
        }
        let table = (self.view == View::Functions).then(|| self.table(&super::lines::ANY))??;
        table.rows.get(self.selected(&table)).map(|row| row.of.clone())
    }

    /// The filter for rows; while the user types, the text so far.
    pub(super) fn filter(&self) -> &str {
        match &self.prompt {
            Some(Prompt { what: PromptKind::Filter, text }) => text,
            _ => &self.filter,
        }
    }

    /// Sets the filter that the user has typed.
    pub fn set_filter(&mut self, text: String) {
        self.filter = text;
        self.page = None;
    }

    /// Carries out a key's action. `false` means: leave.
    #[must_use]
    pub fn apply(&mut self, action: Action) -> bool {
        match action {
            Action::Quit => return false,
            Action::Cpus(direction) => self.choose_cpus(direction),
            Action::Pause if self.paused => self.go_on(),
            Action::Pause => self.paused = true,
            Action::Time(direction) => self.go_in_time(direction),
            Action::Help => self.toggle(Page::Help),
            Action::Notes => self.toggle(Page::Notes),
            Action::Requests => self.toggle(Page::Requests),
            Action::Back if self.page.is_some() => self.turn_to(None),
            Action::Back => self.filter.clear(),
            Action::Open => {
                if self.page.is_none()
                    && let Some(table) = self.table(&super::lines::ANY)
                    && let Some(row) = table.rows.get(self.selected(&table))
                {
                    self.turn_to(Some(Page::Row(self.view, row.of.clone())));
                }
            }
            Action::Turn(direction) => {
                let step = match direction {
                    Direction::Back => View::ALL.len() - 1,
                    Direction::Forward => 1,
                };
                let next = (self.view as usize + step) % View::ALL.len();
                self.view = View::ALL.get(next).copied().unwrap_or_default();
                self.turn_to(None);
            }
            Action::Show(view) => {
                self.view = view;
                self.turn_to(None);
            }
            // The main loop carries out these actions.
            Action::Ask(_) | Action::Write => {}
            Action::Scroll(rows) => self.go(rows),
            Action::Page(Direction::Back) => self.go(-self.a_page()),
            Action::Page(Direction::Forward) => self.go(self.a_page()),
            Action::Top => self.go(isize::MIN),
            Action::Bottom => self.go(isize::MAX),
        }
        true
    }

    /// Shows the newest report from now on.
    fn go_on(&mut self) {
        self.paused = false;
        if let Some(newest) = self.waiting.take() {
            self.shown = Some(newest);
            self.reorder();
        }
    }

    /// Shows an earlier or a later report, which stays on the screen. After the last one it goes on with the newest.
    fn go_in_time(&mut self, direction: Direction) {
        let Some((_, came)) = self.shown else { return };
        let other = match direction {
            Direction::Back => self.history.before(came),
            Direction::Forward => self.history.after(came),
        };
        match (other, direction) {
            (Some(other), _) => {
                let left = self.shown.replace(other);
                // If no newer report waits, the report that leaves the screen is the newest one.
                if self.waiting.is_none() {
                    self.waiting = left;
                }
                self.paused = true;
                self.reorder();
            }
            (None, Direction::Forward) => self.go_on(),
            (None, Direction::Back) => {}
        }
    }

    fn a_page(&self) -> isize {
        isize::try_from(self.page_rows.max(1)).unwrap_or(1)
    }

    fn toggle(&mut self, page: Page) {
        let is_open = self.page.as_ref() == Some(&page);
        self.turn_to((!is_open).then_some(page));
    }

    fn turn_to(&mut self, page: Option<Page>) {
        self.page = page;
        self.scroll = 0;
    }

    /// Moves the selected row; a page is scrolled instead.
    fn go(&mut self, rows: isize) {
        if self.page.is_some() {
            self.scroll = self.scroll.saturating_add_signed(rows);
            return;
        }
        let Some(table) = self.table(&super::lines::ANY) else { return };
        let last = table.rows.len().saturating_sub(1);
        let to = self.selected(&table).saturating_add_signed(rows).min(last);
        let row = table.rows.get(to).map(|row| row.of.clone());
        if let Some(of) = self.tables.get_mut(self.view as usize) {
            of.row = row;
        }
    }

    fn choose_cpus(&mut self, direction: Direction) {
        let Some(now) = self.cpus() else { return };
        let results = self.shown().map(|snapshot| &snapshot.report.results[..]).unwrap_or_default();
        let Some(place) = results.iter().position(|result| result.cpus == now) else { return };
        let to = match direction {
            Direction::Back => place.saturating_sub(1),
            Direction::Forward => (place + 1).min(results.len().saturating_sub(1)),
        };
        if let Some(cpus) = results.get(to).map(|result| result.cpus).filter(|cpus| *cpus != now) {
            self.chosen = Some(cpus);
            self.wish.set(cpus);
            self.tables.iter_mut().for_each(|of| of.order = Order::default());
            self.reorder();
        }
    }
}
