//! What functions are called.

mod functions;
mod made_code;
