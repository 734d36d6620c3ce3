//! The zoo: programs for which longpole was not tuned, recorded as a user would record them. longpole's answers are
//! compared with the truth. `./x zoo` runs all programs; the live tests run some of them.

mod answers;
mod entries;
mod entry;
mod files;
mod judge;
mod keep;
mod runs;

pub use entries::ENTRIES;
pub use entry::{Entry, Mode, Source, Truth, missing};
pub use files::prepare;
pub use judge::{Bounds, Cell, Score, What, failed, judge};
pub use keep::Keep;
pub use runs::{Ending, Figures};
