//! Hostile names.

use crate::command_line::{Folder, longpole};
use std::io::Read;

/// A program whose names are scripts, formulas, line ends and characters that are not allowed in texts.
pub(crate) fn hostile(folder: &Folder) -> String {
    let names = [
        "</script><script>alert(1)</script>",
        "=HYPERLINK(\"http://x\")",
        "a;b\nc\r\n\td",
        "\u{1b}[31m\u{0}\u{b}\u{ffff}\u{202e}\u{2028}",
        "\"quotes\", 'and' \\ back\\slashes",
        "+1-1@x",
        "&amp;<![CDATA[]]>",
    ];
    let threads: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let work = (1_000 + number) * 1_000;
            serde_json::json!({"name": name, "ops": [["call", name], ["lock", name], ["exec", format!("{name} f"), work],
                ["unlock", name], ["io", 500, name], ["ret"]]})
        })
        .collect();
    let program = serde_json::json!({"format": "longpole-program", "version": 1, "threads": threads});
    folder.file("hostile.json", program.to_string())
}

#[test]
fn hostile_names_stay_names_in_every_export_format() {
    let folder = Folder::new();
    let input = hostile(&folder);
    for format in ["perfetto", "firefox", "chrome", "dot", "pprof", "speedscope", "folded", "svg"] {
        let out = folder.path(format);
        let run = longpole(&["export", &input, "-f", format, "-o", &out]);
        assert_eq!(run.code, 0, "{format}: {}", run.stderr);
        let bytes = std::fs::read(&out).expect("written");
        match format {
            "svg" => {
                let text = String::from_utf8(bytes).expect("UTF-8");
                let svg = roxmltree::Document::parse(&text).expect("XML");
                let known = ["svg", "title", "rect", "text", "g"];
                let elements = svg.descendants().filter(|node| node.is_element());
                for element in elements {
                    assert!(known.contains(&element.tag_name().name()), "{element:?}");
                    assert!(!element.attributes().any(|a| a.name().starts_with("on") || a.name() == "href"));
                }
                assert!(text.contains("&lt;/script&gt;"));
            }
            "folded" => {
                let text = String::from_utf8(bytes).expect("UTF-8");
                for line in text.lines() {
                    let (stack, ns) = line.rsplit_once(' ').expect("a number");
                    assert!(ns.parse::<u64>().is_ok(), "{line:?}");
                    assert!(!stack.chars().any(char::is_control), "{line:?}");
                }
            }
            "speedscope" => {
                let json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
                let frames = json["shared"]["frames"].as_array().expect("frames");
                assert!(frames.iter().any(|frame| frame["name"] == "</script><script>alert(1)</script> f"));
            }
            "firefox" | "chrome" => {
                let json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
                assert!(has(&json, "</script><script>alert(1)</script> f"), "{format}: a name stays whole");
            }
            "dot" => {
                let text = String::from_utf8(bytes).expect("UTF-8");
                assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            }
            "perfetto" => {
                // Texts are as long as their lengths say, so the names are in there as they are.
                let name = b"</script><script>alert(1)</script> f";
                assert!(bytes.windows(name.len()).any(|text| text == name), "a name stays whole");
                assert_eq!(bytes.first(), Some(&10), "a packet");
            }
            "pprof" => {
                let mut text = Vec::new();
                let read = flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text);
                assert!(read.expect("gzip") > 0);
                let name = b"</script><script>alert(1)</script> f";
                assert!(text.windows(name.len()).any(|text| text == name), "a name stays whole");
            }
            _ => panic!("{format} is not checked"),
        }
    }
}

/// Whether a string of the JSON is this one.
fn has(json: &serde_json::Value, text: &str) -> bool {
    match json {
        serde_json::Value::String(string) => string == text,
        serde_json::Value::Array(all) => all.iter().any(|value| has(value, text)),
        serde_json::Value::Object(all) => all.values().any(|value| has(value, text)),
        _ => false,
    }
}

#[test]
fn an_export_is_not_replaced_unasked_and_a_full_disk_is_an_error() {
    let folder = Folder::new();
    let input = hostile(&folder);
    let out = folder.path("out.svg");
    longpole(&["export", &input, "-f", "svg", "-o", &out]).works();
    longpole(&["export", &input, "-f", "svg", "-o", &out]).fails(1, "the file exists", "--force");
    longpole(&["export", &input, "-f", "svg", "-o", &out, "--force"]).works();
    longpole(&["export", &input, "-f", "svg", "-o", "/dev/null"]).works();
    if std::path::Path::new("/dev/full").exists() {
        longpole(&["export", &input, "-f", "svg", "-o", "/dev/full"]).fails(
            1,
            "/dev/full",
            "free some space",
        );
    }
}

/// An empty recording and a cut one can be exported.
#[test]
fn cut_and_empty_recordings_can_be_exported() {
    let folder = Folder::new();
    let whole = std::fs::read(super::recording("store")).expect("read");
    for (name, length) in [("head", 4096), ("half", whole.len() / 2)] {
        let input = folder.file(name, &whole[..length.min(whole.len())]);
        let tables = ["csv", "ndjson", "parquet"].map(|format| [format, "--table", "intervals"]);
        let others = ["perfetto", "firefox", "chrome", "dot", "pprof", "speedscope", "folded", "svg"];
        let others = others.map(|format| vec![format]);
        for options in tables.iter().map(|options| options.to_vec()).chain(others) {
            let format = options[0];
            let run = longpole(&[&["export", &input, "-o", "/dev/null", "-f"], &options[..]].concat());
            assert_eq!(run.code, 0, "{name} as {format}: {}", run.stderr);
        }
    }
}

/// A formula in a name becomes a text in the table, and each name is one cell.
#[test]
fn a_formula_as_a_name_becomes_text_in_tables() {
    let folder = Folder::new();
    let input = hostile(&folder);
    let csv = longpole(&["export", &input, "-f", "csv", "--table", "functions", "--cpus", "2"]);
    assert_eq!(csv.code, 0, "{}", csv.stderr);
    assert!(csv.stdout.contains("\"'=HYPERLINK(\"\"http://x\"\")"), "{}", csv.stdout);
    assert!(!csv.stdout.chars().any(|c| c.is_control() && c != '\n'), "{:?}", csv.stdout);
    let rows = csv.stdout.lines().count();
    let ndjson = longpole(&["export", &input, "-f", "ndjson", "--table", "functions", "--cpus", "2"]);
    let names: Vec<String> = ndjson
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|row| row["function"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(names.len() + 1, rows, "as many rows in both");
    assert!(names.iter().any(|name| name == "a;b\nc\r\n\td f"), "{names:?}");
}
