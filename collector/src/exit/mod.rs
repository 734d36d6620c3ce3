//! How a command ends: as asked, or with an error of two lines and an exit code.

mod error;
mod outcome;
mod say;

pub use error::{Code, UserError};
pub use outcome::Outcome;
pub use say::say;
