//! Writes the cost of recording, in a few words and in one sentence with its parts: `overhead 0.7 % (goal 2 %): 1,200
//! hits/s × 0.9 µs + 14,000 events/s × 0.3 µs + collector 2.1 ms/s`.

use crate::cell::{duration, grouped};
use engine::event::Overhead;
use std::cmp::Reverse;

/// Least length of a recording, ns, for which the cost is given as a share: in a shorter one, reading the rings once is
/// most of the cost.
const TELLING_NS: u64 = 100_000_000;

/// The share while the program ran, the goal, and the cost that comes once: `0.7 % (goal 2 %), and 0.08 s once`. For a short
/// recording, times: `3.50 ms in a run of 5.00 ms, and 0.08 s once`.
pub fn cost(cost: &Overhead) -> String {
    let goal = cost.budget().map_or("no goal".to_owned(), |budget| format!("goal {}", percent(budget)));
    let share = match cost.share() {
        _ if cost.wall_ns == 0 => format!("not known ({goal})"),
        _ if is_short(cost) => in_a_run(cost),
        Some(share) if cost.budget().is_some_and(|budget| share > budget) => {
            let inside = cost.share_in_threads().unwrap_or(0.0);
            let own = percent((share - inside).max(0.0));
            format!("{}: {} in the program, {own} longpole's own ({goal})", percent(share), percent(inside))
        }
        share => format!("{} ({goal})", percent(share.unwrap_or(0.0))),
    };
    format!("{share}{}", once(cost).map_or(String::new(), |once| format!(", and {once}")))
}

fn is_short(cost: &Overhead) -> bool {
    cost.base_ns() < TELLING_NS
}

fn in_a_run(cost: &Overhead) -> String {
    let [spent, length] = [cost.spent_ns(), cost.wall_ns].map(|ns| duration(ns as f64));
    format!("{spent} in a run of {length}")
}

/// CPU time spent only once, regardless of the recording's length: `0.08 s once`.
pub fn once(cost: &Overhead) -> Option<String> {
    (cost.once_ns > 0).then(|| format!("{:.2} s once", cost.once_ns as f64 / 1e9))
}

/// The sentence with all parts, without a full stop.
pub fn overhead(cost: &Overhead) -> String {
    let budget = match cost.budget() {
        Some(budget) => format!("goal {}", percent(budget)),
        None => "no goal".to_owned(),
    };
    if cost.wall_ns == 0 {
        return format!("overhead not known ({budget})");
    }
    let mut text = match is_short(cost) {
        true => format!("overhead {}", in_a_run(cost)),
        false => format!("overhead {} ({budget})", percent(cost.share().unwrap_or(0.0))),
    };
    let seconds = cost.wall_ns as f64 / 1e9;
    let mut parts = Vec::new();
    let mut counted = |count: u64, ns: u64, what: &str| {
        if count > 0 {
            let each = duration(ns as f64 / count as f64);
            parts.push(format!("{} {what}/s × {each}", per_second(count, seconds)));
        }
    };
    counted(cost.hits, cost.hit_ns, "hits");
    counted(cost.events, cost.event_ns, "events");
    counted(cost.operations, cost.operation_ns, "operations");
    counted(cost.left_out, cost.left_out_ns, "left out");
    counted(cost.samples, cost.sample_ns, "samples");
    parts.push(format!("collector {}/s", duration(cost.collector_ns as f64 / seconds)));
    text.push_str(&format!(": {}", parts.join(" + ")));
    text.push_str(&once(cost).map_or(String::new(), |once| format!(", and {once}")));
    if let Some(budget) = cost.budget()
        && !is_short(cost)
        && cost.fixed_ns() as f64 > budget * cost.base_ns() as f64
    {
        text.push_str(&too_expensive(cost, budget));
    }
    text
}

/// The parts that alone exceed the budget, apart from probes and samples: as few parts as possible, the most expensive
/// first.
fn too_expensive(cost: &Overhead, budget: f64) -> String {
    let mut parts = [
        (cost.event_ns, "the events"),
        (cost.operation_ns.saturating_add(cost.left_out_ns), "the operations"),
        (cost.collector_ns.saturating_sub(cost.unwinding_ns), "longpole itself"),
    ];
    parts.sort_by_key(|&(ns, _)| Reverse(ns));
    let (mut taken_ns, mut names) = (0_u64, Vec::new());
    for (ns, name) in parts {
        taken_ns = taken_ns.saturating_add(ns);
        names.push(name);
        if taken_ns as f64 > budget * cost.base_ns() as f64 {
            break;
        }
    }
    let verb = if names == ["longpole itself"] { "takes" } else { "take" };
    let names = names.join(", ");
    let names = match names.rsplit_once(", ") {
        Some((first, last)) => format!("{first} and {last}"),
        None => names,
    };
    format!("; {names} {verb} more than the goal, even without probes")
}

fn per_second(count: u64, seconds: f64) -> String {
    let rate = count as f64 / seconds;
    if rate < 9.95 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}

/// A percentage with two significant digits, without trailing zeros.
fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        _ if percent >= 9.95 => format!("{percent:.0} %"),
        _ if percent >= 0.995 => format!("{} %", trimmed(&format!("{percent:.1}"))),
        _ => format!("{} %", trimmed(&format!("{percent:.2}"))),
    }
}

fn trimmed(digits: &str) -> &str {
    digits.trim_end_matches('0').trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Overhead = Overhead {
        budget_ppm: Some(20_000),
        wall_ns: 10_000_000_000,
        target_ns: 20_000_000_000,
        hits: 12_000,
        hit_ns: 10_800_000,
        events: 140_000,
        event_ns: 42_000_000,
        operations: 0,
        operation_ns: 0,
        left_out: 0,
        left_out_ns: 0,
        samples: 0,
        sample_ns: 0,
        once_ns: 0,
        collector_ns: 87_200_000,
        unwinding_ns: 0,
        others_ns: 0,
        hosts: 0,
    };

    #[test]
    fn a_cost_above_the_goal_is_split_into_program_and_longpole() {
        assert_eq!(cost(&COST), "0.7 % (goal 2 %)");
        let dear = Overhead { hit_ns: 210_800_000, collector_ns: 900_000_000, ..COST };
        assert_eq!(cost(&dear), "5.8 %: 1.3 % in the program, 4.5 % longpole's own (goal 2 %)");
    }

    #[test]
    fn samples_are_a_part_of_the_overhead_line() {
        let sampled = Overhead { samples: 9_980, sample_ns: 99_800_000, unwinding_ns: 60_000_000, ..COST };
        let text = overhead(&sampled);
        assert!(text.contains(" + 998 samples/s × 10.0 µs + collector"), "{text}");
        // Samples do not count as events, which cannot be reduced.
        let dear = Overhead { sample_ns: 500_000_000, ..sampled };
        assert!(!overhead(&dear).contains("more than the goal"), "{}", overhead(&dear));
    }

    #[test]
    fn recorded_lock_operations_are_a_part_of_the_overhead_line() {
        let locking = Overhead { operations: 1_400_000, operation_ns: 238_000_000, ..COST };
        let text = overhead(&locking);
        assert!(text.starts_with("overhead 1.9 %"), "{text}");
        assert!(text.contains(" + 140,000 operations/s × 170 ns + collector"), "{text}");
        let alone = Overhead { left_out: 10_000_000, left_out_ns: 31_000_000, ..locking };
        assert!(overhead(&alone).contains(" + 1,000,000 left out/s × 3 ns + "), "{}", overhead(&alone));
        let dear = Overhead { operation_ns: 300_000_000, ..locking };
        let text = overhead(&dear);
        let named =
            "; the operations, longpole itself and the events take more than the goal, even without probes";
        assert!(text.ends_with(named), "{text}");
    }

    /// The text names the expensive part, not always the events.
    #[test]
    fn the_overhead_line_names_the_part_that_exceeds_the_budget() {
        let own = Overhead { collector_ns: 7_000_000_000, event_ns: 8_000_000, ..COST };
        let text = overhead(&own);
        assert!(text.ends_with("; longpole itself takes more than the goal, even without probes"), "{text}");
        let both = Overhead { collector_ns: 300_000_000, event_ns: 350_000_000, ..COST };
        let text = overhead(&both);
        assert!(
            text.ends_with("; the events and longpole itself take more than the goal, even without probes"),
            "{text}"
        );
        let unwinding = Overhead { unwinding_ns: 6_990_000_000, ..own };
        assert!(!overhead(&unwinding).contains("more than the goal"), "{}", overhead(&unwinding));
    }

    #[test]
    fn the_overhead_line_has_the_sum_and_its_parts() {
        assert_eq!(
            overhead(&COST),
            "overhead 0.7 % (goal 2 %): 1,200 hits/s × 900 ns + 14,000 events/s × 300 ns + collector 8.72 ms/s"
        );
    }

    #[test]
    fn the_short_cost_has_the_sum_and_the_goal() {
        assert_eq!(cost(&COST), "0.7 % (goal 2 %)");
        assert_eq!(cost(&Overhead { budget_ppm: None, ..COST }), "0.7 % (no goal)");
        let idle = Overhead { target_ns: 40_000_000, once_ns: 84_000_000, ..COST };
        assert_eq!(cost(&idle), "1.4 % (goal 2 %), and 0.08 s once");
        assert_eq!(cost(&Overhead::default()), "not known (no goal)");
    }

    /// For a command of 5 ms, a share such as "cost 70 %" would mislead.
    #[test]
    fn the_cost_of_a_short_recording_is_a_time_instead_of_a_share() {
        let short =
            Overhead { wall_ns: 5_000_000, target_ns: 2_000_000, once_ns: 84_000_000, ..Overhead::default() };
        let short = Overhead { budget_ppm: Some(20_000), collector_ns: 3_500_000, ..short };
        assert_eq!(cost(&short), "3.50 ms in a run of 5.00 ms, and 0.08 s once");
        assert!(
            overhead(&short).starts_with("overhead 3.50 ms in a run of 5.00 ms: "),
            "{}",
            overhead(&short)
        );
        assert!(!overhead(&short).contains("more than the goal"), "{}", overhead(&short));
    }

    #[test]
    fn parts_of_the_overhead_that_are_zero_are_left_out() {
        let quiet = Overhead { hits: 0, budget_ppm: None, ..COST };
        assert_eq!(
            overhead(&quiet),
            "overhead 0.7 % (no goal): 14,000 events/s × 300 ns + collector 8.72 ms/s"
        );
        assert_eq!(overhead(&Overhead::default()), "overhead not known (no goal)");
        // A program that sleeps all the time must not seem to cost more than the goal.
        let asleep = Overhead { target_ns: 0, hits: 0, events: 0, event_ns: 0, hit_ns: 0, ..COST };
        assert_eq!(overhead(&asleep), "overhead 0.87 % (goal 2 %): collector 8.72 ms/s");
    }

    /// Recording a server that waits for work must not seem to cost several times the server's CPU time.
    #[test]
    fn the_cost_of_an_idle_program_is_a_share_of_one_cpu() {
        let idle = Overhead { target_ns: 40_000_000, once_ns: 250_000_000, ..COST };
        let text = overhead(&idle);
        assert!(text.starts_with("overhead 1.4 % (goal 2 %): 1,200 hits/s"), "{text}");
        assert!(text.ends_with("collector 8.72 ms/s, and 0.25 s once"), "{text}");
        let dear = Overhead { collector_ns: 300_000_000, ..idle };
        assert!(overhead(&dear).ends_with("longpole itself takes more than the goal, even without probes"));
    }

    #[test]
    fn events_that_exceed_the_budget_are_named_in_the_overhead_line() {
        let busy = Overhead { event_ns: 500_000_000, ..COST };
        assert!(
            overhead(&busy).ends_with("; the events take more than the goal, even without probes"),
            "{}",
            overhead(&busy)
        );
        assert!(overhead(&busy).starts_with("overhead 3 % (goal 2 %)"));
    }
}
