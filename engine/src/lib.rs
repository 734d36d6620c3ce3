//! longpole's pure analysis. The modules follow the data. Recorded [`event`]s become a [`timeline`] (what happened), and that
//! becomes a [`program`] (what the threads do, with scheduling removed). Its [`schedule`] on unlimited processors gives the
//! extended [`critical_path`] for any number of CPUs; a [`report`] holds the answers. On other machines it gives a prediction
//! ([`predict`]), with changes an [`experiment`]; the experiments that gain most show what limits ([`limit`]). The activity
//! [`graph`] (slack, the longest paths), [`parallelism`], [`what_if`] and [`compare`] use the same program, and [`metrics`]
//! shows their results side by side. A [`view`] lists what happened, for other tools. With the feature `synth`, for tests and
//! benchmarks only, `synth` makes programs and recordings with known answers.
//!
//! What limits a program on four CPUs (whole program: `examples/limits.rs`; how to get a program from a recording:
//! [`timeline::build`], then [`translation::from_timeline`]):
//!
//! ```
//! use engine::{limit::limits, predict::Model, program::json, report::Cpus};
//!
//! let text = r#"{"format":"longpole-program","version":1,"threads":[
//!     {"name":"T1","ops":[["exec","a",1000],["signal","X"],["exec","b",5000]]},
//!     {"name":"T2","ops":[["wait","X"],["exec","c",2000]]}]}"#;
//! let program = json::read(text)?;
//! let four = Cpus::count(4).expect("more than none");
//! let found = limits(&program, &[four], &Model::default());
//! assert_eq!(found.at[0].time_ns, 6000.0);
//! # Ok::<(), engine::program::ProgramError>(())
//! ```
//!
//! No I/O, clock, thread or unsafe code in here; the same input gives the same output; bad data gives a value
//! and findings, never a panic.

#![forbid(unsafe_code)]

pub mod attribution;
pub mod compare;
mod cpus;
pub mod critical_path;
pub mod event;
pub mod experiment;
mod finding;
pub mod glob;
pub mod graph;
pub mod hosts;
pub mod json;
pub mod limit;
pub mod metrics;
mod numbers;
pub mod parallelism;
mod percentile;
pub mod predict;
pub mod program;
pub mod report;
pub mod requests;
pub mod schedule;
#[cfg(any(test, feature = "synth"))]
pub mod synth;
pub mod time;
pub mod timeline;
pub mod translation;
pub mod view;
pub mod what_if;
mod words;

#[cfg(test)]
extern crate self as engine;
#[cfg(test)]
#[path = "../tests/mod.rs"]
mod tests;
