//! Quartz's example (1989, section 4), recorded: a serial start, and 2 % of the CPU time for logging.

use longpole_tests::{Longpole, Recorded, skip_unless_live};
use serde_json::Value;

fn parallelism(recorded: &Recorded, more: &[&str]) -> Value {
    let call = Longpole::with(["parallelism", "--json"]).and(&recorded.file);
    let call = more.iter().fold(call, |call, more| call.and(more));
    serde_json::from_str(&call.ok().stdout).expect("JSON")
}

fn row<'v>(run: &'v Value, kind: &str, name: &str) -> &'v Value {
    let rows = run["rows"].as_array().expect("rows");
    let found =
        rows.iter().find(|row| row["kind"] == kind && row["name"].as_str().is_some_and(|own| own == name));
    found.unwrap_or_else(|| panic!("no {name} in {run}"))
}

fn ns(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Checks that functions, code outside of them and idle time add up to the run.
fn adds_up(run: &Value) {
    let rows = run["rows"].as_array().expect("rows").iter();
    let sum: u64 =
        rows.filter(|row| row["kind"] == "function").map(|row| ns(row, "normalized_self_ns")).sum();
    assert_eq!(sum + ns(run, "nobody_busy_ns"), ns(run, "elapsed_ns"));
}

#[test]
fn logging_of_two_percent_of_the_cpu_time_is_named_first_on_18_cpus() {
    let program = skip_unless_live!("startup.c");
    let recorded = Recorded::good(&["--exact"], &program, &[]);
    let measured = parallelism(&recorded, &[]);
    adds_up(&measured);
    assert_eq!(measured["run"], "measured");
    // In a plain profile, logging has 2 % of all computing.
    let rows = measured["rows"].as_array().expect("rows").iter();
    let busy: u64 = rows.filter(|row| row["kind"] == "thread").map(|row| ns(row, "busy_ns")).sum();
    let log = row(&measured, "function", "LogStructures");
    let plain = ns(&log["total"], "busy_ns") as f64 / busy as f64;
    assert!((0.01..0.035).contains(&plain), "{plain}");
    let run = parallelism(&recorded, &["--cpus", "18"]);
    adds_up(&run);
    let log = row(&run, "function", "LogStructures");
    let share = ns(log, "normalized_total_ns") as f64 / ns(&run, "elapsed_ns") as f64;
    assert!((0.17..0.32).contains(&share), "{share}: {log}");
    let text = Longpole::with(["parallelism", "--cpus", "18"]).and(&recorded.file).ok().stdout;
    assert!(text.starts_with("Parallelize LogStructures: "), "{text}");
    assert!(text.lines().count() <= 40 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // The workers' time must count for main, which created them.
    let main = row(&run, "thread", &first_thread(&run));
    assert_eq!(ns(main, "normalized_total_ns") + ns(&run, "nobody_busy_ns"), ns(&run, "elapsed_ns"));
}

/// The thread with the most normalized time.
fn first_thread(run: &Value) -> String {
    let rows = run["rows"].as_array().expect("rows").iter();
    let thread = rows.filter(|row| row["kind"] == "thread").max_by_key(|row| ns(row, "normalized_total_ns"));
    thread.and_then(|row| row["name"].as_str()).expect("a thread").to_owned()
}

/// Whether the function has this name, with any generic arguments.
fn is_it(own: &str, name: &str) -> bool {
    own.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::<"))
}

/// Checks that the work which two functions of the main thread pass to other threads counts for these functions, in the
/// proportion of three to one. Some work may count for no function: after wake-ups with neither a stack nor a probe, or
/// if a thread found it without waiting.
fn counts_for_who_ordered(what: &str, recorded: &Recorded, names: [&str; 3]) {
    counts_within(what, recorded, names, 5.0);
}

/// Like `counts_for_who_ordered`, with `most` as the largest allowed proportion.
fn counts_within(what: &str, recorded: &Recorded, [large, small, work]: [&str; 3], most: f64) {
    let run = parallelism(recorded, &[]);
    adds_up(&run);
    let busy = |name: &str| {
        let rows = run["rows"].as_array().expect("rows").iter().filter(|row| row["kind"] == "function");
        let named = rows.filter(|row| row["name"].as_str().is_some_and(|own| is_it(own, name)));
        named.map(|row| ns(&row["total"], "busy_ns")).max().unwrap_or_else(|| panic!("{what}: no {name}"))
    };
    let work = busy(work) as f64;
    let (large, small) = (busy(large) as f64 / work, busy(small) as f64 / work);
    let (sum, ratio) = (large + small, large / small);
    assert!((0.6..1.15).contains(&sum) && (1.7..most).contains(&ratio), "{what}: {large:.2} {small:.2}");
}

#[test]
fn jobs_passed_to_workers_count_for_the_function_that_ordered_them() {
    let program = skip_unless_live!("submit.c");
    for how in ["condition", "semaphore", "futex", "pipe", "socket", "io_uring"] {
        let recorded = Recorded::good(&["--exact"], &program, &[how]);
        counts_for_who_ordered(how, &recorded, ["OrderLarge", "OrderSmall", "Work"]);
        // `Prepare` computes one and a half times as much as all jobs, and passes no work on.
        let run = parallelism(&recorded, &[]);
        let busy = |name: &str| ns(&row(&run, "function", name)["total"], "busy_ns") as f64;
        let part = busy("Prepare") / busy("Work");
        assert!((1.25..1.75).contains(&part), "{how}: {part}");
    }
}

#[test]
fn jobs_sent_through_channels_count_for_the_function_that_sent_them() {
    let program = skip_unless_live!("zoo/rust_locks");
    for channel in ["mpsc_jobs", "crossbeam_jobs"] {
        let recorded = Recorded::good(&["--exact"], &program, &[channel, "201"]);
        let names = ["rust_locks::order_large", "rust_locks::order_small", "rust_locks::job"];
        // Workers often find small jobs without waiting, more often on a busy machine. Such work counts for no
        // function.
        counts_within(channel, &recorded, names, 30.0);
    }
}

/// The threads of the team spin between the regions instead of sleeping.
#[test]
fn openmp_regions_count_for_their_functions() {
    let program = skip_unless_live!("regions.c");
    for policy in ["passive", "active"] {
        let recorded = Recorded::good(
            &["--exact"],
            "env".as_ref(),
            &[&format!("OMP_WAIT_POLICY={policy}"), &program.display().to_string()],
        );
        counts_for_who_ordered(policy, &recorded, ["Wide", "Narrow", "Tile"]);
    }
}

#[test]
fn parallelism_of_a_contended_mutex_advises_to_split_it() {
    let program = skip_unless_live!("convoy.c");
    let options = ["--interpose", "always", "--overhead", "none"];
    let recorded = Recorded::good(&options, &program, &["101", "4", "100000"]);
    let run = parallelism(&recorded, &[]);
    adds_up(&run);
    let lock = row(&run, "lock", "mutex hot");
    assert!(lock["queue"]["average_length"].as_f64() > Some(1.0), "{lock}");
    let burn = row(&run, "function", "burn");
    assert!(ns(lock, "normalized_self_ns") * 2 > ns(burn, "normalized_self_ns"), "{lock} {burn}");
    let text = Longpole::with(["parallelism"]).and(&recorded.file).ok().stdout;
    assert!(text.starts_with("Split hot, or hold it for a shorter time: "), "{text}");
    let text = Longpole::with(["parallelism", "--of", "hot"]).and(&recorded.file).ok().stdout;
    assert!(text.contains("WAITING THREADS") && text.contains("RUNS MEANWHILE"), "{text}");
}
