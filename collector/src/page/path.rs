//! The critical path on a number of CPUs.

use super::colours::PathColour;
use super::lanes::Lanes;
use super::predicted::USUAL;
use crate::level_of_detail::{Item, quantum, summed};
use crate::palette::Palette;
use crate::present::text::delays;
use engine::view::{PathView, StretchKind, ViewStretch};
use serde::Serialize;

/// Largest number of stretches for one of [`USUAL`] CPU counts; with more CPU counts, all share the room for [`USUAL`].
const STRETCHES: usize = 100_000;

/// See [`PathView`].
#[derive(Clone, Debug, Serialize)]
pub struct PathJson {
    /// Whether all stretches are in one lane. Otherwise each thread has a lane, and stretches have weights.
    is_one: bool,
    /// Stretches of a single path shorter than this are summed up; 0: none are.
    quantum_ns: u64,
    /// Weights; if there is no single path, a stretch's further number is an index into these.
    weights: Vec<f64>,
    /// Number of stretches omitted for lack of room.
    left_out: usize,
}

/// A critical path as lanes, with the meaning of their codes.
pub fn path(path: &PathView, threads: usize, runs: usize) -> (PathJson, Lanes, Palette<PathColour>) {
    let most = STRETCHES * USUAL / runs.max(USUAL);
    let mut colours = Palette::default();
    let none = colours.number(PathColour::default());
    let mut item = |stretch: &ViewStretch| Item {
        code: colours.number(colour(&stretch.kind)),
        ns: stretch.end.nearest_ns().saturating_sub(stretch.start.nearest_ns()),
        more: 0,
    };
    let mut lanes = Lanes::default();
    let mut json = PathJson { is_one: path.is_one_path, quantum_ns: 0, weights: Vec::new(), left_out: 0 };
    if path.is_one_path {
        let items: Vec<Item> = path.stretches.iter().map(item).collect();
        json.quantum_ns = quantum(most, |quantum| {
            let mut count = 0;
            summed(items.iter().copied(), quantum, |_, _| count += 1);
            count
        });
        lanes.add(0, items.into_iter(), json.quantum_ns);
    } else {
        json.left_out = path.stretches.len().saturating_sub(most);
        let mut weights: Palette<u64> = Palette::default();
        let mut by_thread: Vec<Vec<Item>> = vec![Vec::new(); threads];
        let mut ends = vec![0; threads];
        for stretch in path.stretches.iter().take(most) {
            let StretchKind::Computes { thread, .. } = stretch.kind else { continue };
            let place = thread as usize;
            let (Some(lane), Some(end)) = (by_thread.get_mut(place), ends.get_mut(place)) else { continue };
            let mut shown = item(stretch);
            let known = json.weights.len();
            shown.more = weights.number(stretch.weight.to_bits());
            if shown.more as usize == known {
                json.weights.push(stretch.weight);
            }
            lane.push(Item { code: none, ns: stretch.start.nearest_ns().saturating_sub(*end), more: 0 });
            lane.push(shown);
            *end = stretch.end.nearest_ns();
        }
        for lane in by_thread {
            lanes.add(0, lane.into_iter(), 0);
        }
    }
    (json, lanes, colours)
}

fn colour(kind: &StretchKind) -> PathColour {
    match kind {
        StretchKind::Computes { thread, function } => {
            PathColour { thread: Some(*thread), function: function.map(|function| function.0), wait: None }
        }
        StretchKind::Passes(wait) => PathColour { wait: Some(delays::words(wait)), ..PathColour::default() },
    }
}
