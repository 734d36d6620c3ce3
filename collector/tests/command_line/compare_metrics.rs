//! `longpole compare-metrics` on programs that need no recording.

use super::{FIGURE_4, longpole_with};
use serde_json::Value;

/// After a start, two ways of nearly the same length: metrics disagree on the first function.
const TWINS: &str = r#"{"format":"longpole-program","version":1,"threads":[
    {"name":"A","ops":[["exec","prepare",40],["create","B"],["create","C"],["join","B"],["join","C"]]},
    {"name":"B","ops":[["exec","left",100]]},{"name":"C","ops":[["exec","right",96]]}]}"#;

fn json(arguments: &[&str], program: &str) -> Value {
    let run = longpole_with(&[&["compare-metrics", "-", "--json"], arguments].concat(), program.as_bytes());
    serde_json::from_str(run.works()).expect("JSON")
}

fn text(arguments: &[&str], program: &str) -> String {
    let run = longpole_with(&[&["compare-metrics", "-"], arguments].concat(), program.as_bytes());
    let text = run.works().to_owned();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 40, "{text}");
    text
}

/// A wrapped text as one line.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn compare_metrics_json_has_each_metric_with_its_first_function() {
    let answer = json(&["--cpus", "2"], TWINS);
    assert_eq!(answer["schema"], "longpole-compare-metrics/1");
    assert_eq!(
        (&answer["cpus"], &answer["time_ns"], &answer["busy_ns"]),
        (&2.into(), &140.into(), &236.into())
    );
    let first = answer["first"].as_array().expect("a list");
    let named: Vec<(&str, &str)> = first
        .iter()
        .filter_map(|first| Some((first["metric"].as_str()?, first["function"].as_str()?)))
        .collect();
    let expected = [
        ("profile", "left"),
        ("quartz", "left"),
        ("critical_path", "left"),
        ("slack", "prepare"),
        ("zeroing", "prepare"),
        ("maximum_benefit", "prepare"),
    ];
    assert_eq!(named, expected);
    assert_eq!(
        answer["functions"][0],
        serde_json::json!({"function": "prepare", "is_foreign": false, "profile_ns": 40, "quartz_ns": 40,
            "critical_path_ns": 40, "slack_ns": 40, "zeroing_ns": 40, "maximum_benefit_ns": 40, "simulated_ns": 40})
    );
    assert_eq!(json(&[], FIGURE_4)["cpus"], "inf", "unlimited if nothing is said");
}

#[test]
fn compare_metrics_says_which_metrics_agree_and_their_simulated_gain() {
    let twins = text(&["--cpus", "2"], TWINS);
    let sentence = "Profile, quartz and path agree on left, which gains 2.9 % in simulation; slack, zeroing and benefit agree on \
                    prepare, which gains 29 % in simulation on 2 CPUs.";
    assert!(unwrapped(&twins).contains(sentence), "{twins}");
    let one = r#"{"format":"longpole-program","version":1,"threads":[{"name":"A","ops":[["exec","f",10]]}]}"#;
    let one = text(&["--cpus", "1"], one);
    assert!(
        unwrapped(&one).contains("All metrics agree on f: without it the run on 1 CPU gains 100 %"),
        "{one}"
    );
}

#[test]
fn compare_metrics_of_a_run_without_functions_is_a_sentence() {
    let of = |threads: &str| {
        unwrapped(&text(
            &[],
            &format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#),
        ))
    };
    assert!(of("").contains("Nothing to make faster"), "{}", of(""));
    let nameless = of(r#"{"name":"A","ops":[["exec",10]]}"#);
    assert!(nameless.contains("No function of the program itself is known to take time here"), "{nameless}");
    let stuck = of(r#"{"name":"A","ops":[["exec","f",10],["wait","never"]]}"#);
    assert!(stuck.contains("Remove the deadlock first"), "{stuck}");
    longpole_with(&["compare-metrics", "-", "--cpus", "1,2"], TWINS.as_bytes()).fails(
        2,
        "one number",
        "--cpus 4",
    );
}
