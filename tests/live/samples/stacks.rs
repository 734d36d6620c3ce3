//! Stacks of samples must be the known chain of calls, in whichever way longpole reads them.

use super::support::{KEPT, Sampled};
use engine::event::CallGraph;
use longpole_tests::{skip_unless_built, skip_unless_live};
use probe_abi::SampleFlags;

fn share(sampled: &Sampled) -> f64 {
    let (all, whole) = sampled.chains();
    assert!(all >= 300, "{all} ticks in the leaves");
    whole as f64 / all as f64
}

#[test]
fn stacks_by_frame_pointers_have_the_known_chain_and_share() {
    let sampled = skip_unless_live!(Sampled::record(&KEPT, "fp", 0));
    sampled.check(CallGraph::Fp);
    let share = share(&sampled);
    // Before a function has set up its frame, its caller is not visible.
    assert!(share > 0.9, "{share}");
}

#[test]
fn stacks_deeper_than_the_limit_are_cut_off_and_counted() {
    let sampled = skip_unless_live!(Sampled::record(&KEPT, "fp", 400));
    let ticks = sampled.ticks();
    let cut = ticks.iter().filter(|(_, flags)| flags & SampleFlags::TRUNCATED != 0).count();
    assert!(cut * 10 > ticks.len() * 8, "{cut} of {}", ticks.len());
    assert!(ticks.iter().all(|(names, _)| names.len() <= engine::event::MOST_FRAMES));
    let counts = sampled.recording.facts.end.as_ref().and_then(|end| end.samples).expect("counts");
    assert!(counts.truncated >= cut as u64, "{counts:?}");
}

#[test]
fn stacks_by_unwind_tables_have_the_known_chain_without_frame_pointers() {
    let sampled = skip_unless_live!(Sampled::record(&["-fomit-frame-pointer"], "dwarf", 0));
    sampled.check(CallGraph::Dwarf);
    let share = share(&sampled);
    assert!(share > 0.95, "{share}");
    let counts = sampled.recording.facts.end.as_ref().and_then(|end| end.samples).expect("counts");
    assert!(counts.truncated * 10 < counts.taken, "up to the thread's first function: {counts:?}");
}

#[test]
fn stacks_larger_than_the_copy_are_cut_off() {
    let sampled = skip_unless_live!(Sampled::record(&["-fomit-frame-pointer"], "dwarf", 100));
    let ticks = sampled.ticks();
    let cut = ticks.iter().filter(|(_, flags)| flags & SampleFlags::TRUNCATED != 0).count();
    assert!(cut * 10 > ticks.len() * 8, "{cut} of {}", ticks.len());
}

#[test]
fn stacks_in_auto_mode_are_read_by_what_the_binary_keeps() {
    skip_unless_live!();
    for flags in [&KEPT[..], &["-fomit-frame-pointer"]] {
        let sampled = skip_unless_built!(Sampled::record(flags, "auto", 0));
        sampled.check(CallGraph::Auto);
        let share = share(&sampled);
        assert!(share > 0.9, "{flags:?}: {share}");
        // Stacks must reach the program's first instructions, even where frame pointers end at main.
        let ticks = sampled.ticks();
        let deep = ticks.iter().filter(|(names, _)| names.len() > 5).count();
        assert!(deep * 10 > ticks.len() * 8, "{flags:?}: {deep} of {}", ticks.len());
    }
}
