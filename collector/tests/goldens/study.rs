//! `slack`, `paths`, `what-if`, `diff` and `check` on programs whose answers follow from their construction.

use longpole_tests::{Longpole, check_golden};
use serde_json::Value;

use super::program;

/// Figure 4's unit, ns.
const UNIT: f64 = 1000.0;

fn json(arguments: &[&str], scenario: &str) -> Value {
    let ended = Longpole::with(arguments.iter().copied()).and(program(scenario)).ok();
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout))
}

fn list<'v>(value: &'v Value, name: &str) -> &'v Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// The whole text and JSON of these commands' output are as expected.
#[test]
fn slack_paths_and_what_if_of_the_scenarios_are_their_golden_files() {
    for scenario in ["figure-4", "quicksort", "deadlock"] {
        for command in ["slack", "paths"] {
            let text = Longpole::with([command]).and(program(scenario)).ok().stdout;
            check_golden(format!("{scenario}/{command}.txt"), &text);
            let json = Longpole::with([command, "--json"]).and(program(scenario)).ok().stdout;
            check_golden(format!("{scenario}/{command}.json"), &json);
        }
    }
    let scale = ["what-if", "--scale", "RecursiveQuickSort=0.5", "--model", "ideal", "--cpus", "1,2,8,inf"];
    check_golden("quicksort/what-if.txt", &Longpole::with(scale).and(program("quicksort")).ok().stdout);
    check_golden(
        "quicksort/what-if.json",
        &Longpole::with(scale).and("--json").and(program("quicksort")).ok().stdout,
    );
    let rank = ["what-if", "--rank", "--model", "ideal", "--cpus", "2,8"];
    check_golden("quicksort/rank.txt", &Longpole::with(rank).and(program("quicksort")).ok().stdout);
    let headroom = ["what-if", "--headroom", "RecursiveQuickSort", "--model", "ideal", "--cpus", "2,8,inf"];
    check_golden("quicksort/headroom.txt", &Longpole::with(headroom).and(program("quicksort")).ok().stdout);
    check_golden(
        "quicksort/headroom.json",
        &Longpole::with(headroom).and("--json").and(program("quicksort")).ok().stdout,
    );
}

/// One path for each line of standard input until `q`, the same ones as in the list.
#[test]
fn paths_next_prints_one_path_per_line_of_input() {
    let asked = |answers: &str| {
        let line = format!("printf '{answers}' | NO_COLOR=1 \"$0\" paths --next \"$1\"");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).arg(longpole_tests::binary()).arg(program("figure-4"));
        let output = shell.output().expect("sh");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let heads = |text: &str| {
        text.lines().filter(|line| line.starts_with("Way ") || line.starts_with("The longest way")).count()
    };
    assert_eq!([asked(""), asked("\\n\\n"), asked("\\nq\\n\\n")].map(|text| heads(&text)), [1, 3, 2]);
    let all = asked(&"\\n".repeat(50));
    assert_eq!(heads(&all), 15);
    assert!(all.ends_with("There is no other path.\n"), "{all}");
    let list = Longpole::with(["paths"]).and(program("figure-4")).ok().stdout;
    assert!(list.contains(all.split("Way 2").next().expect("the first path")), "{list}\n{all}");
}

/// 2001, Fig. 4 on unlimited processors: the critical path is a b g h a f, 11 units.
#[test]
fn the_first_path_of_figure_4_is_the_paper_s_critical_path() {
    let answer = json(&["paths", "--json", "-k", "3", "--show", "1"], "figure-4");
    assert_eq!(answer["schema"], "longpole-paths/1");
    assert_eq!(answer["length_ns"], 11.0 * UNIT);
    let first = &list(&answer, "paths")[0];
    assert_eq!(
        (&first["rank"], &first["length_ns"], &first["nearness"]),
        (&1.into(), &11_000.into(), &1.into())
    );
    let edges = list(&answer["shown"], "edges");
    let names: Vec<&str> = edges.iter().filter_map(|edge| edge["name"].as_str()).collect();
    assert_eq!(names, ["a", "b", "g", "h", "a", "f"]);
    let lengths: Vec<f64> =
        list(&answer, "paths").iter().filter_map(|path| path["length_ns"].as_f64()).collect();
    assert!(lengths.is_sorted_by(|a, b| a >= b) && lengths.len() == 3, "{lengths:?}");
}

/// Slack ≤ zeroing ≤ critical path, and the critical path of each function as in the report for unlimited CPUs.
#[test]
fn slack_is_at_most_zeroing_which_is_at_most_the_critical_path() {
    for scenario in ["figure-1", "figure-4", "quicksort"] {
        let answer = json(&["slack", "--json", "--segments"], scenario);
        let report = json(&["report", "--json", "--cpus", "inf"], scenario);
        let functions = list(&answer, "functions");
        assert!(!functions.is_empty());
        for row in functions {
            let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
            let (slack, zeroing, path) =
                (number("slack_ns"), number("zeroing_ns"), number("critical_path_ns"));
            assert!(slack <= zeroing && zeroing <= path, "{scenario}: {row}");
            let rows = list(&report["results"][0], "functions");
            let tet =
                rows.iter().find(|other| other["function"] == row["function"]).map(|other| &other["tet_ns"]);
            assert_eq!(tet, Some(&row["critical_path_ns"]), "{scenario}: {row}");
        }
        let length = answer["length_ns"].as_f64();
        for segment in list(&answer, "segments") {
            let number =
                |name: &str| segment[name].as_f64().unwrap_or_else(|| panic!("no {name} in {segment}"));
            assert!(Some(number("late_finish_ns")) <= length, "{segment}");
            assert_eq!(
                number("late_start_ns") - number("early_start_ns"),
                number("total_slack_ns"),
                "{segment}"
            );
            assert!(number("free_slack_ns") <= number("total_slack_ns"), "{segment}");
        }
    }
}

/// On one CPU, half of the recursion takes half of its time: the gain is what the critical path promises, since no other
/// path takes its place.
#[test]
fn what_if_on_one_cpu_gains_what_the_critical_path_promises() {
    let scale = ["what-if", "--json", "--scale", "RecursiveQuickSort=0.5", "--model", "ideal", "--cpus", "1"];
    let answer = json(&scale, "quicksort");
    assert_eq!(answer["schema"], "longpole-what-if/1");
    let row = &list(&answer, "results")[0];
    let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"));
    let gain = number("before_ns") - number("after_ns");
    assert_eq!(row["cpus"], 1);
    assert!((gain - number("promised_ns")).abs() < 100.0, "{row}");
}

/// A program compared with itself has not changed. Compared with a longer one it has, and --fail-on reports it.
#[test]
fn diff_reports_growth_and_fails_on_it_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let after = folder.path().join("after.json");
    let text = std::fs::read_to_string(program("figure-4")).unwrap();
    std::fs::write(&after, text.replace("[\"exec\",\"f\",3000]", "[\"exec\",\"f\",4100]")).unwrap();
    let same = Longpole::with(["diff", "--json", "--fail-on", "0%"])
        .and(program("figure-4"))
        .and(program("figure-4"));
    let same: Value = serde_json::from_str(&same.ok().stdout).unwrap();
    assert_eq!(same["schema"], "longpole-diff/1");
    assert!(
        list(&same, "results").iter().all(|row| row["before_ns"] == row["after_ns"] && row["clear"] == false)
    );
    let diff = |fail_on: &str| {
        Longpole::with(["diff", "--json", "--cpus", "inf", "--fail-on", fail_on])
            .and(program("figure-4"))
            .and(&after)
    };
    let grown: Value = serde_json::from_str(&diff("+11%").ok().stdout).unwrap();
    assert_eq!(grown["results"][0]["after_ns"], 12_100);
    assert_eq!(grown["functions"][0]["name"], "f");
    for fail_on in ["+9%", "f=+9%", "*=9 %"] {
        let ended = diff(fail_on).code(3);
        assert!(ended.stdout.contains("\"failures\":[\""), "{}", ended.stdout);
    }
    diff("g=+1%").ok();
}

/// Kept and broken rules, in every output format.
#[test]
fn check_reports_kept_and_broken_rules_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    let rule = |max: &str| {
        format!("[[rule]]\nname = \"quick\"\nmeasure = \"time\"\ncpus = \"2,inf\"\nmax = \"{max}\"\n")
    };
    let check = |more: &[&str]| {
        let call = Longpole::with(["check", "--rules"]).and(&rules).and(program("figure-4"));
        more.iter().fold(call, |call, argument| call.and(argument))
    };
    std::fs::write(&rules, rule("12us")).unwrap();
    let kept = check(&[]).ok().stdout;
    assert!(kept.starts_with("All 2 rules are kept.") && kept.contains("\n\nLIMIT  "), "{kept}");
    std::fs::write(&rules, rule("11us 500ns")).unwrap();
    let ended = check(&[]).code(3);
    assert!(
        ended.stdout.starts_with("1 of 2 rules is broken.") && ended.stdout.contains("quick on 2 CPUs"),
        "{}",
        ended.stdout
    );
    let (junit, markdown) = (folder.path().join("out.xml"), folder.path().join("out.md"));
    let (junit_text, markdown_text) = (junit.display().to_string(), markdown.display().to_string());
    check(&["--junit", &junit_text, "--markdown", &markdown_text]).code(3);
    let (xml, table) =
        (std::fs::read_to_string(&junit).unwrap(), std::fs::read_to_string(&markdown).unwrap());
    assert!(xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("<failure message="), "{xml}");
    assert!(table.contains("| **broken** | quick on 2 CPUs |"), "{table}");
    let answer: Value = serde_json::from_str(&check(&["--json"]).code(3).stdout).unwrap();
    assert_eq!((&answer["schema"], &answer["broken"]), (&"longpole-check/1".into(), &1.into()));
    assert!(answer["limit"]["at"][0]["kind"].is_string(), "{answer}");
}
