//! `speedscope`, held against the schema that speedscope publishes.

use super::{CPUS, RECORDINGS, export, recording, tools};
use crate::command_line::{FIGURE_4, Folder};

#[test]
fn profiles_fit_the_schema_and_have_the_numbers_of_a_report() {
    let (python, schema) = match (tools::python(), tools::speedscope_schema()) {
        (Ok(python), Ok(schema)) => (python, schema),
        (Err(reason), _) | (_, Err(reason)) => longpole_tests::skip!("{reason}"),
    };
    let schema = schema.to_str().expect("UTF-8");
    let folder = Folder::new();
    let by_hand = folder.file("figure-4.json", FIGURE_4);
    let kept = RECORDINGS.map(|name| recording(name).display().to_string());
    for input in kept.iter().chain([&by_hand]) {
        let (profile, report) = export(&folder, input, "speedscope", &["--cpus", CPUS]);
        let told = tools::checked(&python, "read_speedscope.py", &[&profile, &report, schema]);
        assert!(told.starts_with("ok"), "{input}: {told}");
    }
}
