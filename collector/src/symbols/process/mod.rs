//! Names for addresses of running processes. [`Resolver`] is the one place to ask; the other files know one kind of code
//! each.

mod code_map;
mod jit_dump;
mod kernel;
mod made_code;
mod perf_map;
mod resolver;
mod vdso;

pub use kernel::is_kernel;
pub use made_code::{MadeCode, Stamp as MadeStamp, is_dump};
pub use resolver::{Resolved, Resolver};
pub use vdso::copy as vdso_copy;
