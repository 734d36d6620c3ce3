//! Pages that replace the table: a row's callers and callees, holders and waiters; all notes; the help.

use super::lines::written;
use super::state::{Snapshot, State};
use super::view::View;
use crate::cell::file_name;
use crate::cell::{duration, grouped, whole_percent};
use crate::present::screen::{clip, wait_name};
use crate::present::study::parallelism::table as parallelism;
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::text::{notes, waits};
use engine::program::{RecordedWait, Share};

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Help,
    Notes,
    /// The single requests.
    Requests,
    /// Facts about the function, lock, thread or wait of a row.
    Row(View, String),
}

const HELP: [&str; 23] = [
    "The same screen as longpole report, of the last seconds.",
    "",
    "LIMIT      what limits the program: the time is computed again without one",
    "           constraint, and removing this one gains most",
    "FIX        the changes that gain most, simulated",
    "predicted  how long the work of these seconds takes, by number of CPUs",
    "ago        when these seconds ended: high event rates make reports rarer",
    "busy, rate CPUs in use, measured all the time; requests/s; five seconds a column",
    "",
    "Tab, 1 to 5   functions, locks, threads, waits, parallelism: time divided by the",
    "              CPUs that are busy meanwhile, and what to do about the chosen row",
    "Up, Down      choose a row; it stays chosen wherever it goes",
    "Enter         callers and callees of a function, holders and waiters of a lock",
    "Esc           back; all rows",
    "Left, Right   another number of CPUs: functions at once, LIMIT and FIX with",
    "              the next analysis",
    "/, n, r       rows whose names contain a text; all notes; requests (--per)",
    "p, [, ]       freeze or go on; back (up to ten minutes), forward",
    "w             write these seconds as a recording for longpole report",
    "f, u          start or stop counting calls of the chosen or a named function",
    "q, F10, ^C    quit: the program runs on, the last screen stays",
    "",
    "A row passes another only if it weighs clearly more for some analyses.",
];

const NO_REQUESTS: &str = "\
Requests are not followed. Start `top` with --per socket: messages to the program;
or with --per NAME: calls of a function.
";

/// The lines of a page.
pub(super) fn lines(state: &State, page: &Page, style: &Style) -> Vec<String> {
    match (page, state.shown()) {
        (Page::Help, _) => written(|out| {
            HELP.iter().try_for_each(|line| {
                std::io::Write::write_fmt(out, format_args!("{}\n", clip(line, style.width, style)))
            })
        }),
        (_, None) => Vec::new(),
        (Page::Notes, Some(snapshot)) => written(|out| notes::write(&snapshot.report, style, out)),
        (Page::Requests, Some(snapshot)) => written(|out| match &snapshot.requests {
            Some(requests) => requests.write(style, out),
            None => std::io::Write::write_all(out, NO_REQUESTS.as_bytes()),
        }),
        (Page::Row(view, of), Some(snapshot)) => {
            let mut page = Lines { lines: Vec::new(), style };
            match view {
                View::Functions => page.function(snapshot, of),
                View::Locks => page.lock(snapshot, of),
                View::Threads => page.threads(snapshot, of),
                View::Waits => page.wait(snapshot, of),
                View::Parallelism => page.lines = parallelism::page(&snapshot.parallelism, of, style),
            }
            page.lines
        }
    }
}

/// A page to which lines are added.
struct Lines<'s> {
    lines: Vec<String>,
    style: &'s Style,
}

impl Lines<'_> {
    fn title(&mut self, name: &str, facts: &str) {
        let style = self.style;
        let name = style.text(name);
        self.lines.extend(written(|out| table::wrap(out, style, Paint::Bold, "", &name, "  ")));
        self.text(facts);
    }

    fn text(&mut self, text: &str) {
        let style = self.style;
        self.lines
            .extend(written(|out| table::wrap(out, style, Paint::Plain, "  ", &style.text(text), "  ")));
    }

    /// Adds a list of names, each with a number.
    fn list<'n>(&mut self, title: &str, rows: impl Iterator<Item = (String, &'n str)>) {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return;
        }
        self.lines.push(self.style.paint(Paint::Bold, &clip(title, self.style.width, self.style)));
        for (number, name) in rows {
            let room = self.style.width.saturating_sub(13);
            self.lines.push(format!("{number:>10}  {}", self.style.fit(name, room)));
        }
    }

    fn counts(&mut self, title: &str, shares: &[Share]) {
        self.list(title, shares.iter().map(|share| (grouped(share.count), share.name.as_str())));
    }

    fn stacks(&mut self, wait: &RecordedWait) {
        let stacks = waits::stacks(wait);
        if stacks.is_empty() {
            return;
        }
        self.lines.push(self.style.paint(Paint::Bold, &clip("stacks", self.style.width, self.style)));
        stacks.iter().for_each(|line| self.text(line));
    }

    fn function(&mut self, snapshot: &Snapshot, name: &str) {
        let rows = snapshot.report.results.iter().flat_map(|result| &result.functions);
        let location = rows.filter(|row| row.function == name).find_map(|row| row.location.as_deref());
        let Some(of) = snapshot.neighbours.iter().find(|of| of.function == name) else {
            self.title(name, location.map(file_name).unwrap_or_default());
            self.text("No stack sampled in this stretch has the function: its callers are not known.");
            return;
        };
        let percent = |count: u64| format!("{:.0} %", 100.0 * count as f64 / of.samples.max(1) as f64);
        let at = location.map_or(String::new(), |location| format!("{}, ", file_name(location)));
        let samples = grouped(of.samples);
        self.title(name, &format!("{at}{samples} samples, {} of them in itself", percent(of.on_top)));
        self.list("called by", of.callers.iter().map(|(name, count)| (percent(*count), name.as_str())));
        self.list("calls", of.callees.iter().map(|(name, count)| (percent(*count), name.as_str())));
    }

    fn lock(&mut self, snapshot: &Snapshot, name: &str) {
        let recorded = snapshot.report.recorded.objects.iter().find(|object| object.name == name);
        let at = recorded.and_then(|object| object.first_use.as_deref());
        self.title(name, &at.map_or(String::new(), |at| format!("first used at {at}")));
        if let Some(used) = snapshot.limits.locks.iter().find(|used| used.lock == name) {
            let held = used
                .under
                .iter()
                .filter(|part| part.share >= 0.005)
                .map(|part| (whole_percent(part.share), part.function.as_str()));
            self.list("its holders run", held);
        }
        if let Some(object) = recorded {
            self.counts("threads that waited were in", &object.waiters);
            self.counts("those that woke them were in", &object.wakers);
        }
    }

    fn threads(&mut self, snapshot: &Snapshot, name: &str) {
        let of =
            snapshot.limits.threads.iter().find(|of| of.names.first().is_some_and(|first| first == name));
        let Some(of) = of else { return };
        self.title(name, "");
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let states = [
            (of.running, "running"),
            (of.ready, "ready"),
            (of.spinning, "spinning"),
            (of.lock, "lock"),
            (of.other, "other"),
        ];
        self.list("does", states.iter().map(|(share, what)| (percent(*share), *what)));
        if of.names.len() > 1 {
            self.text(&format!(
                "{} threads do the same: {}",
                grouped(of.names.len() as u64),
                of.names.join(", ")
            ));
        }
    }

    fn wait(&mut self, snapshot: &Snapshot, name: &str) {
        let waits = snapshot.report.recorded.waits.iter();
        for wait in waits.filter(|wait| wait_name(wait) == name) {
            self.title(name, &format!("the longest {}", duration(wait.longest_ns as f64)));
            self.counts("ended by", &wait.ended_by);
            self.counts("asleep in", &wait.sleepers);
            self.counts("woken in", &wait.wakers);
            let share = |ns: u64| whole_percent(ns as f64 / wait.wait_ns.max(1) as f64);
            self.list("of", wait.of.iter().map(|part| (share(part.wait_ns), part.name.as_str())));
            self.stacks(wait);
        }
    }
}
