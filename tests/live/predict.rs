//! What reports and predictions say of programs whose answer is known.

mod critical_path;
mod one_cpu;
mod papers;
mod validate;
