//! Whatever happens during a recording, the recorded program is not harmed.

mod killed;
mod killed_with_probes;
mod probes_that_would_end;
mod process_events;
mod soak;
mod tracers;
mod untouched;
mod unusual_exits;
