//! Live tests of the kernel programs on small targets whose events are known by construction. They need root (or
//! the capabilities), a kernel with BPF and a C compiler; elsewhere each says that it is skipped.

mod cost;
mod detach;
mod function;
mod life;
mod loss;
mod sched;
mod support;
