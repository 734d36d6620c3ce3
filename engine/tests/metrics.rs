//! Metrics side by side, on programs with known gains of improving each function (Hollingsworth and Miller 1994).

use engine::metrics::{Metric, Metrics, metrics};
use engine::predict::Model;
use engine::program::json;
use engine::report::Cpus;

fn of(threads: &str) -> Metrics {
    let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#);
    let program = json::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    metrics(&program, false, Cpus::count(2).expect("two"), 10, &Model::default()).expect("metrics")
}

fn firsts(metrics: &Metrics) -> Vec<&str> {
    let name = |metric: &Metric| metrics.first(*metric).map_or("none", |row| row.function.as_str());
    Metric::ALL.iter().map(name).collect()
}

fn values(metrics: &Metrics, function: &str) -> ([f64; 6], Option<f64>) {
    let row = metrics.functions.iter().find(|row| row.function == function).expect("a row");
    (row.values_ns, row.simulated_ns)
}

#[test]
fn the_largest_function_beside_the_path_leads_only_by_profile_and_quartz() {
    let found =
        of(r#"{"name":"A","ops":[["create","B"],["exec","front",70],["exec","back",30],["join","B"]]},
        {"name":"B","ops":[["exec","side",80]]}"#);
    assert_eq!((found.time_ns, found.unlimited_ns, found.busy_ns), (100.0, 100.0, 180.0));
    assert_eq!(firsts(&found)[..3], ["side", "side", "front"]);
    // Without `front` the other thread is the longest: 20 are gained, of 70 on the path.
    let (front, simulated) = values(&found, "front");
    assert_eq!((front[..3].to_vec(), front[4], simulated), (vec![70.0, 35.0, 70.0], 20.0, Some(20.0)));
    let (side, simulated) = values(&found, "side");
    assert_eq!((side, simulated), ([80.0, 40.0, 0.0, 0.0, 0.0, 0.0], Some(0.0)));
}

#[test]
fn the_function_before_two_paths_of_nearly_equal_length_leads_by_gain() {
    let found = of(
        r#"{"name":"A","ops":[["exec","prepare",40],["create","B"],["create","C"],["join","B"],["join","C"]]},
        {"name":"B","ops":[["exec","left",100]]},{"name":"C","ops":[["exec","right",96]]}"#,
    );
    assert_eq!(firsts(&found), ["left", "left", "left", "prepare", "prepare", "prepare"]);
    assert_eq!(values(&found, "left").1, Some(4.0));
    assert_eq!(found.functions.first().map(|row| row.function.as_str()), Some("prepare"), "gains most");
}

#[test]
fn slack_is_at_most_zeroing_which_is_at_most_the_benefit() {
    let found = of(
        r#"{"name":"A","ops":[["exec","a",10],["lock","m"],["exec","b",30],["unlock","m"],["exec","a",5]]},
        {"name":"B","ops":[["lock","m"],["exec","b",20],["unlock","m"],["exec","c",40]]}"#,
    );
    for row in &found.functions {
        let of = |metric| row.value_ns(metric);
        assert!(of(Metric::Slack) <= of(Metric::Zeroing), "{row:?}");
        assert!(of(Metric::Zeroing) <= of(Metric::Benefit), "{row:?}");
    }
    assert_eq!(firsts(&of(r#"{"name":"A","ops":[["sleep",10]]}"#)), ["none"; 6]);
}
