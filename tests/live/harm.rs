//! Tests that the recorded program is not harmed, whatever happens during a recording.

mod killed;
mod killed_with_probes;
mod probes_that_would_end;
mod process_events;
mod soak;
mod tracers;
mod untouched;
mod unusual_exits;
