//! LIMIT and FIX: what limits, and the changes that gain most.

use super::constraint::{
    of_cache_line, of_cost, of_device, of_goroutines, of_goroutines_wait, of_hand_over, of_lock, of_permits,
    of_polling, of_requests, of_small_tasks, of_spun_waits, of_support_work, of_too_few_threads,
    of_too_many_threads, of_woken,
};
use super::fix::{at_largest, gain, last_part, minus, name_of, what};
use super::unrecorded::{how_to_record, of_unrecorded};
use crate::cell::{duration, file_name, grouped, whole_percent as percent, width};
use crate::cpu_words::cpus;
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::deadlock::waiting;
use crate::present::words::others;
use crate::present::words::short::short;
use crate::present::words::traffic;
use engine::experiment::Edit;
use engine::limit::{Evidence, Fix, Limit, LimitKind, Limits, ThreadUse};
use engine::program::bare_name;
use engine::report::{Cpus, Holder, Stuck, WaitsFor};
use serde::Serialize;
use std::io::{self, Write};

/// Indent of lines that continue a text after the word in the margin.
const MARGIN: &str = "       ";
/// Largest number of threads of a deadlock that are named; if there are more, they are counted.
const STUCK: usize = 3;
/// If computing is this share of the critical path, nothing else takes long.
const NEARLY_ALL: f64 = 0.95;
/// Largest number of causes that are named because they may gain more than the limit.
const MAY_BE_MORE: usize = 2;

/// Writes LIMIT and at most `fixes` changes. `machine`: the recorded machine, if a reader could take the result for
/// that machine's.
pub(crate) fn write(
    out: &mut impl Write,
    machine: Option<Cpus>,
    limits: &Limits,
    fixes: usize,
    style: &Style,
) -> io::Result<()> {
    let Some(first) = limits.at.first() else { return Ok(()) };
    let elsewhere = machine.is_some_and(|machine| machine != first.cpus);
    let on = if elsewhere { format!("on {}: ", cpus(first.cpus)) } else { String::new() };
    let limit = format!("{on}{}", first_sentence(first, limits));
    table::wrap(out, style, Paint::Bold, "LIMIT  ", &style.text(&limit), MARGIN)?;
    for line in more(first, limits) {
        table::wrap(out, style, Paint::Plain, MARGIN, &style.text(&line), MARGIN)?;
    }
    let gain = |fix: &Fix| style.text(&gain(fix));
    let gains = limits.fixes.iter().take(fixes).map(|fix| width(&gain(fix)));
    let room = style.width.saturating_sub(MARGIN.len() + 1 + gains.max().unwrap_or(0)).clamp(12, 38);
    for (number, fix) in limits.fixes.iter().take(fixes).enumerate() {
        let word = if number == 0 { "FIX    " } else { MARGIN };
        let name = name_of(fix);
        let long = what(fix, &name, first.cpus);
        let is_short = width(&long) <= room;
        let text = if is_short { long } else { what(fix, last_part(&name), first.cpus) };
        let what = style.fit(&text, room);
        let gain = gain(fix);
        let mut line = format!("{what}{} {gain}", " ".repeat(room.saturating_sub(width(&what))));
        if let Some(more) = at_largest(fix, limits.at.get(1).map(|limit| limit.cpus)) {
            let pad = " ".repeat(14usize.saturating_sub(width(&gain)));
            if MARGIN.len() + width(&line) + width(&pad) + width(&more) <= style.width {
                line.push_str(&format!("{pad}{more}"));
            }
        }
        writeln!(out, "{}{line}", style.paint(Paint::Bold, word))?;
    }
    Ok(())
}

/// LIMIT and FIX as texts.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Words {
    /// Labels and sentences about a server's requests.
    pub(crate) requests: Vec<(&'static str, String)>,
    /// What limits the program, in one sentence.
    pub(crate) limit: String,
    /// Further remarks on the limit.
    pub(crate) more: Vec<String>,
    /// The changes, the best first.
    pub(crate) fixes: Vec<FixWords>,
}

/// The words for one change.
#[derive(Debug, Serialize)]
pub(crate) struct FixWords {
    pub(crate) what: String,
    /// Share of the time, as on the screen.
    pub(crate) gain: String,
    pub(crate) at_largest: Option<String>,
}

/// LIMIT and FIX as texts, without layout.
pub(crate) fn words(limits: &Limits) -> Words {
    let requests = traffic::lines(&limits.traffic);
    let Some(first) = limits.at.first() else { return Words { requests, ..Words::default() } };
    let largest = limits.at.get(1).map(|limit| limit.cpus);
    let fixes = limits.fixes.iter().map(|fix| FixWords {
        what: what(fix, &name_of(fix), first.cpus),
        gain: gain(fix).trim().to_owned(),
        at_largest: at_largest(fix, largest),
    });
    Words {
        requests,
        limit: format!("on {}: {}", cpus(first.cpus), first_sentence(first, limits)),
        more: more(first, limits),
        fixes: fixes.collect(),
    }
}

/// The first sentence of LIMIT. If the program sleeps for most of its recording, that comes first.
pub(crate) fn first_sentence(first: &Limit, limits: &Limits) -> String {
    let asleep = limits.asleep.map_or(String::new(), |asleep| {
        let (awake, wall) = (duration(asleep.awake_ns), duration(asleep.wall_ns));
        format!("busy for {awake} of {wall}, asleep for the rest. When busy, ")
    });
    format!("{asleep}{}", sentence(first))
}

/// The sentence for a wait on the critical path that other waits would replace.
fn on_path(limit: &Limit) -> Option<String> {
    let what = match &limit.kind {
        _ if limit.evidence != Evidence::OnPath => return None,
        LimitKind::Device { device, of } => of_device(device, of.as_deref()),
        LimitKind::Timers { function } => sleeping(function.as_deref()),
        LimitKind::Spinning => "spinning".to_owned(),
        LimitKind::HandOver { .. } => "waking threads and putting them on CPUs".to_owned(),
        _ => return None,
    };
    Some(format!(
        "{what}: {} of the critical path; without it, other waits would take as long.",
        percent(limit.share)
    ))
}

/// The sentence for a limit.
pub(crate) fn sentence(limit: &Limit) -> String {
    on_path(limit).unwrap_or_else(|| constraint(limit))
}

fn constraint(limit: &Limit) -> String {
    let of = |function: &Option<String>| function.as_deref().map(short);
    match &limit.kind {
        LimitKind::Lock { lock, locks, waiting, threads, .. } => of_lock(lock, *locks, *waiting, *threads),
        LimitKind::StarvedWriter { lock, thread, waiting, .. } => format!(
            "lock {}: {thread} waits {} of the time to write, behind readers that keep coming.",
            bare_name(lock),
            percent(*waiting)
        ),
        LimitKind::HandOver { object } => of_hand_over(object.as_deref(), &percent(limit.gain())),
        LimitKind::Quota { hundredths } => format!(
            "a quota: control groups, as of a container, allow the program {hundredths} % of a CPU. Without: {}.",
            duration(limit.without_ns)
        ),
        LimitKind::Cpus { wanting, goroutines: true } => format!("CPUs: {wanting:.1} goroutines want one."),
        LimitKind::Cpus { wanting, .. } => {
            format!("CPUs: {wanting:.1} threads want one. Unlimited CPUs: {}.", duration(limit.without_ns))
        }
        LimitKind::Threads { threads, function, busy } => {
            of_too_few_threads(*threads, of(function), *busy, limit.gain())
        }
        LimitKind::Sleepers { threads, function, asleep, answers } => {
            let run = of(function).map_or(String::new(), |function| format!(" that run {function}"));
            let sleep = answers.as_ref().map_or("sleep in it".to_owned(), |of| format!("wait for {of}"));
            let asleep = percent(*asleep);
            format!(
                "too few threads: the {threads}{run} {sleep} {asleep} of the time, while there is more to do."
            )
        }
        LimitKind::TooManyThreads { threads, then, function } => {
            of_too_many_threads(limit, (*threads, *then), function.as_deref())
        }
        LimitKind::Serial { function, threads: 1, .. } => {
            let run = of(function).map_or(String::new(), |function| format!(", mostly in {function}"));
            format!("only one thread computes{run}: more CPUs would be idle.")
        }
        LimitKind::Serial { thread, function, length_ns, times, .. } => {
            let run = of(function).map_or(String::new(), |function| format!(" {function}"));
            let share = if limit.time_ns > 0.0 { length_ns / limit.time_ns } else { 0.0 };
            if *times > 1 {
                return format!(
                    "serial stretches: {thread} runs{run} alone {} times, {} of the time, while others wait.",
                    grouped(*times),
                    percent(share)
                );
            }
            format!(
                "one serial stretch: {thread} runs{run} alone for {}, {} of the time.",
                duration(*length_ns),
                percent(share)
            )
        }
        LimitKind::BusyThread { thread, function, busy } => {
            let run = of(function).map_or(String::new(), |function| format!(", mostly in {function}"));
            format!(
                "one thread: {thread} computes {} of the time{run}; the others compute little.",
                percent(*busy)
            )
        }
        LimitKind::Turns { threads, processes: true, .. } => {
            format!("{threads} processes run one after the other: only one computes at a time.")
        }
        LimitKind::Turns { threads, waits: Some(waits), .. } => {
            format!("{threads} threads that do the same wait for each other, mostly in {waits}.")
        }
        LimitKind::Turns { threads, changes, .. } => {
            let times = grouped(*changes);
            format!("{threads} threads take turns, {times} times: only one of them computes at a time.")
        }
        LimitKind::Imbalance { function, waits, rounds } => {
            imbalance(function.as_ref(), waits.as_deref(), *rounds)
        }
        LimitKind::Stage { thread, function } => {
            let run = of(function).map_or(String::new(), |function| format!("{function} "));
            format!("one stage of a pipeline: {run}on {thread} is busy most of the time, and others wait.")
        }
        _ => of_wait(limit),
    }
}

fn imbalance(function: Option<&String>, waits: Option<&str>, rounds: u64) -> String {
    let run = function.map_or(String::new(), |function| format!(" of {}", short(function)));
    if rounds > 0 {
        return format!(
            "imbalance: in {rounds} rounds, some threads have more{run} to do, and the others wait for the last one."
        );
    }
    let place = waits.map_or(String::new(), |waits| format!(", mostly in {waits}"));
    format!("imbalance: some threads have more{run} to do, and the others wait{place}.")
}

/// Sentences for waits, and for work done on threads' behalf.
fn of_wait(limit: &Limit) -> String {
    match &limit.kind {
        LimitKind::Device { device, of } => {
            format!("{}: {} of the time.", of_device(device, of.as_deref()), percent(limit.gain()))
        }
        LimitKind::CacheLine { line, function, threads, readers, is_false } => {
            let users = (*threads, *readers, *is_false);
            of_cache_line(line, function.as_deref(), users, &percent(limit.gain()))
        }
        LimitKind::CostsMore { few, many, growth, function, few_ns, many_ns } => {
            let function = function.as_deref().map(short);
            of_cost((*few, *many, *growth), function, (*few_ns, *many_ns), &percent(limit.share))
        }
        LimitKind::SupportWork { subject, calls, cpu_share, function, via, threads, lock_waits } => {
            let of = (function.as_deref(), via.as_deref());
            of_support_work(*subject, (calls, &percent(*cpu_share)), of, (*threads, *lock_waits))
        }
        LimitKind::Permits { semaphore, permits, threads, waiting } => {
            of_permits(semaphore, *permits, *threads, *waiting)
        }
        LimitKind::WokenForNothing { object, wakings, for_nothing } => {
            of_woken(object, (*wakings, *for_nothing), &percent(limit.share))
        }
        LimitKind::SmallTasks { threads, function, wakings, task_ns } => {
            of_small_tasks((*threads, *wakings, *task_ns), function.as_deref(), &percent(limit.share))
        }
        LimitKind::Polling { threads, every_ns, longest_ns, function } => {
            of_polling(*threads, (*every_ns, *longest_ns), function.as_deref(), &percent(limit.gain()))
        }
        LimitKind::Timers { function } => {
            format!("{}: {} of the time.", sleeping(function.as_deref()), percent(limit.gain()))
        }
        LimitKind::SpunWaits { waiting, functions } => {
            of_spun_waits(*waiting, functions, &duration(limit.without_ns))
        }
        LimitKind::Spinning => {
            format!(
                "spinning: threads that wait for spin locks keep CPUs busy, {} of the time.",
                percent(limit.gain())
            )
        }
        _ => no_constraint(&limit.kind, limit.share),
    }
}

fn sleeping(function: Option<&str>) -> String {
    format!("sleeping{}", function.map_or(String::new(), |function| format!(" in {}", short(function))))
}

/// Sentences where no constraint limits, or none is known.
fn no_constraint(kind: &LimitKind, share: f64) -> String {
    match kind {
        LimitKind::Idle { busy } if *busy >= 0.5 => format!(
            "at work and waiting for work in turns: {busy:.2} CPUs are busy. The program and the sender of its work set the pace."
        ),
        LimitKind::Idle { busy } => {
            format!("idle: the program waits for work or time, {busy:.2} CPUs are busy.")
        }
        LimitKind::OpenRequests { .. }
        | LimitKind::Connections { .. }
        | LimitKind::OtherRequests { .. }
        | LimitKind::AnsweringThreads { .. }
        | LimitKind::Backlog { .. } => of_requests(kind),
        LimitKind::GoroutinesWait(wait) => of_goroutines_wait(wait),
        LimitKind::Goroutines { lock, function, samples, busy } => {
            of_goroutines(lock, function.as_deref(), *samples, *busy)
        }
        LimitKind::Work { busy, hidden: true } => format!(
            "the work itself, as far as it is visible: {busy:.1} CPUs are busy. What goroutines wait for is not visible."
        ),
        LimitKind::Work { busy, .. } if share < NEARLY_ALL => format!(
            "the work itself: computing is {} of the critical path, and removing any one lock or wait gains less than 5 %; \
             {busy:.1} CPUs are busy.",
            percent(share)
        ),
        LimitKind::Work { busy, .. } => {
            format!("the work itself: no lock or wait takes 5 % of the time; {busy:.1} CPUs are busy.")
        }
        LimitKind::Deadlock { stuck } => {
            let more = stuck.more.saturating_add(stuck.threads.len().saturating_sub(STUCK));
            let threads = stuck.threads.iter().take(STUCK).cloned().collect();
            format!("a deadlock: {}.", waiting(&Stuck { threads, more, ..*stuck }))
        }
        LimitKind::NotKnown { missing } if *missing > 0.0 => {
            format!("not known: the recording lacks {} of the threads' time.", percent(*missing))
        }
        LimitKind::NotKnown { .. } => {
            "not known: the simulation ends in a deadlock that did not happen.".to_owned()
        }
        LimitKind::Unexplained { predicted_ns, measured_ns } => format!(
            "not known: the run took {}, and the recording explains {} of that.",
            duration(*measured_ns),
            duration(*predicted_ns)
        ),
        LimitKind::LocksNotRecorded { word, waiting, is_lock, why, .. } => {
            of_unrecorded(bare_name(word), *waiting, *is_lock, *why)
        }
        _ => "nothing to make faster: no thread computes anything.".to_owned(),
    }
}

/// Further lines: the function in which the lock is held, whether more CPUs help, what limits on a large machine.
fn more(first: &Limit, limits: &Limits) -> Vec<String> {
    let mut lines = Vec::new();
    if let LimitKind::Lock { holder: Some(holder), .. }
    | LimitKind::StarvedWriter { holder: Some(holder), .. } = &first.kind
    {
        let at = limits.fixes.iter().find(|fix| fix.function.as_ref() == Some(&holder.function));
        let at = at.and_then(|fix| fix.location.as_deref());
        let at = at.map_or(String::new(), |at| format!(" ({})", file_name(at)));
        lines.push(format!(
            "Its holder runs {}{at} {:.0} % of the time.",
            short(&holder.function),
            holder.share * 100.0
        ));
    }
    lines.extend(always_busy(first, limits));
    // What the program waits for may be their work.
    lines.extend(others::of_children(limits.children.as_ref().filter(|_| first.kind.is_wait())));
    for row in first.may_be_more().take(MAY_BE_MORE) {
        lines.push(format!("Or, up to {}: {}", percent(row.most), sentence(&first.with(row))));
    }
    if let LimitKind::Deadlock { stuck } = &first.kind {
        return remedy(stuck).into_iter().map(str::to_owned).collect();
    }
    let Some(largest) = limits.at.get(1).filter(|largest| largest.time_ns > 0.0) else { return lines };
    if let LimitKind::LocksNotRecorded { word, is_lock, why, cost, .. } = &first.kind {
        lines.extend(how_to_record(word, *is_lock, *why, *cost));
        return lines;
    }
    let waits = matches!(first.kind, LimitKind::Idle { .. }) || first.kind.is_not_simulated();
    let helps = first.time_ns > largest.time_ns * (1.0 + engine::limit::WORTH);
    // The gain of one more computing thread says nothing about threads that sleep.
    let sleeps = matches!(first.kind, LimitKind::Sleepers { .. });
    let threads = limits.more_threads.filter(|_| !waits && !sleeps);
    let threads_help = threads.filter(|more| more.gain >= engine::limit::WORTH);
    let is_same = first.kind.name() == largest.kind.name() || waits;
    if matches!(first.kind, LimitKind::Work { hidden: true, .. }) {
        lines.push("Go runs more threads on more CPUs: only a recording there shows their gain.".to_owned());
        return lines;
    }
    let cpus_do_not =
        is_same && !helps && !waits && !matches!(first.kind, LimitKind::Serial { threads: 1, .. });
    match (cpus_do_not, threads.is_some() && threads_help.is_none()) {
        (true, true) => lines.push("More CPUs or threads will not help.".to_owned()),
        (true, false) => lines.push("More CPUs will not help.".to_owned()),
        // With more CPUs, more threads do help; the line about the larger machine says so.
        (false, true) if matches!(largest.kind, LimitKind::Threads { .. }) => {
            lines.push(format!("More threads will not help on {}.", cpus(first.cpus)));
        }
        (false, true) => lines.push("More threads will not help.".to_owned()),
        (false, false) => {}
    }
    let is_told = |fix: &Fix| matches!(fix.edit, Edit::MoreThreads { .. });
    if let Some(more) = threads_help.filter(|_| !limits.fixes.iter().any(is_told)) {
        lines.push(format!(
            "{} threads instead of {}: {} %.",
            more.threads + 1,
            more.threads,
            minus(more.gain)
        ));
    }
    if !is_same {
        lines.push(format!("On {}: {}", cpus(largest.cpus), sentence(largest)));
    }
    lines
}

/// Names the only thread whose work takes all the time, if CPUs are idle and nothing else limits.
fn always_busy(first: &Limit, limits: &Limits) -> Option<String> {
    let (LimitKind::Work { busy, .. }, Cpus::Count(all)) = (&first.kind, first.cpus) else { return None };
    let is_busy = |used: &&ThreadUse| used.names.len() == 1 && used.running >= 0.95;
    let mut threads = limits.threads.iter().filter(is_busy).filter_map(|used| used.names.first());
    let (Some(thread), None) = (threads.next(), threads.next()) else { return None };
    let is_idle = *busy < f64::from(all.get()) - 0.5;
    is_idle.then(|| format!("{thread} is always busy: what it computes takes the whole time."))
}

/// How the user can remove a deadlock, if it is a deadlock of locks.
fn remedy(stuck: &Stuck) -> Option<&'static str> {
    let holder = |waits_for: &WaitsFor| match waits_for {
        WaitsFor::Lock { holder, .. }
        | WaitsFor::Reading { holder, .. }
        | WaitsFor::Writing { holder, .. } => holder.clone(),
        _ => None,
    };
    let held: Vec<Holder> = stuck.threads.iter().filter_map(|thread| holder(&thread.waits_for)).collect();
    if held.iter().any(|holder| holder.itself) {
        Some("The thread holds that lock already: release the lock first, or make it recursive.")
    } else if held.iter().any(|holder| holder.ended) {
        Some("Release the lock before the thread ends.")
    } else if held.len() > 1 {
        Some("Take these locks in the same order everywhere.")
    } else if held.len() == 1 {
        Some("Release the lock before waiting for the other thread.")
    } else {
        None
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    /// The name of a condition should say whose it is, not "first used in os::PlatformParker::PlatformParker() #2".
    #[test]
    fn the_object_of_a_hand_over_has_its_programmer_s_name() {
        let of = |object: &str| {
            let kind = LimitKind::HandOver { object: Some(object.to_owned()) };
            sentence(&Limit { without_ns: 90.0, ..Limit::known(Cpus::ONE, 100.0, kind) })
        };
        let more = ": waking threads takes 10 % of the time.";
        assert_eq!(of("condition of a Java monitor #3"), format!("handing over of a Java monitor{more}"));
        assert_eq!(of("condition in LockSupport.park #2"), format!("handing over in LockSupport.park{more}"));
        assert_eq!(of("condition at a.c:3 #2"), format!("handing over of a condition at a.c:3 #2{more}"));
        assert_eq!(of("mutex door"), format!("handing over of door{more}"));
    }

    /// "lock seen by samples" would read as a verb.
    #[test]
    fn a_lock_seen_by_samples_only_is_called_a_spin_lock() {
        assert_eq!(
            of_lock("spin lock seen by samples", 1, 0.0, 2),
            "spin lock seen by samples: 2 threads take it."
        );
        assert_eq!(of_lock("mutex door", 1, 0.0, 2), "lock door: 2 threads take it.");
    }

    /// If the only consumer of a queue never waits, the text about "the work itself" must name that thread.
    #[test]
    fn the_limit_work_names_the_one_thread_that_is_always_busy() {
        let of = |running: f64, busy: f64| {
            let used =
                |name: &str, running| ThreadUse { names: vec![name.into()], running, ..ThreadUse::default() };
            let kind = LimitKind::Work { busy, hidden: false };
            let cpus = Cpus::count(2).expect("2");
            let limits = Limits {
                at: vec![Limit { share: 1.0, ..Limit::known(cpus, 100.0, kind) }],
                threads: vec![used("consumer", running), used("producer", 0.3)],
                ..Limits::default()
            };
            words(&limits).more
        };
        assert_eq!(of(1.0, 1.3), ["consumer is always busy: what it computes takes the whole time."]);
        assert!(of(0.9, 1.3).is_empty() && of(1.0, 1.9).is_empty());
    }
}
