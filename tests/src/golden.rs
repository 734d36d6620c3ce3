//! Golden files: tests/data/SCENARIO/, rewritten with LONGPOLE_BLESS=1 and then looked at by a person.

use std::path::{Path, PathBuf};

/// tests/data.
pub fn data_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// Compares `actual` with the golden file at `path` under tests/data; with `LONGPOLE_BLESS` set, writes that file instead.
pub fn check_golden(path: &str, actual: &str) {
    let file = data_folder().join(path);
    if std::env::var_os("LONGPOLE_BLESS").is_some() {
        std::fs::write(&file, actual).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return;
    }
    let expected = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; LONGPOLE_BLESS=1 writes it", file.display()));
    if expected != actual {
        let line = expected.lines().zip(actual.lines()).position(|(old, new)| old != new);
        let line = line.unwrap_or_else(|| expected.lines().count().min(actual.lines().count()));
        panic!(
            "tests/data/{path}, line {}:\n  golden: {}\n  now:    {}\n(LONGPOLE_BLESS=1 accepts the new text)\n\n{actual}",
            line + 1,
            expected.lines().nth(line).unwrap_or("(end)"),
            actual.lines().nth(line).unwrap_or("(end)"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::check_golden;

    #[test]
    #[should_panic(expected = "line 1:\n  golden: # Golden scenarios")]
    fn a_difference_from_a_golden_file_is_shown_with_its_line() {
        if std::env::var_os("LONGPOLE_BLESS").is_some() {
            panic!("line 1:\n  golden: # Golden scenarios (not compared while blessing)");
        }
        check_golden("README.md", "something else\n");
    }
}
