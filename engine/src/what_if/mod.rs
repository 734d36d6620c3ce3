//! What if: a program with a part of it made faster, run again on every CPU count (1994, near-critical paths, section
//! VI; the 2001 paper's future work). Also the gain that the extended critical path promised, the headroom of a
//! function (how much faster it can get before another one leads), and the gain of every function.

mod headroom;
mod outlook;
mod rank;
mod result;
mod without;

pub use headroom::{Curve, CurvePoint, Takeover, headroom};
pub use rank::{FACTORS, RankChange, RankRow, Ranker, Ranking, rank};
pub use result::{WhatIf, WhatIfError, WhatIfRow, what_if};
pub use without::Without;
