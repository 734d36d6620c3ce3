//! Keeps log lines while the screen uses the terminal, and prints them when the terminal is restored.

use super::guard;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Largest number of lines that are kept: the newest ones.
const MOST_LINES: usize = 100;

static KEPT: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Writes the log to stderr, or keeps it while the screen has the terminal.
#[derive(Debug)]
pub struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if guard::is_taken() {
            keep(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner), bytes);
            Ok(bytes.len())
        } else {
            io::stderr().write(bytes)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn keep(kept: &mut VecDeque<String>, bytes: &[u8]) {
    if kept.len() >= MOST_LINES {
        kept.pop_front();
    }
    kept.push_back(String::from_utf8_lossy(bytes).into_owned());
}

/// Prints the kept lines.
pub(super) fn show_kept() {
    let kept = std::mem::take(&mut *KEPT.lock().unwrap_or_else(PoisonError::into_inner));
    for line in kept {
        // An error means that stderr is closed.
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_only_the_newest_lines() {
        let mut kept = VecDeque::new();
        for number in 0..250 {
            keep(&mut kept, format!("line {number}\n").as_bytes());
        }
        assert_eq!(kept.len(), MOST_LINES);
        assert_eq!(kept.front().map(String::as_str), Some("line 150\n"));
    }
}
