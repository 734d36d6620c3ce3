//! The zoo: programs that longpole was not tuned for, recorded as a user would, and longpole's answers
//! compared with the truth. `./x zoo` runs all of them, the live tests some.

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
