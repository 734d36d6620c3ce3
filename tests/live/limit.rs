//! LIMIT for programs whose limit is known.

use longpole_tests::{Longpole, Recorded, Report, skip_unless_built, skip_unless_live, workload};

/// The limit on this number of CPUs.
fn limit(report: &Report, cpus: u64) -> serde_json::Value {
    let limits = report.0["limit"]["at"].as_array().map_or(&[][..], Vec::as_slice);
    let found = limits.iter().find(|limit| limit["cpus"] == cpus);
    found.unwrap_or_else(|| panic!("none for {cpus} in {}", report.0["limit"])).clone()
}

/// A hot lock must be the limit, and the advice must be about the lock and not about making the function under it
/// faster.
#[test]
fn a_contended_mutex_is_the_limit_and_splitting_it_is_the_fix() {
    let program = skip_unless_live!("convoy.c");
    let options = ["--interpose", "always", "--overhead", "none"];
    let recorded = Recorded::good(&options, &program, &["101", "4", "100000"]);
    let report = recorded.report("1,8");
    let found = limit(&report, 8);
    assert_eq!((&found["kind"], &found["lock"]), (&"lock".into(), &"mutex hot".into()), "{found}");
    assert_eq!(found["threads"], 4, "{found}");
    // `UnderTheLock` contains `burn`, which computes, as inlined code.
    let holders_run = found["function"].as_str().unwrap_or_default();
    assert!(["UnderTheLock", "burn"].contains(&holders_run), "{found}");
    assert!(found["waiting"].as_f64() > Some(1.0), "{found}");
    let text = Longpole::with(["report", "--cpus", "1,8"]).and(&recorded.file).ok().stdout;
    assert!(text.contains("lock hot: ") && text.contains(holders_run), "{text}");
    assert!(text.contains("split the lock in 8"), "{text}");
    assert!(text.lines().count() <= 40, "{text}");
}

#[test]
fn threads_that_only_compute_are_limited_by_cpus() {
    skip_unless_live!();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > 8 {
        return;
    }
    let program = skip_unless_built!(workload::build("busy.c"));
    let recorded = Recorded::good(&[], &program, &[]);
    let found = limit(&recorded.report(&cores.to_string()), cores as u64);
    assert_eq!(found["kind"], "cpus", "{found}");
}

/// Threads that change one cache line are limited by it. LIMIT must not be "the work itself", which more threads would
/// help.
#[test]
fn threads_that_change_one_cache_line_are_limited_by_it() {
    let program = skip_unless_live!("lines.c");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let of = |how: &str| {
        let recorded = Recorded::good(&["--overhead", "none"], &program, &[how, "40000"]);
        limit(&recorded.report("2"), 2)
    };
    let shared = of("shared");
    assert_eq!((&shared["kind"], &shared["object"]), (&"cache_line".into(), &"hits[0]".into()), "{shared}");
    assert_eq!((&shared["threads"], &shared["function"]), (&2.into(), &"count".into()), "{shared}");
    let by_chance = of("false");
    assert_eq!(by_chance["kind"], "cache_line", "{by_chance}");
    assert!(by_chance["object"].as_str().is_some_and(|words| words.contains("hits[1]")), "{by_chance}");
    let own = of("own");
    assert_ne!(own["kind"], "cache_line", "{own}");
    let others = own["others"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(others.iter().all(|other| other["kind"] != "cache_line"), "{own}");
}

/// Only runs on one CPU show how long the work takes on one CPU. For these counters, the model says 834 ms where 310 ms
/// were measured.
#[test]
fn runs_on_one_and_two_cpus_show_which_function_costs_more() {
    let program = skip_unless_live!("lines.c");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let of = |how: &str| {
        let options = ["--overhead", "none", "--cpus", "1,2", "--runs", "2"];
        let recorded = Recorded::good(&options, &program, &[how, "15000"]);
        recorded.report("1,2")
    };
    let shared = of("shared");
    let runs = &shared.0["limit"]["cpu_runs"];
    assert_eq!(runs["counts"].as_array().map(Vec::len), Some(2), "{runs}");
    assert_eq!((&runs["counts"][0]["cpus"], &runs["counts"][1]["runs"]), (&1.into(), &2.into()), "{runs}");
    let grown = &runs["functions"][0];
    assert_eq!(grown["function"], "count", "{runs}");
    let times = |of: f64| grown["many_ns"].as_f64() > grown["few_ns"].as_f64().map(|ns| of * ns);
    assert!(times(1.5), "{runs}");
    // LIMIT must say why the function costs more. The runs alone do not show it.
    assert_eq!(limit(&shared, 2)["kind"], "cache_line");
    let own = of("own");
    assert_eq!(own.0["limit"]["cpu_runs"]["counts"].as_array().map(Vec::len), Some(2));
    assert_ne!(limit(&own, 2)["kind"], "costs_more");
}

/// Threads have counters in one cache line and use no atomic instructions. LIMIT must name the cache line and not "the
/// work itself".
#[test]
fn plain_stores_to_different_words_of_a_cache_line_are_its_limit() {
    let program = skip_unless_live!("lines.c");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let of = |how: &str, rounds: &str| {
        let recorded = Recorded::good(&["--overhead", "none"], &program, &[how, rounds]);
        limit(&recorded.report("2"), 2)
    };
    let side_by_side = of("plain", "40000");
    assert_eq!(
        (&side_by_side["kind"], &side_by_side["function"]),
        (&"cache_line".into(), &"add".into()),
        "{side_by_side}"
    );
    assert_eq!(side_by_side["object"], "sums[0], sums[1]", "{side_by_side}");
    for (how, rounds) in [("padded", "40000"), ("table", "40000"), ("queue", "2000")] {
        let own = of(how, rounds);
        let others = own["others"].as_array().map_or(&[][..], Vec::as_slice);
        let is_line = |of: &serde_json::Value| {
            of["kind"] == "cache_line" && of["object"].as_str().is_some_and(|words| words.contains("sums"))
        };
        assert!(!others.iter().chain([&own]).any(is_line), "{how}: {own}");
    }
}

/// Threads that spend 85 % of their time in the kernel are limited by the kernel's work, and not by "the work itself"
/// or by CPUs.
#[test]
fn memory_freed_and_allocated_again_and_again_is_work_of_the_kernel() {
    let program = skip_unless_live!("fresh_memory.c");
    let of = |how: &str, rounds: &str| {
        let recorded = Recorded::good(&["--overhead", "none"], &program, &[how, rounds]);
        limit(&recorded.report("2"), 2)
    };
    let fresh = of("fresh", "4000");
    assert_eq!((&fresh["kind"], &fresh["function"]), (&"support_work".into(), &"fill".into()), "{fresh}");
    assert!(fresh["object"].as_str().is_some_and(|calls| calls.contains("page faults")), "{fresh}");
    assert_eq!(fresh["threads"], 2, "{fresh}");
    let kept = of("kept", "40000");
    let others = kept["others"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(others.iter().chain([&kept]).all(|of| of["kind"] != "support_work"), "{kept}");
}

/// Threads wait for each other in the kernel. These waits must have a row, in addition to the threads' CPU time in the
/// kernel.
#[test]
fn threads_that_map_and_unmap_wait_for_the_lock_of_their_memory_map() {
    let program = skip_unless_live!("map_churn.c");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    let tracepoints = std::fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let name = b"btf_trace_contention_begin\0";
    if !tracepoints.windows(name.len()).any(|at| at == name) {
        return println!("SKIP threads_that_map_and_unmap: a kernel without tracepoints of its locks");
    }
    let recorded = Recorded::good(&["--overhead", "none"], &program, &["map", "4000"]);
    let found = limit(&recorded.report("2"), 2);
    assert_eq!((&found["kind"], &found["threads"]), (&"support_work".into(), &4.into()), "{found}");
    let locks = &found["kernel_locks"];
    let number = |name: &str| locks[name].as_f64().expect(name);
    let share = (number("slept_ns") + number("spun_ns")) / number("of_ns");
    assert!(number("count") > 0.0 && share > 0.01, "{found}");
    assert!(locks["slept_ns"].as_u64() > Some(0), "who waits for the map sleeps: {found}");
    let text = Longpole::with(["report", "--cpus", "2"]).and(&recorded.file).ok().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("which 4 threads cause in the memory that they share"), "{text}");
    assert!(text.contains("; these threads wait for "), "{text}");
    assert!(text.contains(" CPU kernel limits"), "{text}");
    let info = Longpole::with(["info"]).and(&recorded.file).ok().stdout;
    assert!(info.contains("kernel locks") && info.contains(" waits, "), "{info}");

    let recorded = Recorded::good(&["--overhead", "none"], &program, &["own", "4001"]);
    let found = limit(&recorded.report("2"), 2);
    let others = found["others"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(others.iter().chain([&found]).all(|of| of["kind"] != "support_work"), "{found}");
    let text = Longpole::with(["report", "--cpus", "2"]).and(&recorded.file).ok().stdout;
    assert!(!text.contains("they wait for") && !text.contains(" kernel  limits"), "{text}");
}

/// Over the whole run both processes of a pool do the same; in each round one of them is done later.
#[test]
fn a_pool_of_processes_with_uneven_rounds_is_limited_by_imbalance() {
    let program = skip_unless_live!("rounds.c");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return println!("SKIP a_pool_of_processes_with_uneven_rounds: one CPU");
    }
    let of = |how: &str| {
        let recorded = Recorded::good(&["--overhead", "none"], &program, &[how, "40"]);
        limit(&recorded.report("2"), 2)
    };
    let uneven = of("uneven");
    assert_eq!((&uneven["kind"], &uneven["function"]), (&"imbalance".into(), &"evaluate".into()), "{uneven}");
    assert!(uneven["rounds"].as_u64().is_some_and(|rounds| (20..=42).contains(&rounds)), "{uneven}");
    let even = of("even");
    let others = even["others"].as_array().map_or(&[][..], Vec::as_slice);
    assert!(others.iter().chain([&even]).all(|of| of["rounds"].as_u64().is_none()), "{even}");
}
