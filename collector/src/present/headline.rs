//! The one sentence on top: what to do first and what it would bring.

use super::finding;
use engine::report::{CpuResult, Cpus, Finding, Report};
use rustc_hash::FxHashMap;

/// Below this share of the predicted time no function is worth starting with.
const WORTH_STARTING: f64 = 0.02;
/// Below this share of it no standard function is worth a word.
const WORTH_TELLING: f64 = 0.005;

/// One sentence for people, or `None` if there is no result to talk about. Names are as they are in the report: they
/// may hold anything.
///
/// It is about the CPU count of the machine that the recording was made on ([`Report::recorded_cpus`]), if that is among those of
/// the report: a promise that can be kept at once. Otherwise, as for a program written by hand, it is about the largest
/// finite count, where the limits show. The count is always named, and where another function leads on the largest or
/// the smallest count, that one, too.
///
/// It names the function with the largest TET, where that of standard functions (the language's and the C library's) counts
/// for the user's function nearest above them on the stack, and says by way of which ones. A weight is the slope of the predicted time (2001, section 2.3), so the
/// promise is given as a slope, too: how much the predicted time falls for every tenth taken off the function.
pub fn headline(report: &Report) -> Option<String> {
    let deadlock = report.findings.iter().find_map(Finding::deadlock);
    if let Some(deadlock) = deadlock {
        return Some(format!("Remove the deadlock first: {}", finding::deadlock(deadlock)));
    }
    let machine = report.recorded_cpus.and_then(Cpus::count);
    let recorded = report.results.iter().find(|result| Some(result.cpus) == machine);
    let result = recorded.or_else(|| largest(&report.results))?;
    if result.time_ns <= 0.0 {
        return Some("Nothing to make faster: no thread computed anything here.".to_owned());
    }
    let first = leader(report, result);
    let cpus = cpus_text(result.cpus);
    let cpus = if recorded.is_some() { format!("{cpus}, as recorded") } else { cpus };
    // Another answer for a larger or a smaller machine is worth a word.
    let smallest = report.results.iter().min_by_key(|result| result.cpus);
    let other = [largest(&report.results), smallest].into_iter().flatten().find_map(|other| {
        let other_first = leader(report, other)?;
        let differs = first.as_ref().is_none_or(|first| first.function != other_first.function);
        differs.then(|| (cpus_text(other.cpus), other_first.function))
    });
    let Some(first) = first else {
        let other = other.map(|(cpus, function)| format!(" (on {cpus} {function} does)"));
        return Some(format!(
            "No function stands out on {cpus}{}: nearly all of the predicted time is waiting, or compute outside of the \
             functions that were recorded.",
            other.unwrap_or_default()
        ));
    };
    let other = other.map(|(cpus, function)| format!(" (on {cpus} it is {function})"));
    Some(format!(
        "Make {} faster first: every 10 % off its {}takes about {} % off the predicted time on {cpus}{}.",
        first.function,
        by_way_of(&first),
        short(first.share * 10.0),
        other.unwrap_or_default()
    ))
}

/// The result of the largest finite CPU count, else of unlimited CPUs.
fn largest(results: &[CpuResult]) -> Option<&CpuResult> {
    let finite = results.iter().filter(|result| result.cpus != Cpus::Infinite);
    finite.max_by_key(|result| result.cpus).or_else(|| results.first())
}

/// A function that is worth starting with.
#[derive(Debug)]
struct Leader<'r> {
    function: &'r str,
    /// Of the predicted time, with what standard functions compute for it.
    share: f64,
    /// Those, the one with the largest share first.
    by: Vec<(&'r str, f64)>,
}

/// The function with the largest TET and what is computed for it in standard functions, if that is worth anything. The
/// first of equal ones.
fn leader<'r>(report: &'r Report, result: &'r CpuResult) -> Option<Leader<'r>> {
    let mut leaders: Vec<Leader<'r>> = Vec::with_capacity(result.functions.len());
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    let mut add = |function: &'r str, share: f64, by: Option<&'r str>| {
        let place = *places.entry(function).or_insert(leaders.len());
        if place == leaders.len() {
            leaders.push(Leader { function, share: 0.0, by: Vec::new() });
        }
        if let Some(leader) = leaders.get_mut(place) {
            leader.share += share;
            leader.by.extend(by.map(|by| (by, share)));
        }
    };
    for row in &result.functions {
        let share = if result.time_ns > 0.0 { row.tet_ns / result.time_ns } else { 0.0 };
        let found = report.used_by.binary_search_by(|used| used.function.as_str().cmp(&row.function));
        let by = found.ok().and_then(|at| report.used_by.get(at)).map_or(&[][..], |used| &used.by);
        let mut rest = share;
        for (own, part) in by {
            add(own, share * part, Some(&row.function));
            rest -= share * part;
        }
        // What rounding leaves of it is nobody's.
        add(&row.function, if rest.abs() < 1e-9 { 0.0 } else { rest }, None);
    }
    let mut best: Option<Leader<'_>> = None;
    for leader in leaders {
        if best.as_ref().is_none_or(|best| leader.share > best.share) {
            best = Some(leader);
        }
    }
    let mut best = best.filter(|best| best.share >= WORTH_STARTING)?;
    best.by.retain(|(_, share)| *share >= WORTH_TELLING);
    best.by.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    Some(best)
}

/// `own time `, or `time, by way of <u64>::lt and 2 more in it, `
fn by_way_of(leader: &Leader<'_>) -> String {
    let in_it = match leader.by[..] {
        [] => return "own time ".to_owned(),
        [(one, _)] => one.to_owned(),
        [(one, _), (two, _)] => format!("{one} and {two}"),
        [(one, _), ref more @ ..] => format!("{one} and {} more", more.len()),
    };
    format!("time, by way of {in_it} in it, ")
}

fn cpus_text(cpus: Cpus) -> String {
    match cpus {
        Cpus::Count(count) if count.get() == 1 => "1 CPU".to_owned(),
        Cpus::Count(count) => format!("{count} CPUs"),
        Cpus::Infinite => "unlimited CPUs".to_owned(),
    }
}

fn short(percent: f64) -> String {
    let text = format!("{percent:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::attribution::UsedBy;
    use engine::report::{Finding, FunctionRow, Stuck, StuckThread, WaitsFor};

    fn result(cpus: u32, time_ns: f64, functions: &[(&str, f64)]) -> CpuResult {
        let row = |&(function, tet_ns): &(&str, f64)| FunctionRow {
            function: function.to_owned(),
            calls: 1,
            tet_ns,
            tetid_ns: tet_ns,
            exact: true,
            ..FunctionRow::default()
        };
        CpuResult {
            cpus: Cpus::count(cpus).unwrap_or(Cpus::Infinite),
            time_ns,
            speedup: 1.0,
            locks_held_ns: Vec::new(),
            waits: Vec::new(),
            functions: functions.iter().map(row).collect(),
            segments: Vec::new(),
        }
    }

    fn of(results: Vec<CpuResult>) -> Option<String> {
        headline(&Report { results, ..Report::default() })
    }

    fn recorded_on(cpus: u32, results: Vec<CpuResult>) -> String {
        let report = Report { results, recorded_cpus: Some(cpus), ..Report::default() };
        headline(&report).expect("a sentence")
    }

    /// On a machine with two CPUs it spoke of sixteen.
    #[test]
    fn the_recorded_machine_decides_if_it_was_asked_about() {
        let results = || {
            vec![
                result(1, 200.0, &[("a", 190.0)]),
                result(2, 150.0, &[("a", 90.0), ("b", 61.0)]),
                result(16, 100.0, &[("b", 61.0)]),
            ]
        };
        assert_eq!(
            recorded_on(2, results()),
            "Make a faster first: every 10 % off its own time takes about 6 % off the predicted time on 2 CPUs, as \
             recorded (on 16 CPUs it is b)."
        );
        assert_eq!(
            recorded_on(16, results()),
            "Make b faster first: every 10 % off its own time takes about 6.1 % off the predicted time on 16 CPUs, as \
             recorded (on 1 CPU it is a)."
        );
        for not_asked_for in [0, 12] {
            assert_eq!(recorded_on(not_asked_for, results()), of(results()).expect("a sentence"));
        }
        let idle = vec![result(2, 150.0, &[("b", 1.0)]), result(16, 100.0, &[("b", 61.0)])];
        let sentence = recorded_on(2, idle);
        assert!(
            sentence.starts_with("No function stands out on 2 CPUs, as recorded (on 16 CPUs b does): "),
            "{sentence}"
        );
    }

    #[test]
    fn a_recording_in_which_nothing_ran_promises_nothing() {
        let sentence = of(vec![result(16, 0.0, &[])]).expect("a sentence");
        assert_eq!(sentence, "Nothing to make faster: no thread computed anything here.");
    }

    #[test]
    fn the_largest_finite_count_decides() {
        let results = vec![
            result(0, 50.0, &[("c", 50.0)]),
            result(4, 100.0, &[("a", 10.0), ("b", 61.0)]),
            result(2, 150.0, &[("b", 90.0)]),
        ];
        assert_eq!(
            of(results).expect("a sentence"),
            "Make b faster first: every 10 % off its own time takes about 6.1 % off the predicted time on 4 CPUs."
        );
        assert!(
            of(vec![result(0, 50.0, &[("c", 50.0)])]).expect("a sentence").ends_with("on unlimited CPUs.")
        );
    }

    #[test]
    fn another_answer_for_a_small_machine_is_mentioned() {
        let results = vec![result(1, 200.0, &[("a", 190.0)]), result(8, 100.0, &[("b", 100.0)])];
        assert_eq!(
            of(results).expect("a sentence"),
            "Make b faster first: every 10 % off its own time takes about 10 % off the predicted time on 8 CPUs (on \
             1 CPU it is a)."
        );
    }

    #[test]
    fn nothing_is_promised_where_nothing_is_to_be_gained() {
        let sentence = of(vec![result(8, 100.0, &[("a", 1.0), ("b", -5.0)])]).expect("a sentence");
        assert!(sentence.starts_with("No function stands out on 8 CPUs"), "{sentence}");
        assert!(of(vec![result(8, 0.0, &[])]).is_some());
        assert_eq!(of(Vec::new()), None);
    }

    /// It said "Make <u64 as PartialOrd>::lt faster first".
    #[test]
    fn what_the_language_brings_along_counts_for_who_uses_it() {
        let rows = [("<u64>::lt", 50.0), ("sort", 15.0), ("push", 20.0), ("find", 10.0), ("fmt", 5.0)];
        let used = |function: &str, by: &[(&str, f64)]| UsedBy {
            function: function.to_owned(),
            by: by.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect(),
        };
        let report = |used_by: Vec<UsedBy>| Report {
            results: vec![result(4, 100.0, &rows)],
            used_by,
            ..Report::default()
        };
        let sentence = |used_by| headline(&report(used_by)).expect("a sentence");
        assert_eq!(
            sentence(vec![
                used("<u64>::lt", &[("sort", 0.6), ("find", 0.4)]),
                used("push", &[("find", 1.0)])
            ]),
            "Make find faster first: every 10 % off its time, by way of <u64>::lt and push in it, takes about 5 % off the \
             predicted time on 4 CPUs."
        );
        assert_eq!(
            sentence(vec![used("<u64>::lt", &[("sort", 0.6)])]),
            "Make sort faster first: every 10 % off its time, by way of <u64>::lt in it, takes about 4.5 % off the \
             predicted time on 4 CPUs."
        );
        assert!(
            sentence(vec![used("<u64>::lt", &[])])
                .starts_with("Make <u64>::lt faster first: every 10 % off its own")
        );
    }

    #[test]
    fn a_deadlock_comes_first() {
        let report = Report {
            results: vec![result(8, 100.0, &[("a", 90.0)])],
            findings: vec![Finding::Deadlock {
                stuck: Stuck {
                    end_ns: 3.0,
                    threads: vec![StuckThread { thread: "T1".to_owned(), waits_for: WaitsFor::OwnEnd }],
                    more: 0,
                },
            }],
            ..Report::default()
        };
        let sentence = headline(&report).expect("a sentence");
        assert!(
            sentence.starts_with("Remove the deadlock first: nothing more happens after 3 ns"),
            "{sentence}"
        );
        assert!(sentence.ends_with("T1 waits for its own end"), "{sentence}");
    }
}
