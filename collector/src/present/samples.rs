//! One sentence about sampled stacks.

use super::cell::grouped;
use engine::event::{CallGraph, SampleCounts, SamplingFact};

/// The sentence, without a full stop; without counts the recording has no end.
pub fn samples(sampling: &SamplingFact, counts: Option<&SampleCounts>) -> String {
    let how = match sampling.call_graph {
        CallGraph::Auto => "auto",
        CallGraph::Fp => "frame pointers",
        CallGraph::Dwarf => "unwind tables",
    };
    let rate = format!("{} Hz ({how})", sampling.rate_hz);
    let Some(SampleCounts { taken, truncated, without_stack, lost }) = counts else { return rate };
    let mut text = format!("{} stacks at {rate}", grouped(*taken));
    for (count, what) in [(truncated, "cut off"), (without_stack, "without a stack"), (lost, "lost")] {
        if *count > 0 {
            text.push_str(&format!(", {} {what}", grouped(*count)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said() {
        let sampling = SamplingFact { rate_hz: 499, call_graph: CallGraph::Dwarf };
        assert_eq!(samples(&sampling, None), "499 Hz (unwind tables)");
        let counts = SampleCounts { taken: 4_990, ..SampleCounts::default() };
        assert_eq!(samples(&sampling, Some(&counts)), "4,990 stacks at 499 Hz (unwind tables)");
        let counts = SampleCounts { truncated: 12, lost: 3, ..counts };
        let text = samples(&sampling, Some(&counts));
        assert_eq!(text, "4,990 stacks at 499 Hz (unwind tables), 12 cut off, 3 lost");
    }
}
