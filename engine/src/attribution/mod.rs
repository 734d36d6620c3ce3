//! Divides compute time by samples, which show more functions than probes: the functions below the innermost probed one, or
//! all functions where nothing is probed.
//!
//! Results of probes stay exact: the time below each probed function, and the weights on the critical path. Only the *self*
//! time of the innermost probed function is divided, in proportion to samples:
//!
//! - **Strata.** A proportion is only valid for time like that in which the samples were taken. So compute time is divided
//!   into strata of one thread, one innermost probed function and one context: the operations before and after the run, and
//!   the lock held. Each is long enough that some samples are expected in it. A long segment is one stratum or several; short
//!   ones are joined with the next ones of the same kind. Time that does not fill a stratum is joined by thread and function,
//!   then by function. What is still too short stays undivided and is reported. Strata are formed by lengths, which are
//!   exact, never by where samples fell. Most short segments have no sample, and their time would go to the functions of the
//!   long ones.
//! - **Weights.** Each stratum's Σ weight · length is exact and is divided by counts as integers. So the sum over all rows is
//!   the same with and without samples, for every number of CPUs.
//! - **±.** Within a stratum the count of a function is binomial. With n samples, of which the share p is in the function,
//!   and a stratum worth W, the variance is W²·p(1−p)/(n−1) (unbiased). Strata are independent of each other. The variance
//!   counts one more sample than there are, so that a function with a single sample is not reported as certain. Rows show the
//!   half-width of the 95 % interval.
//! - A place on a sample's stack that is also open as a probed function is not counted again, whether it lies above or below.
//!   A function counts once even if it is on the stack several times.

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
    /// Attributes compute time to rows of this kind. The program must have passed [`Program::check`].
    pub fn of(program: &Program, grouping: Grouping) -> Attribution {
        let keys = Keys::of(program, grouping);
        let strata = Strata::of(program, &keys);
        Attribution { keys, strata }
    }

    /// Makes only the rows, without dividing any time among them.
    pub(crate) fn keys_only(program: &Program, grouping: Grouping) -> Attribution {
        Attribution { keys: Keys::of(program, grouping), strata: Strata::default() }
    }
}
