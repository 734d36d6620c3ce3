//! Programs as JSON.

use crate::report::analyse_program;

/// Reads a program, writes it, and analyses it.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(program) = engine::program::json::read(text) else { return };
    let mut written = Vec::new();
    if engine::program::json::write(&program, &mut written).is_ok() {
        let again = String::from_utf8(written).ok().map(|text| engine::program::json::read(&text).is_ok());
        assert_eq!(again, Some(true), "a program that was read is written so that it can be read");
    }
    analyse_program(&program);
}
