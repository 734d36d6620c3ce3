//! Which functions get compute time that samples resolve further than probes: the functions below the
//! innermost probed one, or everything where nothing is probed.
//!
//! What the probes say stays exact: which time is below which probed function, and what lies on the critical path with
//! which weight. Only the *self* time of the innermost probed function is divided, in proportion to samples:
//!
//! - **Strata.** A proportion is only valid for time that is like the time the samples came from. So compute
//!   time is divided into strata of one thread, one innermost probed function and one context: the operations
//!   before and after the run, and the lock held. Each is long enough that some samples are expected in it. A
//!   long segment is one stratum or several; short ones are joined with the next ones of the same kind. Time
//!   that does not fill a stratum is joined by thread and function, then by function. What is still too short
//!   stays undivided and is reported. Strata are formed by lengths, which are exact, and never by where
//!   samples fell: most short segments have no sample, and their time would go to the functions of the long
//!   ones.
//! - **Weights.** Each stratum's Σ weight · length is exact and is divided by counts as integers. So the sum
//!   over all rows is the same with and without samples, for every number of CPUs.
//! - **±.** Within a stratum the count of a function is binomial: with n samples of which a share p is in it
//!   and a stratum worth W, the variance is W²·p(1−p)/(n−1) (unbiased), and the strata are independent of
//!   each other. The variance counts one more sample than there are, so that a function with a single sample
//!   is not reported as certain. Rows show the half-width of the 95 % interval.
//! - A place on a sample's stack that is also open as a probed function is not counted again, whether it lies above or
//!   below; a function counts once however often it is on the stack.

mod callers;
mod keys;
mod owner_table;
mod owners;
mod sampled_calls;
mod sampled_functions;
mod shares;
mod strata;

pub use callers::{Neighbours, neighbours};
pub use keys::Grouping;
pub(crate) use keys::{Keys, NO_KEY};
pub use owner_table::Owners;
pub use owners::{UsedBy, attributed_to_users, used_by};
pub use sampled_calls::with_sampled_calls;
pub use sampled_functions::{SampledFunction, sampled_functions};
pub(crate) use shares::{Errors, Share, divide, divide_sampled, part};
pub(crate) use strata::{NO_STRATUM, Strata, View};

use crate::program::Program;

/// How compute time of a program is attributed.
#[derive(Debug)]
pub struct Attribution {
    pub(crate) keys: Keys,
    pub(crate) strata: Strata,
}

impl Attribution {
    /// To rows of this kind. The program has passed [`Program::check`].
    pub fn of(program: &Program, grouping: Grouping) -> Attribution {
        let keys = Keys::of(program, grouping);
        let strata = Strata::of(program, &keys);
        Attribution { keys, strata }
    }

    /// The rows alone: no time is divided.
    pub(crate) fn keys_only(program: &Program, grouping: Grouping) -> Attribution {
        Attribution { keys: Keys::of(program, grouping), strata: Strata::default() }
    }
}
