//! A recording made on one CPU predicts what two CPUs do.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use longpole_tests::{Longpole, Recorded, must_run, skip_unless_built, skip_unless_live, workload};

const LIMIT: Duration = Duration::from_secs(120);
const RUNS: usize = 3;

fn wall(cpus: &str, program: &Path, arguments: &[&str]) -> f64 {
    let start = Instant::now();
    let ended = must_run(Command::new("taskset").args(["-c", cpus]).arg(program).args(arguments), LIMIT);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    start.elapsed().as_secs_f64()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The bound is wide: on a machine that others use the real speed-up is anything from 1 to 2.
#[test]
fn two_cpus_are_predicted_from_one() {
    skip_unless_live!();
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIP {}: one CPU only", longpole_tests::here!());
        return;
    }
    let program = skip_unless_built!(workload::build("forkjoin.c"));
    let arguments = ["4", "3", "8000000"];
    let recorded = Recorded::good(&["--cpu-list", "0"], &program, &arguments);
    let ended = Longpole::with(["predict", "--json", "--cpus", "1,2,8"]).and(&recorded.file).ok();
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let results = json["results"].as_array().expect("a list");
    let number = |place: usize, name: &str| results[place][name].as_f64().expect("a number");
    assert_eq!(results.len(), 3, "{json}");
    for (place, result) in results.iter().enumerate() {
        assert!(number(place, "low_ns") <= number(place, "time_ns"), "{json}");
        assert!(number(place, "time_ns") <= number(place, "high_ns"), "{json}");
        assert_eq!(result["complete"], true, "{json}");
    }
    let speedup = number(1, "speedup");
    // Three branches and a long one on two CPUs, and no more than that on eight.
    assert!((1.2..=2.05).contains(&speedup), "{speedup}\n{json}");
    assert!(number(2, "speedup") >= speedup * 0.98, "{json}");
    let ratios = (0..RUNS).map(|_| wall("0", &program, &arguments) / wall("0,1", &program, &arguments));
    let real = middle(ratios.collect());
    assert!((0.45..=2.2).contains(&(speedup / real)), "predicted {speedup}, measured {real}");
}
