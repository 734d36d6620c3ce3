//! Rules that a recording must keep, for CI: read from TOML ([`Rules::parse`]) and compared with a report
//! ([`Rules::outcomes`]). Their grammar is in docs/guide.md.

mod judge;
mod measure;
mod parse;

pub use judge::{RuleOutcome, Verdict};
pub use measure::{Limit, Measure, Rule, Unit};
pub use parse::{Rules, RulesError};
