//! What if: a program with some of it made faster, run again on every CPU count (1994, near-critical paths,
//! section VI; the 2001 paper's future work). In addition to the predicted times: what the extended critical
//! path promised, how far a function can be made faster before another one takes its place, and what every
//! function would bring.

mod headroom;
mod outlook;
mod rank;
mod result;
mod without;

pub use headroom::{Curve, CurvePoint, Takeover, headroom};
pub use rank::{FACTORS, RankChange, RankRow, Ranker, Ranking, rank};
pub use result::{WhatIf, WhatIfError, WhatIfRow, what_if};
pub use without::Without;
