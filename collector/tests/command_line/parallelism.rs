//! `longpole parallelism` on programs that need no recording.

use super::{FIGURE_4, longpole_with};
use serde_json::Value;

/// A function that runs alone, and one with as much CPU time that four threads run at once.
const SERIAL: &str = r#"{"format":"longpole-program","version":1,"threads":[
    {"name":"A","ops":[["exec","serial",400],["create","B"],["create","C"],["create","D"],["exec","parallel",100]]},
    {"name":"B","ops":[["exec","parallel",100]]},{"name":"C","ops":[["exec","parallel",100]]},
    {"name":"D","ops":[["exec","parallel",100],["sleep",50]]}]}"#;

fn json(arguments: &[&str], program: &str) -> Value {
    let run = longpole_with(&[&["parallelism", "-", "--json"], arguments].concat(), program.as_bytes());
    serde_json::from_str(run.works()).expect("JSON")
}

fn text(arguments: &[&str], program: &str) -> String {
    let run = longpole_with(&[&["parallelism", "-"], arguments].concat(), program.as_bytes());
    let text = run.works().to_owned();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.lines().count() <= 40, "{text}");
    text
}

#[test]
fn parallelism_json_adds_up_to_the_time_on_any_number_of_cpus() {
    for cpus in ["1", "2", "3", "4", "inf"] {
        for program in [SERIAL, FIGURE_4] {
            let run = json(&["--cpus", cpus], program);
            assert_eq!(run["schema"], "longpole-parallelism/1");
            let rows = run["rows"].as_array().expect("rows");
            let own = |row: &&Value| row["kind"] == "function";
            let sum: u64 = rows.iter().filter(own).filter_map(|row| row["normalized_self_ns"].as_u64()).sum();
            assert_eq!(Some(sum + run["nobody_busy_ns"].as_u64().expect("ns")), run["elapsed_ns"].as_u64());
        }
    }
    let run = json(&[], SERIAL);
    assert_eq!(
        (&run["cpus"], &run["run"]),
        (&"inf".into(), &"predicted".into()),
        "unlimited if nothing is said"
    );
    assert_eq!((&run["elapsed_ns"], &run["nobody_busy_ns"]), (&550.into(), &50.into()));
    let first = &run["rows"][0];
    let keys = ["kind", "name", "normalized_self_ns", "normalized_total_ns", "busy_ns", "calls", "by_busy"];
    let expected: [Value; 7] = [
        "function".into(),
        "serial".into(),
        400.into(),
        400.into(),
        400.into(),
        1.into(),
        serde_json::json!([[1, 400]]),
    ];
    assert_eq!(keys.map(|key| first[key].clone()), expected);
    assert_eq!(first["advice"], serde_json::json!({"kind": "parallelize", "alone": 1.0}));
    assert_eq!(
        run["first"],
        serde_json::json!({"kind": "function", "name": "serial", "advice": first["advice"]})
    );
    for key in ["spinning_ns", "blocked_ns", "ready_ns"] {
        assert_eq!(first[key], 0, "{key}");
    }
    let runs = json(&["--cpus", "1,4"], SERIAL);
    assert_eq!((&runs["cpus"], &runs["others"][0]["cpus"]), (&1.into(), &4.into()), "one beside the other");
}

#[test]
fn parallelism_s_first_line_says_what_to_do() {
    let first = |cpus: &str| text(&["--cpus", cpus], SERIAL);
    let four = first("4");
    assert!(four.starts_with("Parallelize serial: 100 % of its time no other CPU is busy"), "{four}");
    assert!(four.contains("alone 100 %: parallelize") && four.contains("all CPUs busy: optimize"), "{four}");
    assert!(first("1").starts_with("Make "), "{}", first("1"));
    let columns = first("1,2,4");
    assert!(columns.contains("1 CPU    2 CPUs    4 CPUs"), "{columns}");
    assert!(!text(&["--by", "thread"], SERIAL).contains("FUNCTIONS"));
}

#[test]
fn parallelism_of_one_row_has_its_histogram_callers_and_callees() {
    let program = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"A","ops":[["call","main"],["exec",10],["exec","leaf",30],["lock","m"],["exec","under",5],["unlock","m"],["ret"]]}]}"#;
    let main = text(&["--of", "main"], program);
    assert!(main.contains("BUSY CPUs   of run   # itself, = on its behalf"), "{main}");
    assert!(main.contains("###########===="), "{main}");
    assert!(main.contains("CALLS") && main.contains("leaf"), "{main}");
    let lock = text(&["--of", "m"], program);
    assert!(lock.contains("TAKEN BY") && lock.contains("main"), "{lock}");
    assert!(lock.contains("RUNS MEANWHILE") && lock.contains("under"), "{lock}");
    longpole_with(&["parallelism", "-", "--of", "nowhere"], program.as_bytes()).fails(2, "nowhere", "--top");
    longpole_with(&["parallelism", "-", "--by", "colour"], program.as_bytes()).fails(
        2,
        "colour",
        "function, lock",
    );
}

#[test]
fn parallelism_of_a_run_without_parallelism_is_a_sentence() {
    let of = |threads: &str| {
        text(&[], &format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#))
    };
    assert!(of("").starts_with("Nothing happened in this run"), "{}", of(""));
    let sleeps = of(r#"{"name":"A","ops":[["sleep",10]]}"#);
    assert!(sleeps.starts_with("No thread computed in this run"), "{sleeps}");
    let nameless = of(r#"{"name":"A","ops":[["exec",10]]},{"name":"B","ops":[["exec",10]]}"#);
    assert!(nameless.starts_with("No function is known to take time here"), "{nameless}");
    let one = of(r#"{"name":"A","ops":[["exec","f",10]]}"#);
    assert!(one.starts_with("This program has one thread"), "{one}");
    let serial = of(
        r#"{"name":"A","ops":[["exec","f",10],["signal","s"]]},{"name":"B","ops":[["wait","s"],["exec","f",10]]}"#,
    );
    assert!(serial.starts_with("This run is never parallel"), "{serial}");
    let idle =
        of(r#"{"name":"A","ops":[["exec","f",10],["io",90,"disk"]]},{"name":"B","ops":[["exec","f",10]]}"#);
    assert!(
        idle.starts_with("No CPU is busy for 90 % of the run: threads wait, most of all for disk"),
        "{idle}"
    );
    let stuck = of(r#"{"name":"A","ops":[["exec","f",10],["wait","never"]]}"#);
    assert!(stuck.starts_with("Remove the deadlock first"), "{stuck}");
}

/// If no row has advice, the report's limit stands on top instead of "Nothing stands out", with how sure it is.
#[test]
fn parallelism_without_advice_shows_the_limit_of_the_report() {
    let program =
        SERIAL.replace("serial", "core::hint::black_box").replace("parallel", "core::hint::black_box");
    let limit = |text: &str| text.lines().find(|line| line.starts_with("LIMIT")).map(str::to_owned);
    let report = longpole_with(&["report", "-"], program.as_bytes()).works().to_owned();
    let text = text(&[], &program);
    assert_eq!(limit(&text), limit(&report), "{text}{report}");
    assert!(limit(&text).is_some() && text.contains("Sure: good"), "{text}");
}
