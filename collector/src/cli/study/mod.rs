//! The commands that study a program further: `slack`, `parallelism`, `compare-metrics`, `paths`, `what-if`, `diff` and
//! `check`. Arguments, and what they have in common.

mod args;
mod names;
mod plan_from_args;

pub use args::{
    CheckArguments, CompareMetricsArguments, DiffArguments, ParallelismArguments, PathsArguments,
    SlackArguments, WhatIfArguments,
};
pub use names::{functions, functions_of_both, lock};
pub use plan_from_args::{check, compare_metrics, diff, parallelism, paths, slack, what_if};
