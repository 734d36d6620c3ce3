//! Golden files in tests/data/SCENARIO/. LONGPOLE_BLESS=1 rewrites them, and a person then reads the difference.

use std::path::{Path, PathBuf};

/// The folder tests/data.
pub fn data_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

/// Compares `actual` with the golden file at `path`, which is absolute or relative to tests/data. If `LONGPOLE_BLESS`
/// is set, writes that file instead.
pub fn check_golden(path: impl AsRef<Path>, actual: &str) {
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
            "{}, line {}:\n  golden: {}\n  now:    {}\n(LONGPOLE_BLESS=1 accepts the new text)\n\n{actual}",
            file.display(),
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
