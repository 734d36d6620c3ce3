//! What is said of a program that was made from a recording.

use crate::event::FunctionId;
use crate::report::{Finding, Trust};
use crate::timeline::Timeline;

/// What probe hits took of the time on CPUs.
pub(super) struct ProbeCost {
    pub(super) probe_ns: u64,
    /// Running time of all threads, with that.
    pub(super) ran_ns: u64,
}

/// All but what the plan has to say.
pub(super) fn all(timeline: &Timeline, cost: &ProbeCost, shortened: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |kind: &str, text: String| findings.push(Finding { kind: kind.to_owned(), text });
    let named = |numbers: &[FunctionId]| {
        let named = timeline.functions.iter().filter(|fact| numbers.binary_search(&fact.id).is_ok());
        let first = named.take(5).map(|fact| fact.name.as_str()).collect::<Vec<_>>();
        let more = numbers.len().saturating_sub(first.len());
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{others}", first.join(", "))
    };
    if !timeline.folded.is_empty() {
        say(
            "folded",
            format!(
                "called too often, so that probes were taken off and later calls count for the callers: {}",
                named(&timeline.folded)
            ),
        );
    }
    if !timeline.asked_off.is_empty() {
        say(
            "asked_off",
            format!(
                "probes were taken off on request; calls meanwhile count for the callers: {}",
                named(&timeline.asked_off)
            ),
        );
    }
    if cost.probe_ns > 0 {
        let share = 100.0 * cost.probe_ns as f64 / cost.ran_ns.max(1) as f64;
        say(
            "probe_cost",
            format!(
                "{:.3} ms of probe hits ({share:.1} % of the time on CPUs) are taken out of the compute time, as a hit was measured on longpole itself: in the program it may have cost more",
                cost.probe_ns as f64 / 1e6
            ),
        );
    }
    let counts = &timeline.counts;
    if counts.unmatched > 0 {
        let all = counts.unmatched.saturating_add(counts.wakes);
        say(
            "unmatched",
            format!(
                "{} of {all} waits ended without a recorded wake-up and count as waits of their measured length",
                counts.unmatched
            ),
        );
    }
    if shortened {
        say("too_long", "lengths add up to more than 106 days and were cut there".to_owned());
    }
    findings
}

/// Objects stay as recorded, since deciding them anew does not come to an end; who would wait for whom.
pub(super) fn simulated_deadlock(text: String) -> Finding {
    let text = text.split_once("): ").map_or(text.as_str(), |(_, who)| who);
    Finding {
        kind: "simulated_deadlock".to_owned(),
        text: format!(
            "with its locks decided anew the program ends in a deadlock that did not happen in reality, so that those stay as recorded: {text}"
        ),
    }
}

/// How far the recording can be trusted.
pub(super) fn trust(timeline: &Timeline) -> Trust {
    let counts = &timeline.counts;
    Trust {
        events: counts.events,
        wakes: counts.wakes,
        lost: counts.lost,
        unmatched: counts.unmatched,
        unknown_ns: counts.unknown.0,
        censored: counts.censored,
        spurious: counts.spurious,
    }
}
