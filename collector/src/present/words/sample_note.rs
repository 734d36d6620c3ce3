//! One sentence about sampled stacks.

use crate::cell::grouped;
use engine::event::{CallGraph, SampleCounts, SamplingFact};

/// The sentence, without a full stop. `counts` is `None` if the recording has no end.
pub fn samples(sampling: &SamplingFact, counts: Option<&SampleCounts>) -> String {
    let how = match sampling.call_graph {
        CallGraph::Auto => "auto",
        CallGraph::Fp => "frame pointers",
        CallGraph::Dwarf => "unwind tables",
    };
    let rate = format!("up to {} Hz ({how})", sampling.rate_hz);
    let Some(counts) = counts else { return rate };
    let &SampleCounts { taken, truncated, without_stack, no_room, unread, lost, left_out } = counts;
    let mut text = format!("{} stacks at {rate}", grouped(taken));
    let parts = [
        (truncated, "cut off"),
        (without_stack.saturating_sub(no_room).saturating_sub(unread), "without a stack"),
        (no_room, "without their stack, since different stacks fill the memory for stacks"),
        (unread, "without their stack, since unwind tables took too long to read"),
        (lost, "lost"),
        (left_out, "left out to keep to --overhead"),
    ];
    for (count, what) in parts {
        if count > 0 {
            text.push_str(&format!(", {} {what}", grouped(count)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_line_says_how_many_samples_are_missing_and_why() {
        let sampling = SamplingFact { rate_hz: 499, call_graph: CallGraph::Dwarf };
        assert_eq!(samples(&sampling, None), "up to 499 Hz (unwind tables)");
        let counts = SampleCounts { taken: 4_990, ..SampleCounts::default() };
        assert_eq!(samples(&sampling, Some(&counts)), "4,990 stacks at up to 499 Hz (unwind tables)");
        let counts = SampleCounts { truncated: 12, lost: 3, left_out: 1_000, ..counts };
        let text = samples(&sampling, Some(&counts));
        let missing = "12 cut off, 3 lost, 1,000 left out to keep to --overhead";
        assert_eq!(text, format!("4,990 stacks at up to 499 Hz (unwind tables), {missing}"));

        // Stacks beyond the limit of different stacks (128 MiB) are missing, and the text must say so.
        let counts =
            SampleCounts { taken: 9, without_stack: 6, no_room: 3, unread: 1, ..SampleCounts::default() };
        let text = samples(&sampling, Some(&counts));
        assert!(
            text.contains(", 2 without a stack, 3 without their stack, since different stacks fill"),
            "{text}"
        );
        assert!(
            text.ends_with(", 1 without their stack, since unwind tables took too long to read"),
            "{text}"
        );
    }
}
