//! `chrome` and `firefox`: the requirements of their documentation, and sums.

use super::{CPUS, RECORDINGS, export, recording, tools};
use crate::command_line::{FIGURE_4, Folder};

#[test]
fn chrome_and_firefox_exports_are_valid_and_have_the_report_s_numbers() {
    if !tools::has("python3", "--version") {
        longpole_tests::skip!("there is no python3");
    }
    let folder = Folder::new();
    let by_hand = folder.file("figure-4.json", FIGURE_4);
    let kept = RECORDINGS.map(|name| recording(name).display().to_string());
    for format in ["chrome", "firefox"] {
        for input in kept.iter().chain([&by_hand]) {
            let (trace, report) = export(&folder, input, format, &["--cpus", CPUS]);
            let script = format!("read_{format}.py");
            let told = tools::checked(std::path::Path::new("python3"), &script, &[&trace, &report]);
            assert!(told.starts_with("ok"), "{input}: {told}");
        }
    }
}
