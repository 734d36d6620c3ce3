//! Samples: which stacks they have and what is made of them.

mod against_perf;
mod chosen;
mod known_shares;
mod slow_parser;
mod stacks;
mod support;
mod with_probes;
