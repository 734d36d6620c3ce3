//! Judges the figures of a program. Each check of longpole's answers gives one cell.

use std::collections::BTreeSet;
use std::fmt;

use super::answers::Answers;
use super::entry::Truth;
use super::runs::{Ending, Figures};

/// What a cell checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum What {
    /// Exit code and output are the same as those of the program alone.
    Unharmed,
    /// No byte of the program's code differs from its files while it is recorded.
    Untouched,
    /// The predicted time on the recorded machine equals the measured one.
    Time,
    /// The predicted speed-up from one CPU to two equals the measured one.
    Speedup,
    /// No row has an impossible share, on any number of CPUs.
    Shares,
    /// `report`, `predict`, `what-if`, `slack` and `diff` give the same time.
    Agree,
    /// `diff` of two recordings reports no change.
    NoChange,
    /// The same function or lock leads in all recordings.
    SameLeader,
    /// The leading function or lock is one of the true ones.
    TrueLeader,
    /// The limit is of a true kind, and not of a kind that the program only seems to have.
    TrueLimit,
    /// A program that has ended has no note about a deadlock.
    NoDeadlock,
    /// Advice names only things that a person can change.
    Advice,
    /// The cost that longpole reports is within its bound.
    ToldCost,
    /// The measured cost is within its bound.
    Cost,
}

impl What {
    /// All checks.
    pub const ALL: [What; 14] = [
        What::Unharmed,
        What::Untouched,
        What::Time,
        What::Speedup,
        What::Shares,
        What::Agree,
        What::NoChange,
        What::SameLeader,
        What::TrueLeader,
        What::TrueLimit,
        What::NoDeadlock,
        What::Advice,
        What::ToldCost,
        What::Cost,
    ];
}

/// The check in a word or two.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            What::Unharmed => "unharmed",
            What::Untouched => "untouched",
            What::Time => "time",
            What::Speedup => "speed-up",
            What::Shares => "shares",
            What::Agree => "agree",
            What::NoChange => "no change",
            What::SameLeader => "same leader",
            What::TrueLeader => "true leader",
            What::TrueLimit => "true limit",
            What::NoDeadlock => "no deadlock",
            What::Advice => "advice",
            What::ToldCost => "told cost",
            What::Cost => "cost",
        })
    }
}

/// A check of a program, and its result.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Cell {
    /// What the cell checks.
    pub what: What,
    /// Whether the answer is right.
    pub holds: bool,
    /// The figure that was checked.
    pub figure: String,
}

/// How much answers may be wrong. `None`: not judged.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Largest error of the predicted time, as a part of the measured time.
    pub time: Option<f64>,
    /// Largest error of the predicted speed-up, as a part of the measured speed-up.
    pub speedup: Option<f64>,
    /// The smallest and the largest share that a row may have of the predicted time.
    pub shares: (f64, f64),
    /// Largest relative difference between the commands' times.
    pub agree: f64,
    /// Whether `diff` compares two recordings with each other.
    pub change: bool,
    /// The largest cost that longpole may report, as a part of the target's CPU time or of one CPU.
    pub told_cost: Option<f64>,
    /// The largest measured cost, as a part of the target's CPU time or of one CPU.
    pub cost: Option<f64>,
}

impl Bounds {
    /// Bounds for a machine that is otherwise idle. The reported cost may be its goal of 2 %, rounded as printed. The
    /// measured cost may be 5 %, as with the worst of the benchmarks' programs.
    pub const QUIET: Bounds = Bounds {
        time: Some(0.1),
        speedup: Some(0.1),
        shares: (-0.05, 1.05),
        agree: 0.005,
        change: true,
        told_cost: Some(0.025),
        cost: Some(0.05),
    };
    /// Bounds for a machine that others use, too: nothing is judged that depends on how long something took. `slack`
    /// counts no CPU time for wake-ups. Where wake-ups take long, the length of a convoy differs by up to 0.9 % for
    /// that reason.
    pub const SHARED: Bounds = Bounds {
        time: None,
        speedup: None,
        change: false,
        told_cost: None,
        cost: None,
        agree: 0.015,
        ..Bounds::QUIET
    };
}

/// How many cells hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Number of cells that hold.
    pub hold: usize,
    /// Number of all cells.
    pub of: usize,
}

impl Score {
    /// Adds these cells.
    pub fn add(&mut self, cells: &[Cell]) {
        self.hold += cells.iter().filter(|cell| cell.holds).count();
        self.of += cells.len();
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} ({:.0} %)", self.hold, self.of, 100.0 * self.hold as f64 / self.of.max(1) as f64)
    }
}

/// Functions and objects that a person cannot change: system calls, thread starts, waiting runtimes, longpole's own
/// functions.
const NOT_OURS: [&str; 24] = [
    "epoll_wait",
    "epoll_pwait",
    "futex",
    "clone3",
    "start_thread",
    "sched_yield",
    "nanosleep",
    "pthread_cond_",
    "pthread_join",
    "libgomp",
    "libomp",
    "gomp_",
    "__kmp",
    "__libc_start",
    "runtime.findRunnable",
    "runtime.schedule",
    "runtime.mcall",
    "runtime.usleep",
    "runtime.osyield",
    "runtime.procyield",
    "[vdso]",
    "ld-linux",
    "longpole-preload",
    "[longpole",
];

/// Makes the cells of a program from its figures.
pub fn judge(truth: &Truth, figures: &Figures, bounds: &Bounds) -> Vec<Cell> {
    let seen = &figures.answers;
    let mut cells = Vec::new();
    let mut put = |what, holds, figure| cells.push(Cell { what, holds, figure });
    if let Some(other) = figures.recorded.iter().find(|ending| **ending != figures.alone) {
        put(What::Unharmed, false, format!("alone {}, recorded {other}", figures.alone));
    } else {
        put(What::Unharmed, true, figures.alone.to_string());
    }
    if let Some(changed) = figures.changed {
        put(What::Untouched, changed == 0, format!("{changed} bytes of code are others"));
    }
    if let Some(bound) = bounds.time {
        let (predicted, real) = (median(seen, |it| it.time_s), median(seen, |it| it.real_s));
        put(What::Time, is_near(predicted, real, bound), format!("{predicted:.2} s, measured {real:.2} s"));
    }
    if let (Some(bound), Some(real)) = (bounds.speedup, figures.speedup) {
        let predicted = median(seen, |it| it.speedup);
        put(What::Speedup, is_near(predicted, real, bound), format!("{predicted:.2}, measured {real:.2}"));
    }
    let odd = |share: f64| (share - 0.5).abs();
    let widest = seen.iter().filter_map(|it| it.widest.as_ref());
    if let Some((share, row)) = widest.max_by(|a, b| odd(a.0).total_cmp(&odd(b.0))) {
        let (low, high) = bounds.shares;
        put(What::Shares, (low..=high).contains(share), format!("{:.1} % {row}", share * 100.0));
    }
    let apart = seen.iter().flat_map(|it| &it.others);
    let apart = apart.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    if let Some((command, apart)) = apart {
        put(What::Agree, apart.abs() <= bounds.agree, format!("{command} {:+.1} %", apart * 100.0));
    }
    if let (true, Some((change, noise, clear))) = (bounds.change, figures.change) {
        put(What::NoChange, !clear, format!("{:+.1} % ± {:.1} %", change * 100.0, noise * 100.0));
    }
    let leaders: BTreeSet<&str> = seen.iter().map(|it| it.leader.as_str()).collect();
    let named = leaders.iter().copied().collect::<Vec<_>>().join(" | ");
    if seen.len() > 1 {
        put(What::SameLeader, leaders.len() == 1, named.clone());
    }
    if !truth.leads.is_empty() {
        let is_true = |leader: &&str| truth.leads.iter().any(|name| leader.contains(name));
        let holds = leaders.iter().all(is_true);
        put(What::TrueLeader, holds, format!("{named}, truly {}", truth.leads.join(" or ")));
    }
    if let Some((holds, figure)) = true_limit(truth, seen) {
        put(What::TrueLimit, holds, figure);
    }
    let deadlock = seen.iter().find_map(|it| it.deadlock.clone());
    put(What::NoDeadlock, deadlock.is_none(), deadlock.unwrap_or_default());
    let advice = seen.iter().find_map(|it| {
        let name = NOT_OURS.iter().find(|name| it.advice.contains(*name))?;
        Some(format!("{name} in: {}", it.advice))
    });
    put(What::Advice, advice.is_none(), advice.unwrap_or_default());
    for (what, bound, cost) in [
        (What::ToldCost, bounds.told_cost, Some(median(seen, |it| it.told_cost))),
        (What::Cost, bounds.cost, figures.cost),
    ] {
        if let (Some(bound), Some(cost)) = (bound, cost) {
            put(what, cost < bound, format!("{:.1} % of its CPU time or of one CPU", cost * 100.0));
        }
    }
    cells
}

/// From this part of the time on, a row of a kind in `never` is wrong.
const LARGE: f64 = 0.1;

/// Whether every recording has a limit of a true kind, and no large one of a kind in `never`. `None` if both lists are
/// empty.
fn true_limit(truth: &Truth, seen: &[Answers]) -> Option<(bool, String)> {
    if truth.limited_by.is_empty() && truth.never.is_empty() {
        return None;
    }
    // Compares whole words: `support_work` also accepts `support_work page faults`.
    let is_of = |told: &str, kind: &&str| {
        told.strip_prefix(*kind).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let is_limit = |it: &Answers| {
        let first = it.limits.first().map_or("nothing", |(kind, _)| kind);
        truth.limited_by.is_empty() || truth.limited_by.iter().any(|kind| is_of(first, kind))
    };
    let is_never = |it: &Answers| {
        let rows = it.limits.iter().enumerate();
        let mut told = rows.filter(|(at, (_, share))| *at == 0 || *share >= LARGE).map(|(_, (kind, _))| kind);
        told.any(|told| truth.never.iter().any(|kind| is_of(told, kind)))
    };
    let holds = seen.iter().all(|it| is_limit(it) && !is_never(it));
    let row = |(kind, share): &(String, f64)| format!("{kind} {:.0} %", share * 100.0);
    let rows = |it: &Answers| it.limits.iter().map(row).collect::<Vec<_>>().join(", ");
    let told: BTreeSet<String> = seen.iter().map(rows).collect();
    let mut figure = told.into_iter().collect::<Vec<_>>().join("; or ");
    for (word, kinds) in [("truly", truth.limited_by), ("not", truth.never)] {
        if !kinds.is_empty() {
            figure = format!("{word} {}; told {figure}", kinds.join(" or "));
        }
    }
    Some((holds, figure))
}

/// The cells of a program that gave no answers. None of them holds.
pub fn failed(why: &str) -> Vec<Cell> {
    What::ALL.map(|what| Cell { what, holds: false, figure: why.to_owned() }).to_vec()
}

fn is_near(predicted: f64, real: f64, bound: f64) -> bool {
    (predicted - real).abs() <= real * bound
}

/// The median; for an even number of values, the lower of the middle two. NaN if there are no values, which no bound
/// accepts.
fn median(answers: &[Answers], of: impl Fn(&Answers) -> f64) -> f64 {
    middle(answers.iter().map(of).collect())
}

/// The median of numbers.
pub(super) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "exit code {code}")?,
            None => write!(f, "ended by a signal")?,
        }
        self.output.map_or(Ok(()), |output| write!(f, ", output {output:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Answers {
        Answers {
            time_s: 1.0,
            real_s: 1.0,
            speedup: 1.5,
            widest: Some((1.0, "total of main on 1 CPU".to_owned())),
            others: vec![("predict", 0.0), ("slack", 0.001)],
            leader: "crunch".to_owned(),
            limits: vec![
                ("lock".to_owned(), 0.4),
                ("hand_over".to_owned(), 0.2),
                ("device".to_owned(), 0.06),
            ],
            deadlock: None,
            advice: "Make crunch faster first.".to_owned(),
            told_cost: 0.02,
        }
    }

    fn figures() -> Figures {
        let ending = Ending { code: Some(0), output: Some(7) };
        Figures {
            alone: ending,
            recorded: vec![ending; 3],
            changed: Some(0),
            speedup: Some(1.5),
            answers: vec![answers(); 3],
            change: Some((0.01, 0.02, false)),
            cost: Some(0.01),
        }
    }

    const LOCKED: Truth = Truth { leads: &["crunch", "lock"], limited_by: &["lock"], never: &["device"] };

    fn truth(leads: &'static [&'static str]) -> Truth {
        Truth { leads, ..Truth::default() }
    }

    fn fails(truth: &Truth, figures: &Figures) -> Vec<What> {
        let cells = judge(truth, figures, &Bounds::QUIET);
        cells.into_iter().filter(|cell| !cell.holds).map(|cell| cell.what).collect()
    }

    #[test]
    fn right_figures_hold_in_every_cell() {
        let cells = judge(&LOCKED, &figures(), &Bounds::QUIET);
        assert_eq!(cells.iter().map(|cell| cell.what).collect::<Vec<_>>(), What::ALL);
        assert!(cells.iter().all(|cell| cell.holds), "{cells:?}");
        let mut score = Score::default();
        score.add(&cells);
        score.add(&failed("no recording"));
        assert_eq!(score.to_string(), "14 of 28 (50 %)");
    }

    /// Each figure is made wrong once. Then its own cell must fail, and no other.
    #[test]
    fn a_wrong_figure_fails_its_cell_and_no_other() {
        type Change = fn(&mut Figures);
        let wrong: [(What, Change); 22] = [
            (What::Unharmed, |it| it.recorded[1].code = Some(1)),
            (What::Unharmed, |it| it.recorded[1].code = None),
            (What::Unharmed, |it| it.recorded[2].output = Some(8)),
            (What::Untouched, |it| it.changed = Some(1)),
            (What::Time, |it| it.answers.iter_mut().for_each(|it| it.time_s = 1.11)),
            (What::Time, |it| it.answers.iter_mut().for_each(|it| it.time_s = 0.89)),
            (What::Time, |it| it.answers.iter_mut().for_each(|it| it.real_s = f64::NAN)),
            (What::Speedup, |it| it.speedup = Some(1.3)),
            (What::Speedup, |it| it.answers.iter_mut().for_each(|it| it.speedup = f64::NAN)),
            (What::Shares, |it| it.answers[1].widest = Some((1.06, String::new()))),
            (What::Shares, |it| it.answers[1].widest = Some((-0.06, String::new()))),
            (What::Agree, |it| it.answers[0].others[0].1 = -0.006),
            (What::Agree, |it| it.answers[2].others[1].1 = 0.006),
            (What::NoChange, |it| it.change = Some((0.03, 0.02, true))),
            (What::NoDeadlock, |it| it.answers[2].deadlock = Some("a waits for b".to_owned())),
            (What::Advice, |it| it.answers[1].advice = "Make [libgomp.so.1] faster first.".to_owned()),
            (What::Advice, |it| it.answers[1].advice = "Make epoll_wait faster first.".to_owned()),
            (What::ToldCost, |it| it.answers.iter_mut().for_each(|it| it.told_cost = 0.03)),
            (What::ToldCost, |it| it.answers.iter_mut().for_each(|it| it.told_cost = f64::NAN)),
            (What::Cost, |it| it.cost = Some(0.06)),
            (What::Cost, |it| it.cost = Some(f64::NAN)),
            (What::TrueLeader, |it| it.answers.iter_mut().for_each(|it| it.leader = "main".to_owned())),
        ];
        for (at, (what, change)) in wrong.into_iter().enumerate() {
            let mut figures = figures();
            change(&mut figures);
            assert_eq!(fails(&truth(&["crunch"]), &figures), [what], "{at}");
        }
        let mut figures = figures();
        figures.answers[1].leader = "main".to_owned();
        assert_eq!(fails(&truth(&["crunch", "main"]), &figures), [What::SameLeader]);
        assert_eq!(fails(&truth(&[]), &figures), [What::SameLeader]);
    }

    /// All recordings count. A small row of a kind in `never` does no harm, and a program without known limits is not
    /// judged.
    #[test]
    fn the_kind_of_the_limit_is_judged_only_where_it_is_known() {
        let mut figures = figures();
        assert_eq!(true_limit(&truth(&["crunch"]), &figures.answers), None);
        let wrong = |limited_by, never, figures: &Figures| {
            fails(&Truth { limited_by, never, ..Truth::default() }, figures) == [What::TrueLimit]
        };
        assert!(wrong(&["cache_line"], &[], &figures) && !wrong(&["device", "lock"], &[], &figures));
        assert!(wrong(&[], &["lock"], &figures) && wrong(&[], &["hand_over"], &figures));
        assert!(!wrong(&[], &["device"], &figures));
        figures.answers[2].limits[0].0 = "device".to_owned();
        assert!(wrong(&["lock"], &[], &figures) && wrong(&[], &["device"], &figures));
        figures.answers[2].limits[0].0 = "lock of a page".to_owned();
        assert!(!wrong(&["lock"], &[], &figures) && !wrong(&["lock of a", "lock"], &[], &figures));
        assert!(wrong(&["lock of a p"], &[], &figures) && wrong(&[], &["lock of"], &figures));
        figures.answers[2].limits.clear();
        assert!(wrong(&["lock"], &[], &figures) && !wrong(&[], &["device"], &figures));
    }

    #[test]
    fn a_shared_machine_is_not_judged_by_times() {
        let cells = judge(&truth(&["crunch"]), &figures(), &Bounds::SHARED);
        let timed = [What::Time, What::Speedup, What::NoChange, What::ToldCost, What::Cost];
        assert!(cells.len() == 8 && cells.iter().all(|cell| !timed.contains(&cell.what)), "{cells:?}");
    }
}
