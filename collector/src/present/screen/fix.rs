//! FIX: changes, and what they gain.

use crate::cpu_words::cpus;
use crate::present::words::edit_words::{About, words};
use crate::present::words::short::short;
use engine::experiment::Edit;
use engine::limit::Fix;
use engine::report::Cpus;

/// Gains of several runs that differ by more than this are shown as a band.
const BAND: f64 = 0.05;

/// Name of the function that a change is about; empty if none.
pub(super) fn name_of(fix: &Fix) -> String {
    fix.function.as_deref().map(short).unwrap_or_default()
}

/// The last part of a name: `update_ledger` of `rust_locks::update_ledger`.
pub(super) fn last_part(name: &str) -> &str {
    name.rsplit("::").next().filter(|last| !last.starts_with('{')).unwrap_or(name)
}

pub(super) fn what(fix: &Fix, function: &str, now: Cpus) -> String {
    words(&fix.edit, About { function, lock: "the lock", now })
}

/// The gain as text: `-49 ±1 %`, or `-2 to -52 %` where runs of one program differ much, or `up to -49 %` if the gain
/// is only a bound.
pub(super) fn gain(fix: &Fix) -> String {
    let (low, high) = fix.band;
    if matches!(fix.edit, Edit::OwnLines { .. } | Edit::LargerTasks { .. }) {
        // Samples find the waits, or the kernel's work, themselves. What else takes longer because of them is not known.
        format!("{} % or more", minus(fix.runs.1))
    } else if fix.edit.is_at_best() {
        format!("up to {} %", minus(fix.runs.1))
    } else if fix.runs.1 - fix.runs.0 > BAND {
        format!("{:>4} to {} %", minus(low), minus(high))
    } else {
        let (least, most) = (fix.gain - low, high - fix.gain);
        let apart = (100.0 * least.max(most)).round();
        let apart = if apart >= 1.0 { format!(" \u{b1}{apart:.0}") } else { String::new() };
        format!("{:>4}{apart} %", minus(fix.gain))
    }
}

/// A fix's gain on the largest CPU count: `(-68 % on 16 CPUs)`.
pub(super) fn at_largest(fix: &Fix, largest: Option<Cpus>) -> Option<String> {
    Some(format!("({} % on {})", minus(fix.gain_at_largest?), cpus(largest?)))
}

pub(super) fn minus(gain: f64) -> String {
    format!("{:+.0}", 0.0 - (gain * 100.0).round())
}
