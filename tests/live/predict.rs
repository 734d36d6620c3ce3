//! Tests of reports and predictions for programs with a known answer.

mod critical_path;
mod one_cpu;
mod papers;
mod quota;
mod validate;
