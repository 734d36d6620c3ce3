//! Samples together with probes. The same program is recorded with both and with samples alone, and the reports are
//! compared.

use super::support::{KEPT, Sampled};
use engine::attribution::Grouping;
use engine::event::{NoteKind, Recording};
use engine::report::{Cpus, Detail, Report, report_by};
use longpole_tests::{skip_unless_built, skip_unless_live};
use probe_abi::Record;

const CPUS: [Cpus; 2] = [Cpus::ONE, Cpus::Infinite];

fn report(recording: &Recording) -> Report {
    let program = engine::translation::from_timeline(&engine::timeline::build(recording));
    report_by(&program, &CPUS, Detail::Functions, Grouping::Function, &engine::predict::Model::default())
}

/// The total share of a function in the predicted time, with all functions that it calls, and the error of that share.
fn total(report: &Report, name: &str) -> (f64, f64) {
    let result = &report.results[0];
    let row = result.functions.iter().find(|row| row.function == name);
    let row = row.unwrap_or_else(|| panic!("{name} has no row"));
    (row.tetid_ns / result.time_ns, row.tetid_error_ns.unwrap_or(0.0) / result.time_ns)
}

/// The recording as if no samples had been taken.
fn without_samples(recording: &Recording) -> Recording {
    let mut without = recording.clone();
    without.events.retain(|record| !matches!(record, Record::Sample(_)));
    without.notes.retain(|note| !matches!(note.kind, NoteKind::Stack { .. }));
    without.facts.sampling = None;
    without
}

#[test]
fn samples_and_probes_agree_about_shares_within_the_errors() {
    skip_unless_live!();
    for flags in [&KEPT[..], &["-fomit-frame-pointer"]] {
        let probed = skip_unless_built!(Sampled::record_probed(flags));
        let sampled = skip_unless_built!(Sampled::record(flags, "auto", 0));
        check_sums(&probed);
        let exact = report(&without_samples(&probed.recording));
        let estimated = report(&sampled.recording);
        for name in ["b", "leaf_three", "leaf_one"] {
            let (is, error) = total(&exact, name);
            // Without samples, the error is what hits may have cost more than measured.
            assert!(error < 0.2, "{name}: {error} with probes alone");
            let (seen, half_width) = total(&estimated, name);
            assert!(half_width > 0.0, "{name}: it says that it comes from samples");
            // Half of a 95 % interval is two standard deviations. Once in some thousand runs, the deviation exceeds the
            // bound here. A hit may cost more in the program than longpole measured in itself, up to a tenth of the
            // shorter function's time.
            assert!(
                (is - seen).abs() <= 1.8 * half_width + 0.04 + error,
                "{flags:?} {name}: {is} by probes, {seen} ± {half_width} by samples"
            );
        }
        let row = estimated.results[0].functions.iter().find(|row| row.function == "b").expect("b");
        assert!(row.uncounted && !row.exact && row.samples > 0, "{row:?}");
    }
}

/// Checks that sums are the same with and without samples.
fn check_sums(probed: &Sampled) {
    let (with, without) = (report(&probed.recording), report(&without_samples(&probed.recording)));
    assert!(with.samples.is_some_and(|samples| samples.count > 300), "{:?}", with.samples);
    assert!(without.samples.is_none());
    for (with, without) in with.results.iter().zip(&without.results) {
        assert_eq!((with.time_ns, with.speedup), (without.time_ns, without.speedup));
        let own = |rows: &[engine::report::FunctionRow]| rows.iter().map(|row| row.tet_ns).sum::<f64>();
        let (all_with, all_without) = (own(&with.functions), own(&without.functions));
        // Only with samples does time outside of probed functions have a row.
        assert!(all_with >= all_without - 1.0 && all_with <= with.time_ns + 1.0, "{all_with} {all_without}");
    }
    for name in ["b", "leaf_three", "leaf_one"] {
        let (with, without) = (total(&with, name).0, total(&without, name).0);
        // The difference comes from samples in probes that took longer than probes were measured to take.
        assert!((with - without).abs() < 0.02, "{name}: {with} and {without}: exact, whatever samples say");
    }
    let probes = with.results[0].functions.iter().find(|row| row.function.contains("[uprobes]"));
    assert!(
        probes.is_none(),
        "the cost of probes is taken out of the time, and so of the samples: {probes:?}"
    );
}
