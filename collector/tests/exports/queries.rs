//! The questions of docs/queries.md, asked by DuckDB of the exports of all kept recordings.

use super::{recording, tools};
use crate::command_line::{Folder, longpole};
use std::path::Path;

#[test]
fn questions_about_many_recordings_have_answers() {
    let python = match tools::python() {
        Ok(python) => python,
        Err(reason) => longpole_tests::skip!("{reason}"),
    };
    let folder = Folder::new();
    std::fs::create_dir(folder.path("exports")).expect("made");
    for name in ["store", "split", "pipeline", "forkjoin"] {
        let input = recording(name).display().to_string();
        let out = folder.path(&format!("exports/{name}"));
        longpole(&["export", &input, "-f", "parquet", "-o", &out]).works();
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/queries.md");
    let page = std::fs::read_to_string(page).expect("read");
    let queries: Vec<&str> =
        page.split("```sql\n").skip(1).filter_map(|part| part.split("```").next()).collect();
    assert_eq!(queries.len(), 3);
    let answers: Vec<String> =
        queries.iter().map(|query| tools::checked(&python, "ask.py", &[&folder.path(""), query])).collect();
    let has = |answer: &str, words: &[&str]| {
        answer.lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(has(&answers[0], &["digest_row"]), "{}", answers[0]);
    assert!(has(&answers[1], &["registry.gate"]), "{}", answers[1]);
    let builds = answers[2].lines().filter(|line| line.len() > 40).count();
    assert!(builds >= 3, "{}", answers[2]);
}
