//! Rules that a recording must keep, for CI: read from TOML ([`Rules::parse`]) and compared with a report
//! ([`Rules::outcomes`]). Their grammar is in docs/guide.md.

mod measure;
mod outcome;
mod parse;

pub use measure::{Limit, Measure, Rule, Unit};
pub use outcome::{RuleOutcome, Verdict};
pub use parse::{Rules, RulesError};
