//! What goroutines wait for: by looking at Go's runtime, longpole must name the lock, the channel or the stage.

use longpole_tests::{Longpole, Recorded, skip_unless_live};
use std::path::Path;

/// The JSON report of a recording.
fn report(file: &Path) -> serde_json::Value {
    let said = Longpole::with(["report", "--json"]).and(file).ok();
    serde_json::from_str(&said.stdout).expect("JSON")
}

/// The first limit of a launched run of this kind.
fn limit(program: &Path, kind: &str, rounds: &str) -> serde_json::Value {
    let recorded = Recorded::good(&[], program, &[kind, rounds]);
    let report = report(&recorded.file);
    report["limit"]["at"][0].clone()
}

#[test]
fn goroutines_that_wait_for_a_mutex_are_told_with_its_function() {
    let program = skip_unless_live!("goroutines.go");
    let limit = limit(&program, "mutex", "4000");
    assert_eq!((&limit["of"], &limit["lock"]), (&"lock".into(), &"sync.Mutex".into()), "{limit}");
    assert_eq!(limit["function"], "main.update", "{limit}");
    // Of four goroutines, one holds the mutex and one sometimes prepares.
    let waiting = limit["waiting"].as_f64().expect("a number");
    assert!((1.0..=3.2).contains(&waiting), "{limit}");
}

#[test]
fn a_channel_whose_places_are_permits_is_told_with_its_places() {
    let program = skip_unless_live!("goroutines.go");
    let limit = limit(&program, "places", "4000");
    assert_eq!((&limit["of"], &limit["capacity"]), (&"channel".into(), &4.into()), "{limit}");
    assert_eq!(limit["function"], "main.fetch", "{limit}");
    let waiting = limit["waiting"].as_f64().expect("a number");
    assert!((18.0..=20.5).contains(&waiting), "20 of 24 wait: {limit}");
}

#[test]
fn the_busiest_goroutine_of_a_pipeline_is_told_with_what_it_computes() {
    let program = skip_unless_live!("goroutines.go");
    let limit = limit(&program, "stages", "15000");
    assert_eq!((&limit["of"], &limit["function"]), (&"stage".into(), &"main.compress".into()), "{limit}");
    assert!(limit["at_work"].as_f64().expect("a number") > 0.9, "{limit}");
}

#[test]
fn goroutines_that_want_cpus_are_no_wait() {
    let program = skip_unless_live!("goroutines.go");
    let limit = limit(&program, "tiles", "12000");
    assert_eq!(limit["kind"], "cpus", "{limit}");
    assert!(limit["waiting"].as_f64().expect("a number") > 4.0, "eight want one: {limit}");
}
