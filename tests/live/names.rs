//! What functions are called.

mod at_the_time;
mod functions;
mod jit_code;
