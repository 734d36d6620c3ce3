//! Runs variants of a program in turns, within one side.

use anyhow::Result;

use crate::sample::Sample;

/// Runs variants 0 to `count` in turns. Returns the times of each variant in the order of the turns. With `rotates`,
/// the variant that runs first changes from turn to turn.
pub fn in_turns(
    runs: usize,
    count: usize,
    rotates: bool,
    mut once: impl FnMut(usize) -> Result<f64>,
) -> Result<Vec<Sample>> {
    let mut times = vec![Sample::default(); count];
    for turn in 0..runs {
        let first = if rotates { turn % count } else { 0 };
        for variant in (0..count).map(|place| (first + place) % count) {
            times[variant].push(once(variant)?);
        }
    }
    Ok(times)
}
