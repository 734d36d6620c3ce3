//! The kernel programs and the running kernel: its structs, the object file, the verifier, tracepoints and shared maps.

mod attach;
mod btf;
mod filter;
mod layout;
mod loading;
mod object;
mod shared_map;

pub use layout::check_kernel;
pub use object::{check_programs, has_programs};

pub(crate) use attach::{
    Link, attach_kernel, attach_network, attach_tracepoint, close_together, kernel_programs, program,
};
pub(crate) use layout::KernelLayout;
pub(crate) use loading::{function_program, load_together, panicked};
pub(crate) use object::object;
pub(crate) use shared_map::{Shared, SharedWords};
