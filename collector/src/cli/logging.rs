//! The log: errors and warnings, and more if `LONGPOLE_LOG` asks for it. It goes to stderr; during a live screen, after it.
//! Warnings of the kernel programs are in it, too.

use std::io::Write;

use env_logger::{Builder, Target};

/// Sets up logging: reads the variable `LONGPOLE_LOG` (a filter such as `debug` or `collector=trace,warn`). Without it
/// only errors and warnings are shown.
pub fn init() {
    let wanted = std::env::var("LONGPOLE_LOG").ok().filter(|text| !text.is_empty());
    // aya warns about each feature that it tries without success; longpole's own errors explain what that means for the
    // user.
    let filter = wanted.as_deref().unwrap_or("warn,aya=error,aya_obj=error");
    let mut log = Builder::new();
    log.parse_filters(filter).target(Target::Pipe(Box::new(crate::tui::LogWriter)));
    log.format(|out, record| writeln!(out, "{} {}", record.level(), record.args()));
    // If a logger is already set (in tests), it stays.
    let _ = log.try_init();
}
