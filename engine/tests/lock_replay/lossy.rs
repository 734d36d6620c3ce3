//! Recordings without a tenth of their records: answers may be vaguer, never absurd.

use super::execution;
use super::programs::{self, Kinds};
use engine::report::{Cpus, Detail, report};
use engine::synth::{Generated, Numbers, generate};
use engine::timeline::build;
use engine::translation::from_timeline;

#[track_caller]
fn check(generated: &Generated, cpus: u16, seed: u64) {
    let mut numbers = Numbers::new(seed);
    let recording = generated.clone().lossy(|_| numbers.below(10) == 0).recording();
    let start_ns = recording.facts.start_ns;
    let recorded_ns = recording.facts.end.as_ref().map_or(0, |end| end.end_ns - start_ns) as f64;
    let program = from_timeline(&build(&recording));
    let own = Cpus::parse_list(&cpus.to_string()).expect("a count")[0];
    let answer = report(&program, &[own, Cpus::ONE, Cpus::Infinite], Detail::Functions);
    let deadlock = answer.findings.iter().find(|finding| finding.kind().starts_with("deadlock"));
    assert_eq!(deadlock, None, "seed {seed}");
    for result in &answer.results {
        assert!(result.time_ns.is_finite() && result.time_ns >= 0.0, "seed {seed}: {}", result.time_ns);
    }
    // At worst, threads that ran at once run one after the other.
    let (time_ns, threads) = (answer.results[0].time_ns, program.threads.len().max(1) as f64);
    assert!(time_ns <= 1.1 * threads * recorded_ns, "seed {seed}: {time_ns} ns of {recorded_ns} ns");
}

#[test]
fn a_recording_without_a_tenth_of_its_records_gives_no_absurd_time() {
    for seed in 0..100 {
        let execution = execution(seed, 1 + (seed % 4) as u16);
        let kinds = Kinds { locks: true, waits: seed % 2 == 0 };
        for program in [programs::program(seed, &kinds), programs::pipeline(seed)] {
            check(&generate(&program, &execution).expect("supported"), execution.cpus, seed);
        }
    }
}
