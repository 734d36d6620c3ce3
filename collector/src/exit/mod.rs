//! How a command ends: with its own exit code, or with an error of two lines.

mod error;
mod outcome;
mod say;

pub use error::{Code, UserError};
pub use outcome::Outcome;
pub use say::say;
