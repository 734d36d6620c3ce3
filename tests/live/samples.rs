//! Tests of samples: their stacks, and the results that are computed from them.

mod against_perf;
mod chosen;
mod known_shares;
mod slow_parser;
mod stacks;
mod support;
mod with_probes;
