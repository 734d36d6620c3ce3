//! Whatever happens, the recorded program is none the worse for it.

mod killed;
mod probes_that_would_end;
mod process_events;
mod soak;
mod tracers;
mod unusual_exits;
