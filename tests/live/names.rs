//! Tests of the names of functions.

mod at_the_time;
mod functions;
mod jit_code;
