//! The commands that study a program further: `slack`, `parallelism`, `compare-metrics`, `paths`, `what-if`, `diff` and
//! `check`. Arguments, and what they have in common.

mod args;
mod check;
mod names;

pub use args::{
    CheckArguments, CompareMetricsArguments, DiffArguments, ParallelismArguments, PathsArguments,
    SlackArguments, WhatIfArguments,
};
pub use check::{check, compare_metrics, diff, parallelism, paths, slack, what_if};
pub use names::{functions, functions_of_both, lock};
