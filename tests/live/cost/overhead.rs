//! The cost of recording must stay within the budget, be reported, and be subtracted from results.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use longpole_tests::{Background, Longpole, Recorded, Report, must_run, run, skip_unless_live, workload};

const LIMIT: Duration = Duration::from_secs(120);

/// Calls per second of CPU time, computed from this many lines of the target. The target prints a line every 100 ms.
fn speed(target: &mut Background, lines: usize) -> f64 {
    let (mut calls, mut cpu_ns) = (0.0, 0.0);
    for _ in 0..lines {
        let line = target.line(LIMIT).expect("a line of two numbers");
        let (more, time) = line.split_once(' ').expect("a line of two numbers");
        calls += more.parse::<f64>().expect("a line of two numbers");
        cpu_ns += time.parse::<f64>().expect("a line of two numbers");
    }
    calls / cpu_ns * 1e9
}

/// With probes, a small function that is called all the time takes many times as long. The function must lose its
/// probes, and the recorded program must then be as fast as before. The program is compared with itself, by its own CPU
/// time.
#[test]
fn a_hot_function_loses_its_probes_so_that_recording_keeps_its_budget() {
    let program = skip_unless_live!("dear.c");
    let mut target = Background::must_start(&mut Command::new(program));
    let before = speed(&mut target, 10);
    // The rate limit is so high that it has no effect: only the budget removes probes.
    let options = ["-d", "4s", "--max-rate", "1000000000", "--overhead", "2%", "--functions", "*"];
    let (mut record, _folder, file) = Recorded::attach_in_background(&options, target.pid());
    record.wait_for_stderr("recording", LIMIT).unwrap();
    let first = speed(&mut target, 10);
    let later = speed(&mut target, 20);
    let ended = record.wait(LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Without the overhead controller, the speed would be a tenth or less.
    assert!(later > 0.8 * before, "{before} calls a second before, {first} at first and {later} later");
    assert!(
        ended.stderr.contains("1 off (called too often, counted for their callers: SmallAndHot)"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("\ncost "), "{}", ended.stderr);
    let report = Longpole::report(&file, "1");
    assert_eq!(report.findings("folded").len(), 1, "{}", report.0);
    let cost = &report.0["overhead"];
    assert_eq!(cost["budget"], 0.02, "{cost}");
    // The controller tolerates some excess and needs time to remove probes, more of it on a busy machine. Without the
    // limit, the share would be ten times as large.
    assert!(cost["share"].as_f64().unwrap() < 1.0, "{cost}");
    assert!(cost["hits"].as_u64().unwrap() > 100, "{cost}");
    // The function that calls the hot one must keep its probes.
    assert!(report.at(1).function("Seldom", "calls").unwrap_or(0.0) > 10.0, "{}", report.0);
    let told = Longpole::told_cost(&file);
    assert!(told.starts_with("overhead ") && told.contains("(goal 2 %)"), "{told}");
    let info = Longpole::with(["info"]).and(&file).ok().stdout;
    assert!(info.contains("\ncost "), "{info}");
    target.close_stdin();
    assert_eq!(target.wait(LIMIT).unwrap().code, Some(0));
}

#[test]
fn without_a_budget_every_call_of_a_hot_function_is_recorded() {
    let program = skip_unless_live!("known.c");
    let options = ["--exact", "--overhead", "none", "--max-rate", "1000000000"];
    let recorded = Recorded::good(&options, &program, &["50"]);
    assert_eq!(recorded.program().entries("Small"), 50 * 60);
    assert!(recorded.ended.stderr.contains("(no goal)"), "{}", recorded.ended.stderr);
}

/// Time of `InManyCalls` divided by the time of `InOneCall`. Both functions compute the same.
fn ratio(report: &Report) -> f64 {
    let time = |name| report.at(1).function(name, "tetid_ns").expect("both functions");
    time("InManyCalls") / time("InOneCall")
}

fn report_of(file: &Path, options: &[&str]) -> Report {
    let mut call = Longpole::with(["report", "--json", "--cpus", "1"]).and(file);
    call.command().args(options);
    Report::parse(&call.ok().stdout)
}

/// Probes make a function of many small calls look more expensive than it is. The report subtracts the known cost of
/// the probes, so its times must be nearer to those of the program without probes. `--raw` does not subtract the cost.
#[test]
fn the_cost_of_probes_is_subtracted_from_a_function_s_time() {
    let program = skip_unless_live!("known.c");
    let alone = must_run(&mut Command::new(&program), LIMIT).stdout;
    let times: Vec<f64> = alone.split_whitespace().map(|time| time.parse().unwrap()).collect();
    let [many, one] = times[..] else { panic!("{alone}") };
    let options = ["--exact", "--overhead", "none", "--max-rate", "1000000000", "--interpose", "never"];
    let recorded = Recorded::good(&options, &program, &[]);
    let (net, raw) = (report_of(&recorded.file, &[]), report_of(&recorded.file, &["--raw"]));
    let (true_ratio, net_ratio, raw_ratio) = (many / one, ratio(&net), ratio(&raw));
    assert!(raw_ratio > 1.1 * true_ratio, "{raw_ratio} with probes, {true_ratio} without");
    assert!(
        (net_ratio - true_ratio).abs() < 0.5 * (raw_ratio - true_ratio),
        "{net_ratio} of {raw_ratio} is left, {true_ratio} is true"
    );
    assert_eq!(net.findings("probe_cost").len(), 1, "{}", net.0);
    assert_eq!(raw.findings("probe_cost").len(), 0, "{}", raw.0);
    for report in [&net, &raw] {
        for name in report.at(1).functions() {
            let time = report.at(1).function(&name, "tet_ns");
            assert!(time.is_some_and(|time| time >= 0.0), "{name}: {time:?}");
        }
    }
}

/// If each compiler of a `make` got probes and its symbols were read, the `make` would take eight times as long. So
/// programs that end within 200 ms get no probes, and the recording counts them.
#[test]
fn a_storm_of_short_programs_is_recorded_without_probes_at_little_cost() {
    let program = skip_unless_live!("storm.c");
    const PROCESSES: usize = 150;
    let number = PROCESSES.to_string();
    let took = |text: &str| text.trim().parse::<f64>().expect("microseconds");
    let (mut alone, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        alone.push(took(&must_run(Command::new(&program).arg(&number), LIMIT).stdout));
        let storm = Recorded::good(&["--exact", "--children"], &program, &[&number]);
        recorded.push(took(&storm.ended.stdout));
        let words: Vec<&str> = storm.ended.stderr.split_whitespace().collect();
        let counted = words.windows(4).find(|words| words[1..] == ["processes", "ended", "before"]);
        let ended = counted.and_then(|words| words[0].parse::<usize>().ok());
        let ended = ended.unwrap_or_else(|| panic!("{}", storm.ended.stderr));
        // On a busy machine, some of the programs live longer than 200 ms.
        assert!((PROCESSES / 2..=PROCESSES).contains(&ended), "{}", storm.ended.stderr);
        let calls = storm.program().entries("ChildTask");
        assert!(calls <= (PROCESSES - ended) * 50, "{calls} calls: {}", storm.ended.stderr);
    }
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let (alone, recorded) = (best(&alone), best(&recorded));
    assert!(recorded < 3.0 * alone, "{alone} µs alone, {recorded} µs recorded");
}

/// With probes on four thousand functions, node with four workers once did 21 rounds in its first second instead of
/// 12,000.
#[test]
fn a_program_with_thousands_of_functions_starts_without_probes() {
    let program = skip_unless_live!(workload::build_many_functions(1_500));
    let on = |recorded: &Recorded| {
        let probes =
            recorded.ended.stderr.lines().find_map(|line| line.strip_prefix("probes")).expect("a line");
        let count = probes.split_whitespace().next().expect("a number").replace(',', "");
        count.parse::<usize>().unwrap_or_else(|_| panic!("{}", recorded.ended.stderr))
    };
    let launch = |options: &[&str]| Recorded::launch(options, &program, &["1"]);
    let usual = launch(&["--exact", "--overhead", "none"]);
    assert_eq!(on(&usual), 0, "{}", usual.ended.stderr);
    assert!(usual.ended.stderr.contains("too many to probe all at once"), "{}", usual.ended.stderr);
    // The options either give a number of functions, or turn off the samples that could choose functions.
    for options in [["--max-functions", "4000"], ["-F", "0"]] {
        let asked = launch(&[&["--exact", "--overhead", "none"], &options[..]].concat());
        assert!(on(&asked) > 1_000, "{options:?}: {}", asked.ended.stderr);
    }
}

/// Units per second of CPU time for each of the ways of `moods`: the median of its lines, without its first second.
fn settled(output: &str) -> [f64; 3] {
    const LINES: usize = 20;
    let mut ways: [Vec<f64>; 3] = Default::default();
    let lines: Vec<&str> = output.lines().collect();
    for stretch in lines.as_chunks::<LINES>().0 {
        for line in &stretch[LINES / 2..] {
            let numbers: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
            ways[numbers[0] as usize].push(numbers[1] / numbers[2] * 1e9);
        }
    }
    ways.map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        speeds[speeds.len() / 2]
    })
}

/// Within a second after the program changes what it does, longpole must have found what it may record. The program's
/// own CPU time alone and recorded is compared, in turns.
#[test]
fn a_program_that_changes_what_it_does_keeps_four_fifths_of_its_speed() {
    let program = skip_unless_live!("moods.c");
    let alone = || settled(&run(Command::new(&program).args(["2000", "3"]), LIMIT).unwrap().stdout);
    let before = alone();
    // At its end, the recorded run does the first kind of work again.
    let recorded = Recorded::launch(&[], &program, &["2000", "4"]);
    assert_eq!(recorded.ended.code, Some(0), "{}", recorded.ended.stderr);
    let with = settled(&recorded.ended.stdout);
    let after = alone();
    for way in 0..3 {
        let alone = before[way].min(after[way]);
        // With probes on the small functions, the speed would be less than half. With a record for each operation, it
        // is four fifths.
        assert!(with[way] > 0.8 * alone, "way {way}: {} of {alone}\n{}", with[way], recorded.ended.stderr);
    }
}
