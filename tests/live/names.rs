//! What functions are called.

mod functions;
mod jit_code;
