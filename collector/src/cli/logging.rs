//! The log: errors and warnings, more if `LONGPOLE_LOG` asks for it, always to stderr (once the live screen is gone).
//! The kernel programs' own warnings come that way, too.

use std::io::Write;

use env_logger::{Builder, Target};

/// Reads `LONGPOLE_LOG` (a filter such as `debug` or `collector=trace,warn`). Without it only errors and
/// warnings are shown.
pub fn init() {
    let wanted = std::env::var("LONGPOLE_LOG").ok().filter(|text| !text.is_empty());
    // aya warns about every feature that it tries without success; what that means for the user is in our own
    // error.
    let filter = wanted.as_deref().unwrap_or("warn,aya=error,aya_obj=error");
    let mut log = Builder::new();
    log.parse_filters(filter).target(Target::Pipe(Box::new(crate::tui::LogWriter)));
    log.format(|out, record| writeln!(out, "{} {}", record.level(), record.args()));
    // A second call (tests) leaves the first one in place.
    let _ = log.try_init();
}
