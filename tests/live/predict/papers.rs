//! The programs of the papers, recorded on one CPU, with results for other numbers of CPUs.

use longpole_tests::{Answer, Longpole, Recorded, Report, skip_unless_live};

fn own(answer: &Answer<'_>, function: &str) -> f64 {
    answer.function(function, "tet_ns").unwrap_or(0.0)
}

fn within(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what} is {value}, not between {low} and {high}");
}

/// A report of a recording made on one CPU. If the recording contradicts itself, as on a busy machine, it is made
/// again: results are exact only if no switch is missing.
fn recorded(program: &std::path::Path, arguments: &[&str], cpus: &str) -> Report {
    // There are no samples, because they would separate calls without probes from their callers.
    let options = ["--exact", "--cpu-list", "0", "--overhead", "none", "-F", "0"];
    // The papers' weights assume ideally shared CPUs.
    let record = || {
        let recorded = Recorded::good(&options, program, arguments);
        let report =
            Longpole::with(["report", "--json", "--model", "ideal", "--cpus", cpus]).and(&recorded.file);
        Report::parse(&report.ok().stdout)
    };
    let first = record();
    if first.findings("contradiction").is_empty() { first } else { record() }
}

/// Checks up to three recordings, because a busy machine may make one thread's work longer and not another's.
fn crossings(program: &std::path::Path, check: impl Fn(&Answer<'_>, u32) -> Result<(), String>) {
    let mut wrong = String::new();
    for _ in 0..3 {
        let report = recorded(program, &[], "1-8");
        match (1..=8).try_for_each(|cpus| check(&report.at(cpus), cpus)) {
            Ok(()) => return,
            Err(what) => wrong = what,
        }
    }
    panic!("three times: {wrong}");
}

/// 2001, section 4.2, Fig. 15: f has more weight on up to four CPUs, g on five and more.
#[test]
fn in_n_largest_f_dominates_up_to_four_cpus_and_g_from_five_on() {
    let program = skip_unless_live!("nlargest.c");
    crossings(&program, |answer, cpus| {
        let (f, g) = (own(answer, "f"), own(answer, "g"));
        if (f > g) == (cpus <= 4) { Ok(()) } else { Err(format!("on {cpus} CPUs f has {f} and g {g}")) }
    });
}

/// 2001, Fig. 7: the weight is 4/3 on three CPUs, and 1 on two.
#[test]
fn a_segment_of_figure_7_weighs_four_thirds_on_three_cpus() {
    let program = skip_unless_live!("weights.c");
    let report = recorded(&program, &["7"], "1,2,3,inf");
    let length = own(&report.at(1), "Thick");
    let weight = |cpus: u32| own(&report.at(cpus), "Thick") / length;
    within(weight(2), 0.99, 1.01, "Thick's weight on two CPUs");
    within(weight(3), 1.32, 1.35, "Thick's weight on three CPUs");
    within(own(&report.at("inf"), "Thick") / length, 0.99, 1.01, "its weight with a CPU for each thread");
}

/// 2001, Fig. 8: faster code makes the run longer.
#[test]
fn a_segment_of_figure_8_has_a_negative_weight_on_three_cpus() {
    let program = skip_unless_live!("weights.c");
    let report = recorded(&program, &["8"], "1,3,inf");
    let length = own(&report.at(1), "Thick");
    within(own(&report.at(3), "Thick") / length, -0.35, -0.32, "Thick's weight on three CPUs");
    within(own(&report.at("inf"), "Thick") / length, -0.01, 0.01, "its weight with a CPU for each thread");
}

/// 2001, section 6, Fig. 20: on one CPU the watchdog is a part of the time, on two CPUs it is not.
#[test]
fn a_watchdog_has_a_share_on_one_cpu_only() {
    let program = skip_unless_live!("watchdog.c");
    let report = recorded(&program, &[], "1,2");
    let (one, two) = (report.at(1), report.at(2));
    within(
        own(&one, "Watch") / own(&one, "Work"),
        4.0 / 12.0,
        6.0 / 12.0,
        "the watchdog's share of the work",
    );
    assert_eq!(own(&two, "Watch"), 0.0);
    within(own(&two, "Work") / own(&one, "Work"), 0.99, 1.01, "the work's weight");
}

/// 2001, section 4.3, Fig. 18: Writer has the most weight on one and two CPUs, and Sorter on three and more. Reader has
/// more than Writer from four CPUs on. On one CPU hardly any semaphore makes a thread wait, so these results are right
/// only if waits are simulated for each number of CPUs.
#[test]
fn in_the_billing_gateway_the_sorter_dominates_from_three_cpus_on() {
    let program = skip_unless_live!("billing.c");
    crossings(&program, |answer, cpus| {
        let [reader, sorter, writer] = ["Reader", "Sorter", "Writer"].map(|name| own(answer, name));
        let right = (writer > sorter) == (cpus <= 2) && (writer > reader) == (cpus <= 3);
        let what = format!("on {cpus} CPUs Writer has {writer}, Sorter {sorter} and Reader {reader}");
        if right { Ok(()) } else { Err(what) }
    });
}
