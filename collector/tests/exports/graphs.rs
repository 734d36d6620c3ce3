//! `dot`, drawn by Graphviz.

use super::{RECORDINGS, recording, tools};
use crate::command_line::{FIGURE_4, Folder, longpole};
use std::process::Command;

#[test]
fn graphviz_draws_an_exported_graph() {
    if !tools::has("dot", "-V") {
        longpole_tests::skip!("there is no Graphviz");
    }
    let folder = Folder::new();
    let by_hand = folder.file("figure-4.json", FIGURE_4);
    let kept = RECORDINGS.map(|name| recording(name).display().to_string());
    for input in kept.iter().chain([&by_hand]) {
        let out = folder.path("paths.dot");
        longpole(&["export", input, "-f", "dot", "-o", &out, "--force"]).works();
        let output = Command::new("dot").args(["-Tplain", &out]).output().expect("dot");
        assert!(output.status.success(), "{input}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{input}");
        let plain = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(plain.lines().filter(|line| line.starts_with("node ")).count() > 1, "{input}: {plain}");
    }
    longpole(&["export", &by_hand, "-f", "dot", "--cpus", "2"]).fails(2, "no CPU counts", "unlimited");
}

#[test]
fn the_exported_graph_has_the_critical_path_of_paths() {
    let folder = Folder::new();
    let input = folder.file("figure-4.json", FIGURE_4);
    let told = longpole(&["export", &input, "-f", "dot"]);
    let paths = longpole(&["paths", &input, "--json"]);
    let paths: serde_json::Value = serde_json::from_str(paths.works()).expect("JSON");
    let us = paths["length_ns"].as_f64().expect("a length") / 1e3;
    assert!(told.works().contains(&format!("{us:.1} µs down to")), "{us}: {}", told.stdout);
}
