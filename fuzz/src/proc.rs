//! Texts of /proc: a process chooses its name, its files' names and its command line.

/// Parses a text as each file of /proc that longpole reads.
pub fn read(bytes: &[u8]) {
    capture::fuzzing::proc_text(&String::from_utf8_lossy(bytes));
    capture::fuzzing::proc_bytes(bytes);
}
