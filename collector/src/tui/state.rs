//! What the screen shows, and how keys and news change it. It is independent of terminals.

use super::history::{BusyCpus, History, Shown};
use super::keys::{Action, Direction, PromptKind};
use super::order::Order;
use super::pages::Page;
use super::prompt::Prompt;
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

/// Everything the screen shows.
#[derive(Clone, Debug)]
pub struct State {
    /// The subject, e.g. `quicksort (pid 1234)`; not cleaned.
    pub subject: String,
    /// How far it is.
    pub phase: Phase,
    /// How many CPUs the program kept busy.
    pub(super) busy: BusyCpus,
    /// Since the window was open for the first time.
    pub elapsed: Duration,
    /// The full window asked for.
    pub window: Duration,
    /// One line about something that the user should know, e.g. where the program's output goes; not cleaned.
    pub remark: Option<String>,
    /// What is being typed.
    pub prompt: Option<Prompt>,
    /// The table.
    pub(super) view: View,
    /// What replaces it.
    pub(super) page: Option<Page>,
    /// The CPU count that keys chose; `None`: the recorded machine's.
    pub(super) chosen: Option<Cpus>,
    /// Rows must have this in their names.
    pub(super) filter: String,
    /// First line shown of the table or page.
    pub(super) scroll: usize,
    /// Lines of it that the screen has room for.
    pub(super) page_rows: usize,
    tables: [Chosen; View::ALL.len()],
    /// With when it came.
    shown: Option<Shown>,
    waiting: Option<Shown>,
    history: History,
    paused: bool,
    wish: CpuWish,
}

/// A table's rows from one analysis to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub order: Order,
    /// What the chosen row is about; `None`: the first row, or the one to change first.
    pub row: Option<String>,
}

/// The CPU count that the next analysis begins with: the screen sets it, the analysis asks.
#[derive(Clone, Debug)]
pub struct CpuWish(Arc<AtomicU32>);

/// The recorded machine's.
const MACHINE: u32 = u32::MAX;

impl Default for CpuWish {
    fn default() -> CpuWish {
        CpuWish(Arc::new(AtomicU32::new(MACHINE)))
    }
}

impl CpuWish {
    /// `None`: the recorded machine's.
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

/// How far the measurement is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Events come.
    Running,
    /// The target has ended, with this explanation. The last report stays.
    Ended(String),
}

/// Counts that are up to date on every refresh, however long the analysis takes.
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
    /// What limits and what to change.
    pub limits: Limits,
    /// Callers and callees of the functions that are on most stacks.
    pub neighbours: Vec<Neighbours>,
    /// Where the parallelism goes: of the measured run, or of the one predicted for the CPU count that keys chose.
    pub parallelism: Parallelism,
    /// Threads in the window.
    pub threads: usize,
    /// Length of its window, nanoseconds.
    pub window_ns: u64,
    /// How long making the report took, once it had its turn.
    pub took: Duration,
    /// The window is shorter than asked for: analysing more events would take too much.
    pub cut_by_events: bool,
    /// What the report was made of, if that is kept.
    pub recording: Option<Arc<Recording>>,
}

impl State {
    /// A screen before the first event.
    pub fn new(subject: String, window: Duration) -> State {
        State {
            subject,
            phase: Phase::Running,
            busy: BusyCpus::default(),
            elapsed: Duration::ZERO,
            window,
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

    /// What the analysis asks for.
    pub fn wish(&self) -> CpuWish {
        self.wish.clone()
    }

    /// A new report has come. While paused it waits.
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

    /// New counts have come.
    pub fn count(&mut self, counts: &LiveCounts) {
        if let Some(overhead) = &counts.overhead {
            self.busy.count(overhead);
        }
    }

    /// What the report on the screen was made of, if that is kept.
    pub fn recording(&self) -> Option<Arc<Recording>> {
        self.shown.as_ref()?.0.recording.clone()
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

    /// The CPU count that tables are about: that chosen by keys, else the recorded machine's.
    pub fn cpus(&self) -> Option<Cpus> {
        let report = &self.shown()?.report;
        let has = |cpus: &Cpus| report.results.iter().any(|result| result.cpus == *cpus);
        let machine = report.recorded_cpus.and_then(Cpus::count);
        let largest = report.results.iter().map(|result| result.cpus).filter(|cpus| *cpus != Cpus::Infinite);
        let chosen = self.chosen.filter(has).or(machine.filter(has));
        chosen.or(largest.max()).or(report.results.first().map(|result| result.cpus))
    }

    /// What was predicted for it.
    pub(super) fn result(&self) -> Option<&CpuResult> {
        let cpus = self.cpus()?;
        self.shown()?.report.results.iter().find(|result| result.cpus == cpus)
    }

    /// The rows of a new analysis, or of another CPU count, get their places.
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

    /// Where the chosen row is.
    pub(super) fn selected(&self, table: &Table) -> usize {
        let chosen = self.table_state().and_then(|of| of.row.clone());
        let first = || match (self.view, self.shown()) {
            (View::Parallelism, Some(snapshot)) => parallelism::first(&snapshot.parallelism),
            _ => None,
        };
        let place = |row: String| table.rows.iter().position(|other| other.of == row);
        chosen.or_else(first).and_then(place).unwrap_or(0)
    }

    /// The function that the keys `f` and `u` are about if no other one is typed.
    pub fn chosen_function(&self) -> Option<String> {
        if let Some(Page::Row(View::Functions, of)) = &self.page {
            return Some(of.clone());
        }
        let table = (self.view == View::Functions).then(|| self.table(&super::lines::ANY))??;
        table.rows.get(self.selected(&table)).map(|row| row.of.clone())
    }

    /// The filter that rows have to pass: what is typed counts at once.
    pub(super) fn filter(&self) -> &str {
        match &self.prompt {
            Some(Prompt { what: PromptKind::Filter, text }) => text,
            _ => &self.filter,
        }
    }

    /// A filter was typed.
    pub fn set_filter(&mut self, text: String) {
        self.filter = text;
        self.page = None;
    }

    /// Does what a key asks for. `false` means: leave.
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
            // The loop does.
            Action::Ask(_) | Action::Write => {}
            Action::Scroll(rows) => self.go(rows),
            Action::Page(Direction::Back) => self.go(-self.a_page()),
            Action::Page(Direction::Forward) => self.go(self.a_page()),
            Action::Top => self.go(isize::MIN),
            Action::Bottom => self.go(isize::MAX),
        }
        true
    }

    /// The newest report is shown from now on.
    fn go_on(&mut self) {
        self.paused = false;
        if let Some(newest) = self.waiting.take() {
            self.shown = Some(newest);
            self.reorder();
        }
    }

    /// To a report before or after the one on the screen, which then stays; after the last one to the newest again.
    fn go_in_time(&mut self, direction: Direction) {
        let Some((_, came)) = self.shown else { return };
        let other = match direction {
            Direction::Back => self.history.before(came),
            Direction::Forward => self.history.after(came),
        };
        match (other, direction) {
            (Some(other), _) => {
                let left = self.shown.replace(other);
                // While paused a newer one waits, or the one that was left is the newest.
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

    /// The chosen row moves; a page moves as a whole.
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
