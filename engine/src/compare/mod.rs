//! Two programs side by side: two recordings of the same program, before and after a change.

mod noise;
mod result;

pub use noise::{Noise, noise};
pub use result::{BeforeAfter, Comparison, CurveRow, ItemRow, compare};
