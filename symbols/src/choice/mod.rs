//! Decides which functions of a binary get probes, and which programs must not get any.

mod choose;
mod moves_code;
mod named_functions;
mod own_files;
mod protecting_calls;
mod proven;
mod skip_reason;
mod usdt_pair;

pub use choose::{Choice, ChosenFunction, Selection, choose};
pub use moves_code::MovesCode;
pub use named_functions::Unclear;
pub use skip_reason::SkipReason;
pub use usdt_pair::{MissingPair, NoUsdtPair, PairPlaces, UsdtPair};

pub(crate) use moves_code::{library_moves_code, moves_code};
