//! Combines predictions from several recordings of one command into their median and their spread.

use super::result::{CpuPrediction, Prediction};
use crate::finding::Finding;

/// Makes one prediction from those of several recordings of the same command, for the same CPU counts; `None` without
/// predictions. Times and speed-ups are medians, the band covers all recordings, and all other fields are from the
/// median recording.
pub fn combine(mut predictions: Vec<Prediction>) -> Option<Prediction> {
    let count = predictions.len();
    if count <= 1 {
        return predictions.pop();
    }
    let results = combined(&predictions);
    // The median recording is chosen by the time at the last CPU count.
    let time = |prediction: &Prediction| prediction.results.last().map_or(0.0, |result| result.time_ns);
    let mut findings: Vec<Finding> = Vec::new();
    for finding in predictions.iter().flat_map(|prediction| &prediction.findings) {
        if !findings.contains(finding) {
            findings.push(finding.clone());
        }
    }
    predictions.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut middle = predictions.swap_remove(count / 2);
    middle.results = results;
    middle.findings = findings;
    middle.recordings = count;
    Some(middle)
}

fn combined(predictions: &[Prediction]) -> Vec<CpuPrediction> {
    let places = predictions.iter().map(|prediction| prediction.results.len()).min().unwrap_or(0);
    let at = |place: usize| {
        let mut all: Vec<&CpuPrediction> =
            predictions.iter().filter_map(|prediction| prediction.results.get(place)).collect();
        all.sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns));
        let mut speedups: Vec<f64> = all.iter().map(|result| result.speedup).collect();
        speedups.sort_by(f64::total_cmp);
        let middle = *all.get(all.len() / 2)?;
        let mut result = middle.clone();
        let speedup = speedups.get(speedups.len() / 2).copied().unwrap_or(1.0);
        if result.speedup > 0.0 {
            result.efficiency *= speedup / result.speedup;
        }
        result.speedup = speedup;
        result.low_ns = all.iter().map(|result| result.low_ns).fold(f64::INFINITY, f64::min);
        result.high_ns = all.iter().map(|result| result.high_ns).fold(0.0, f64::max);
        result.is_open = all.iter().any(|result| result.is_open);
        Some(result)
    };
    (0..places).filter_map(at).collect()
}
