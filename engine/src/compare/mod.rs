//! Two programs side by side: recordings of the same program, before and after a change.

mod noise;
mod per_request;
mod result;
mod served;
mod spread;
#[cfg(test)]
mod tests;
mod unlike;

pub use noise::{Noise, noise};
pub use per_request::{PerRequest, Server, per_request};
pub use result::{BeforeAfter, Comparison, CurveRow, ItemRow, compare, compare_all};
pub use served::{Measured, Served};
pub use unlike::{Unlike, other_load, other_programs, unlike};
