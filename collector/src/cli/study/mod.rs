//! Commands that study a program further: `slack`, `parallelism`, `compare-metrics`, `paths`, `what-if`, `diff` and
//! `check`. Their arguments, and what they have in common.

mod args;
mod names;
mod value;

pub use args::{
    Analyzed, Changes, CheckArguments, CompareMetricsArguments, DiffArguments, ParallelismArguments,
    PartArguments, PathsArguments, Scheduling, SlackArguments, WhatIfArguments,
};
pub use names::{functions, functions_of_all, lock, semaphore};
pub use value::{Count, Threads, Threshold};
