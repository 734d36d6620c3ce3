//! Whatever happens, the recorded program is none the worse for it.

mod killed;
mod probes_that_would_end;
mod soak;
mod things_that_happen;
mod unusual_exits;
