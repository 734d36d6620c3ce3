//! Tests that record running programs. The tests need root, a kernel with BPF, and compilers. Where one of these is
//! missing, tests are skipped and say so.

mod attaching;
mod cost;
mod documents;
mod goroutines;
mod harm;
mod hosts;
mod kernel;
mod launching;
mod limit;
mod locks;
mod loss;
mod names;
mod otel;
mod parallelism;
mod predict;
mod requests;
mod samples;
mod screen;
mod served;
mod usdt;
mod waits;
mod watching;
mod workloads;
mod zoo;
