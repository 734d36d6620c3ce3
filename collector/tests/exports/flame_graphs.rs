//! `folded` and `svg`, which are read by people and by the simplest of parsers.

use super::{RECORDINGS, recording};
use crate::command_line::{FIGURE_4, Folder, longpole};
use serde_json::Value;

fn folded(input: &str, options: &[&str]) -> Vec<(Vec<String>, u64)> {
    let run = longpole(&[&["export", input, "-f", "folded"], options].concat());
    let lines = run.works().lines().map(|line| {
        let (stack, ns) = line.rsplit_once(' ').expect("a number at the end");
        (stack.split(';').map(str::to_owned).collect(), ns.parse().expect("whole"))
    });
    lines.collect()
}

#[test]
fn folded_stacks_add_up_to_the_predicted_time() {
    for name in RECORDINGS {
        let input = recording(name).display().to_string();
        let report = longpole(&["report", &input, "--json", "--cpus", "2,inf"]);
        let report: Value = serde_json::from_str(report.works()).expect("JSON");
        for (place, cpus) in ["2", "inf"].into_iter().enumerate() {
            let stacks = folded(&input, &["--cpus", cpus]);
            let result = &report["results"][place];
            let sum: u64 = stacks.iter().map(|(_, ns)| ns).sum();
            let time_ns = result["time_ns"].as_f64().expect("a time");
            // Of what passes in no time the stacks know nothing.
            assert!(
                (sum as f64 - time_ns).abs() <= 1.0 + 1e-6 * time_ns,
                "{name} on {cpus}: {sum}, not {time_ns}"
            );
            for row in result["functions"].as_array().expect("functions").iter().take(5) {
                let function = row["function"].as_str().expect("a name");
                let mine =
                    stacks.iter().filter(|(stack, _)| stack.last().is_some_and(|last| last == function));
                let own: u64 = mine.map(|(_, ns)| ns).sum();
                let tet = row["tet_ns"].as_f64().expect("a number");
                assert!((own as f64 - tet).abs() <= 1_000.0, "{name}, {function}: {own}, not {tet}");
            }
        }
        assert!(folded(&input, &[]).iter().map(|(_, ns)| ns).sum::<u64>() > 0, "CPU time");
    }
}

#[test]
fn folded_stacks_and_flame_graphs_refuse_several_cpu_counts() {
    let folder = Folder::new();
    let input = folder.file("figure-4.json", FIGURE_4);
    for format in ["folded", "svg"] {
        longpole(&["export", &input, "-f", format, "--cpus", "1,2"]).fails(2, "one CPU count", "--cpus 8");
    }
    longpole(&["export", &input, "--cpus", "2"]).fails(2, "--cpus", "another format");
    longpole(&["export", &input, "-f", "gif"]).fails(2, "there is no export format 'gif'", "perfetto");
}

#[test]
fn a_flame_graph_is_valid_xml_with_names() {
    let folder = Folder::new();
    let by_hand = folder.file("figure-4.json", FIGURE_4);
    let kept = RECORDINGS.map(|name| recording(name).display().to_string());
    for input in kept.iter().chain([&by_hand]) {
        for options in [&[][..], &["--cpus", "2"]] {
            let run = longpole(&[&["export", input, "-f", "svg"], options].concat());
            assert_eq!(run.code, 0, "{}", run.stderr);
            let svg = roxmltree::Document::parse(&run.stdout).expect("XML");
            let titles =
                svg.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")));
            assert!(titles.count() > 3, "{input}");
            let rects: Vec<f64> = svg
                .descendants()
                .filter_map(|node| node.attribute("x").filter(|_| node.tag_name().name() == "rect"))
                .map(|x| x.parse().expect("a number"))
                .collect();
            assert!(rects.iter().all(|x| (0.0..=1200.0).contains(x)));
        }
    }
}
