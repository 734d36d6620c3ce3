//! Sentences about locks that are not simulated.

use crate::cell::whole_percent as percent;
use engine::limit::NotSimulated;
use engine::program::{bare_name, is_java_wait};

/// A futex that threads wait for and that may be a lock's.
pub(super) fn of_unrecorded(word: &str, waiting: f64, is_lock: bool, why: NotSimulated) -> String {
    let waits = match waiting {
        waiting if waiting >= 0.95 => format!("{waiting:.1} threads wait"),
        waiting => format!("a thread waits {:.0} % of the time", waiting * 100.0),
    };
    if is_lock && is_java_wait(word) {
        let what = if word.contains("park") { " in LockSupport.park" } else { ", for monitors" };
        return format!("probably a Java lock: {waits} for each other{what}. Which lock is not visible.");
    }
    let were = match why {
        NotSimulated::Lost => "Lock operations were lost",
        NotSimulated::NotRecorded => "Lock operations were not recorded",
        NotSimulated::Contradicted => "Its records contradict each other, so changes of it are not simulated",
    };
    if is_lock {
        let lock = word.strip_prefix("futex ").unwrap_or(word);
        format!("probably lock {lock}: {waits} for it. {were}.")
    } else {
        // A futex word without a name is described by the first function that used it.
        let what = if word.starts_with("first used in ") { "one " } else { "" };
        format!("not known: {waits} for {what}{word}. {were}.")
    }
}

/// How the user can record locks that were not recorded; `None` for locks of runtimes, which cannot be recorded.
pub(super) fn how_to_record(
    word: &str,
    is_lock: bool,
    why: NotSimulated,
    cost: Option<f64>,
) -> Option<String> {
    match why {
        NotSimulated::Lost => {
            let text =
                "Lock operations came faster than longpole read them: a larger --ring-size holds more.";
            return Some(text.to_owned());
        }
        NotSimulated::Contradicted => return None,
        NotSimulated::NotRecorded => {}
    }
    if is_lock && (is_java_wait(word) || bare_name(word) == "GIL") {
        return None;
    }
    Some(match cost.map(|cost| (cost, overhead_for(cost))) {
        Some((_, Some(overhead))) => {
            format!("To record locks, start the program with longpole, or give --overhead {overhead}.")
        }
        Some((cost, None)) if cost.is_finite() => {
            format!(
                "To record locks, start the program with longpole: attaching would cost {}.",
                percent(cost)
            )
        }
        _ => "To record locks, start the program with longpole.".to_owned(),
    })
}

/// The value of `--overhead` with which locks get their probes: their cost and half as much again, since a program may
/// become busier. `None`: the cost is so high that the program would behave differently.
pub(crate) fn overhead_for(cost: f64) -> Option<String> {
    let percent = (cost * 150.0 / 5.0).ceil() * 5.0;
    (0.0..=60.0).contains(&percent).then(|| format!("{percent:.0}%"))
}
