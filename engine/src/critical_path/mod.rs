//! Extended critical path (2001, section 2.3): how much each compute operation and each function adds to the time on P
//! processors, for any P.
//!
//! Let n(t) be the number of executing threads on unlimited processors and s(n) = max(n/P, 1). Then T_P = ∫ s(n(t)) dt,
//! and the weight of an operation is ∂T_P/∂length (one-sided, shortening). The paper computes T_P again for each
//! segment (`oracle`, for tests). Here, one sweep over the forest of deciding points gives the weights of all
//! operations and all P (a method of longpole's own;  derivation in docs/algorithms.md).
//!
//! Where time passes without computing (sleeps, devices), each P has a schedule of its own: [`CostedPath`]. Recordings run on
//! the model of a scheduler, and a weight is the part of an operation on the path of that run: [`RunPaths`].
//!
//! Numbers are exact: P·weight is an `i64`, P·T and P·weight·length are `i128`. They are divided for output only, so the
//! order of summation does not matter.

mod clusters;
mod costed;
mod function_totals;
mod lanes;
#[cfg(any(test, feature = "synth"))]
pub mod oracle;
mod path;
mod pieces;
mod run_paths;
mod stacks;
mod weights;

pub use costed::{CostedPath, WeightedWait, has_waits_by_the_clock};
pub use function_totals::FunctionTotals;
pub use lanes::Scaled;
pub use path::CriticalPath;
pub use run_paths::RunPaths;
pub(crate) use stacks::{CallTree, OwnSum};
pub use weights::{Segment, Weights};
