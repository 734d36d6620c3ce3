//! Tests of the kernel programs on small targets whose events are known by construction.

mod detach;
mod function;
mod lifecycle;
mod loss;
mod sched;
mod support;
