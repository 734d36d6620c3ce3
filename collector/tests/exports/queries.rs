//! The questions of docs/queries.md, put to DuckDB and DataFusion about the exports of kept recordings.

use super::{recording, tools};
use crate::command_line::{Folder, longpole};
use std::path::Path;

/// The page's code blocks of this kind.
fn blocks<'p>(page: &'p str, kind: &str) -> Vec<&'p str> {
    let start = format!("```{kind}\n");
    page.split(start.as_str()).skip(1).filter_map(|part| part.split("```").next()).collect()
}

#[test]
fn documented_queries_have_the_same_answers_in_duckdb_and_datafusion() {
    let python = match tools::python() {
        Ok(python) => python,
        Err(reason) => longpole_tests::skip!("{reason}"),
    };
    let folder = Folder::new();
    let exports = folder.path("exports");
    std::fs::create_dir(&exports).expect("made");
    for name in ["store", "split", "pipeline", "forkjoin"] {
        let input = recording(name).display().to_string();
        longpole(&["export", &input, "-f", "parquet", "-o", &format!("{exports}/{name}")]).works();
    }
    let ask = |engine: &str, statements: &[&str]| {
        tools::checked(&python, "ask.py", &[&[engine, &folder.path("")], statements].concat())
    };
    // A copy of the recording "store", dated a month earlier.
    std::fs::create_dir(format!("{exports}/before")).expect("made");
    for (table, more) in [
        ("recordings", ", recorded_at_ns - 2592000000000000::bigint as recorded_at_ns"),
        ("functions", ""),
        ("locks", ""),
        ("waits", ""),
    ] {
        let copy = format!(
            "copy (select * replace ('before' as recording{more}) from 'exports/store/{table}.parquet') \
             to 'exports/before/{table}.parquet'"
        );
        ask("duckdb", &[&copy]);
    }

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/queries.md");
    let page = std::fs::read_to_string(page).expect("read");
    let questions = blocks(&page, "sql");
    assert_eq!(questions.len(), 3);
    let answers = |engine: &str| -> Vec<String> {
        let [tables] = blocks(&page, engine)[..] else { panic!("how {engine} finds the tables") };
        let tables: Vec<&str> = tables.split_inclusive(";\n").collect();
        questions.iter().map(|question| ask(engine, &[&tables[..], &[question]].concat())).collect()
    };
    let told = answers("duckdb");
    let has = |answer: &str, words: &[&str]| {
        answer.lines().any(|line| words.iter().all(|word| line.split(' ').any(|part| part == *word)))
    };
    // `parse_row`: a mean over recordings, some of which do not have it. `burn`: no earlier recording has it.
    let line = told[0].lines().find(|line| line.starts_with("parse_row "));
    let line = line.unwrap_or_else(|| panic!("{}", told[0]));
    let [_, before, now] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let (before, now): (f64, f64) = (before.parse().expect("a share"), now.parse().expect("a share"));
    assert!(before > 0.0 && now > before, "{line}");
    assert!(has(&told[0], &["burn", "None"]), "{}", told[0]);
    assert!(has(&told[1], &["registry.gate", "3"]), "{}", told[1]);
    let builds = told[2].lines().filter(|line| line.len() > 40).count();
    assert!(builds >= 3, "{}", told[2]);
    assert_eq!(answers("datafusion"), told);
}
