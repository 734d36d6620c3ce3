//! The log: errors and warnings, more if `LONGPOLE_LOG` asks for it, always to stderr (once the live screen is gone).
//! Messages of the `log` facade arrive here, too: the kernel programs' own warnings come that way.

use tracing_subscriber::EnvFilter;

/// Reads `LONGPOLE_LOG` (a filter such as `debug` or `collector=trace,warn`). Without it only errors and
/// warnings are shown.
pub fn init() {
    let filter = match std::env::var("LONGPOLE_LOG") {
        Ok(text) if !text.is_empty() => EnvFilter::builder().parse_lossy(text),
        // aya warns of every feature that it tries in vain; what that means for the user is our own error.
        _ => EnvFilter::new("warn,aya=error,aya_obj=error"),
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| crate::tui::LogWriter)
        .with_ansi(crate::present::style::for_stderr().colour)
        .with_target(false);
    // A second call (tests) leaves the first subscriber in place.
    let _ = subscriber.try_init();
}
