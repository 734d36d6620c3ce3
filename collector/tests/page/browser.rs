//! Pages in headless Chromium, driven by `view/test/drive.mjs`. Without Chromium, Node.js or the page's packages (`./x view`
//! installs them) these tests are skipped.

use crate::command_line::{FIGURE_4, Folder, longpole};
use crate::exports::{hostile::hostile, recording};
use longpole_tests::skip;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A browser, or why there is none.
pub(crate) fn chromium() -> Result<PathBuf, String> {
    let view = Path::new(env!("CARGO_MANIFEST_DIR")).join("../view");
    if !view.join("node_modules/playwright-core").is_dir() {
        return Err("the page's packages are not installed: ./x view".to_owned());
    }
    let has =
        |program: &str| Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    if !has("node") {
        return Err("there is no node here".to_owned());
    }
    let known = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let own = std::env::var("CHROMIUM").ok();
    let mut all = own.iter().map(String::as_str).chain(known);
    let found = all.find(|program| has(program)).ok_or("there is no Chromium here")?;
    if found.contains('/') {
        return Ok(found.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).map(|folder| folder.join(found)).find(|place| place.exists());
    places.ok_or_else(|| "Chromium is nowhere in PATH".to_owned())
}

/// Drives a page and returns what it shows.
#[track_caller]
pub(crate) fn drive(chromium: &Path, what: &str, arguments: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../view/test/drive.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(what).args(arguments).env("CHROMIUM", chromium);
    let output = command.output().expect("node starts");
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn page(folder: &Folder, input: &str, options: &[&str]) -> String {
    let out = folder.path("page.html");
    let run =
        longpole(&[&["view", input, "-o", &out, "--no-open", "--cpus", "1,2,4,8,inf"], options].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    out
}

macro_rules! chromium {
    () => {
        match chromium() {
            Ok(chromium) => chromium,
            Err(reason) => skip!("{reason}"),
        }
    };
}

#[test]
fn numbers_on_the_page_are_those_of_a_report() {
    let chromium = chromium!();
    let folder = Folder::new();
    for name in ["store", "quicksort", "attached", "timers", "pipeline"] {
        let input = recording(name).to_str().expect("UTF-8").to_owned();
        let report = longpole(&["report", &input, "--json", "--cpus", "1,2,4,8,inf"]);
        let report = folder.file("report.json", report.works());
        let found = drive(&chromium, "numbers", &[&page(&folder, &input, &[]), &report]);
        assert!(found["compared"].as_u64().expect("a count") > 50, "{name}: {found}");
        let shown = longpole(&["report", &input, "--cpus", "1,2,4,8,inf"]);
        let shown = shown.works();
        let sure = found["sure"].as_str().and_then(|text| text.split(',').next()).expect("how sure it is");
        assert!(
            shown.contains(&format!("SURE   {sure}")),
            "{name}: the page is {sure} where the report says {shown}"
        );
    }
}

#[test]
fn the_page_can_be_used_by_mouse_and_link() {
    let chromium = chromium!();
    let folder = Folder::new();
    for name in ["store", "quicksort"] {
        let input = recording(name).to_str().expect("UTF-8").to_owned();
        let found = drive(&chromium, "use", &[&page(&folder, &input, &[])]);
        assert!(found["link"].as_str().expect("a link").contains("tab=what-if"), "{found}");
    }
}

#[test]
fn hostile_names_run_no_script_in_the_page() {
    let chromium = chromium!();
    let folder = Folder::new();
    let found = drive(&chromium, "open", &[&page(&folder, &hostile(&folder), &[])]);
    let names = found["threads"].as_array().expect("names");
    assert!(names.iter().any(|name| name == "</script><script>alert(1)</script>"), "{names:?}");
    // The only script is the page's own.
    assert_eq!(found["scripts"], 1);
}

#[test]
fn the_page_shows_no_thread_and_a_thousand_threads() {
    let chromium = chromium!();
    let folder = Folder::new();
    let whole = std::fs::read(recording("store")).expect("read");
    let threads: Vec<Value> = (0..1_000)
        .map(|thread| serde_json::json!({"name": format!("worker-{thread}"), "ops": [["exec", "f", 1_000 + thread], ["lock", "l"], ["exec", "g", 10], ["unlock", "l"]]}))
        .collect();
    let many =
        serde_json::json!({"format": "longpole-program", "version": 1, "threads": threads}).to_string();
    let nothing = r#"{"format":"longpole-program","version":1,"threads":[]}"#.to_owned();
    for (name, bytes, threads) in [
        ("head", whole[..4096].to_vec(), None),
        ("nothing", nothing.into_bytes(), Some(0)),
        ("many", many.into_bytes(), Some(1_000)),
        ("figure", FIGURE_4.as_bytes().to_vec(), Some(3)),
    ] {
        let input = folder.file(name, bytes);
        let found = drive(&chromium, "open", &[&page(&folder, &input, &[])]);
        let shown = found["threads"].as_array().expect("threads").len();
        assert!(threads.is_none_or(|threads| threads == shown), "{name}: {shown}");
    }
}

#[test]
fn other_recordings_are_points_of_the_page_s_curve() {
    let chromium = chromium!();
    let folder = Folder::new();
    let other = recording("split").to_str().expect("UTF-8").to_owned();
    let input = recording("store").to_str().expect("UTF-8").to_owned();
    let found = drive(&chromium, "points", &[&page(&folder, &input, &["--measured", &other])]);
    assert_eq!(
        (&found["rows"][0]["file"], &found["rows"][1]["file"]),
        (&"store.lp".into(), &"split.lp".into())
    );
    assert_eq!((&found["rows"][1]["cpus"], &found["crosses"]), (&2.into(), &2.into()), "{found}");
    let by_hand = folder.file("program.json", FIGURE_4);
    longpole(&["view", &input, "-o", "-", "--measured", &by_hand]).fails(
        1,
        "no measured times",
        "recordings",
    );
}

/// A click leads to the source line, if the page has it.
#[test]
fn a_click_on_the_page_leads_to_the_source_line() {
    let chromium = chromium!();
    let folder = Folder::new();
    let source = folder.file(
        "program.c",
        "int main(void) {\n  int sum = 0;\n  for (;;) sum += 1; /* here </script> */\n}\n",
    );
    let recording = crate::page::content::sampled_at(&folder, &format!("{source}:3"));
    let found = drive(&chromium, "source", &[&page(&folder, &recording, &["--sources"])]);
    assert_eq!(found["here"], "  for (;;) sum += 1; /* here </script> */", "{found}");
}
