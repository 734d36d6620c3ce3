//! Facts about the samples of a report, and findings about what the samples cannot show.

use super::Finding;
use crate::attribution::Attribution;
use crate::program::Program;
use serde::Serialize;

/// Shares up to this are too small for a finding.
const WORTH_SAYING: f64 = 0.01;

/// Samples that a report is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SampleFacts {
    /// Samples in compute time.
    pub count: u64,
    /// Samples asked for per second of running time; 0 if that is not known.
    pub rate_hz: u32,
    /// Samples whose stack does not reach the thread's first function.
    pub truncated: u64,
    /// Samples outside compute time: while the thread waited for a lock, say.
    pub elsewhere: u64,
    /// Compute time that was divided by samples, nanoseconds.
    pub divided_ns: f64,
    /// Compute time that had too few samples to divide and stays with the innermost probed function, nanoseconds.
    pub undivided_ns: f64,
}

pub(super) fn facts(program: &Program, attribution: &Attribution) -> Option<SampleFacts> {
    let samples = &program.samples;
    (!samples.is_empty()).then(|| SampleFacts {
        count: samples.count(),
        rate_hz: samples.rate_hz,
        truncated: samples.truncated,
        elsewhere: samples.elsewhere,
        divided_ns: attribution.strata.divided.as_ns_f64(),
        undivided_ns: attribution.strata.undivided.as_ns_f64(),
    })
}

pub(super) fn findings(facts: &SampleFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let all_ns = facts.divided_ns + facts.undivided_ns;
    if facts.undivided_ns > WORTH_SAYING * all_ns {
        findings.push(Finding::FewSamples { undivided_ns: facts.undivided_ns, all_ns });
    }
    let truncated = facts.truncated as f64 / facts.count.max(1) as f64;
    if truncated > WORTH_SAYING {
        findings.push(Finding::TruncatedStacks { stacks: facts.truncated, of: facts.count });
    }
    findings
}
