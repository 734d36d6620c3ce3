//! Compares predicted with measured times: pure arithmetic.

use super::measure::{Measurement, Run};

/// A prediction for one number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// The number of CPUs.
    pub cpus: u32,
    /// Predicted time, ns.
    pub time_ns: f64,
    /// Predicted time scaled by the CPU time that a run on this number of CPUs really took ([`Row::inflation`]), ns.
    pub inflated_ns: f64,
}

/// Comparison of prediction and measurement on one number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The number of CPUs.
    pub cpus: u32,
    /// Median, shortest and longest measured time, ns.
    pub measured_ns: [f64; 3],
    /// Predicted time, ns; with several recordings, the median.
    pub predicted_ns: f64,
    /// Measured time on one CPU ÷ measured time on this number of CPUs.
    pub measured_speedup: f64,
    /// Smallest and largest speed-up of single rounds: how reliable the measured one is.
    pub measured_range: [f64; 2],
    /// Predicted time on one CPU ÷ predicted time on this number of CPUs; with several recordings, the median.
    pub predicted_speedup: f64,
    /// Smallest and largest predicted speed-up over the recordings.
    pub predicted_range: [f64; 2],
    /// |measured − predicted| ÷ measured, for speed-ups (1999, section 5.1).
    pub error: f64,
    /// Median over rounds of: CPU time here ÷ CPU time on one CPU.
    pub inflation: f64,
    /// The error that remains with the prediction scaled by that CPU time: the simulation's share.
    pub scheduling_error: f64,
}

/// Comparison for all numbers of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Rows by CPU count; the first is one CPU, which speed-ups refer to.
    pub rows: Vec<Row>,
    /// Median error of all rows but the first.
    pub median_error: f64,
    /// Largest error of all rows but the first.
    pub worst_error: f64,
}

/// CPU time on each number of CPUs ÷ CPU time on the first number of CPUs in the same round. On a shared machine,
/// rounds differ more than CPU counts do.
pub fn inflation(measured: &[Measurement]) -> Vec<f64> {
    let Some(one) = measured.first() else { return Vec::new() };
    measured
        .iter()
        .map(|here| {
            let ratios: Vec<f64> = here
                .runs
                .iter()
                .zip(&one.runs)
                .filter(|(_, one)| !one.cpu.is_zero())
                .map(|(here, one)| here.cpu.as_secs_f64() / one.cpu.as_secs_f64())
                .collect();
            middle(ratios).unwrap_or(1.0)
        })
        .collect()
}

/// Compares. The measurements and each recording's predictions begin with one CPU and have the same CPU counts.
pub fn compare(measured: &[Measurement], predicted: &[Vec<Predicted>]) -> Comparison {
    let inflation = inflation(measured);
    let times: Vec<[f64; 3]> = measured.iter().map(|here| spread(&here.runs)).collect();
    let mut rows = Vec::new();
    for (place, ((here, time), inflation)) in measured.iter().zip(&times).zip(inflation).enumerate() {
        // Speed-ups are computed for each recording: what slowed both of its times down cancels out.
        let pairs: Vec<(Predicted, Predicted)> = predicted
            .iter()
            .filter_map(|by_count| Some((*by_count.first()?, *by_count.get(place)?)))
            .collect();
        let of = |value: fn(&(Predicted, Predicted)) -> f64| pairs.iter().map(value).collect::<Vec<f64>>();
        let speedups = of(|(one, here)| one.time_ns / here.time_ns);
        let (Some(first), Some(predicted_speedup), Some(predicted_ns), Some(inflated)) = (
            times.first(),
            middle(speedups.clone()),
            middle(of(|(_, here)| here.time_ns)),
            middle(of(|(one, here)| one.time_ns / here.inflated_ns)),
        ) else {
            break;
        };
        let measured_speedup = first[0] / time[0];
        let one = measured.first().map_or(&[] as &[Run], |one| &one.runs);
        let rounds = one.iter().zip(&here.runs);
        let rounds = rounds.map(|(one, here)| one.wall.as_secs_f64() / here.wall.as_secs_f64());
        let error = |speedup: f64| (measured_speedup - speedup).abs() / measured_speedup;
        rows.push(Row {
            cpus: here.cpus,
            measured_ns: *time,
            predicted_ns,
            measured_speedup,
            measured_range: range(rounds),
            predicted_speedup,
            predicted_range: range(speedups.iter().copied()),
            error: error(predicted_speedup),
            inflation,
            scheduling_error: error(inflated),
        });
    }
    let errors: Vec<f64> = rows.iter().skip(1).map(|row| row.error).collect();
    Comparison {
        worst_error: errors.iter().copied().fold(0.0, f64::max),
        median_error: middle(errors).unwrap_or(0.0),
        rows,
    }
}

/// Share of the CPUs' time that other programs took during the measurement. If it is large, no number is reliable.
pub fn taken_by_others(measured: &[Measurement]) -> f64 {
    let runs = measured.iter().flat_map(|here| here.runs.iter().map(move |run| (here.cpus, run)));
    let (mut others, mut all) = (0.0, 0.0);
    for (cpus, run) in runs {
        others += run.others.as_secs_f64();
        all += run.wall.as_secs_f64() * f64::from(cpus);
    }
    if all > 0.0 { others / all } else { 0.0 }
}

/// Smallest and largest value.
fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, 0.0], |[low, high], value| [low.min(value), high.max(value)])
}

/// Median, shortest and longest wall time, ns.
fn spread(runs: &[Run]) -> [f64; 3] {
    let times: Vec<f64> = runs.iter().map(|run| run.wall.as_secs_f64() * 1e9).collect();
    let shortest = times.iter().copied().fold(f64::INFINITY, f64::min);
    let longest = times.iter().copied().fold(0.0, f64::max);
    [middle(times).unwrap_or(0.0), shortest, longest]
}

/// The median.
pub fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *values.get(values.len() / 2 - 1)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn measurement(cpus: u32, runs: &[(u64, u64)]) -> Measurement {
        let run = |&(wall, cpu): &(u64, u64)| Run {
            wall: Duration::from_millis(wall),
            cpu: Duration::from_millis(cpu),
            others: Duration::from_millis(10),
        };
        Measurement { cpus, runs: runs.iter().map(run).collect() }
    }

    #[test]
    fn validate_s_error_is_relative_to_the_median_measured_speed_up() {
        // Speed-up 100/50 = 2; predicted 1.9, so the error is 5 %. One run on each number of CPUs is an outlier.
        let measured = [
            measurement(1, &[(100, 100), (400, 100), (99, 100)]),
            measurement(2, &[(50, 100), (49, 110), (300, 120)]),
        ];
        let predicted = [
            Predicted { cpus: 1, time_ns: 190.0, inflated_ns: 190.0 },
            Predicted { cpus: 2, time_ns: 100.0, inflated_ns: 110.0 },
        ];
        let comparison = compare(&measured, &[predicted.to_vec()]);
        let row = comparison.rows[1];
        assert_eq!(row.measured_ns, [50e6, 49e6, 300e6]);
        assert!((row.measured_speedup - 2.0).abs() < 1e-12 && (row.predicted_speedup - 1.9).abs() < 1e-12);
        assert!((row.error - 0.05).abs() < 1e-12, "{row:?}");
        // Ratios by round: 1.0, 1.1, 1.2.
        assert!((row.inflation - 1.1).abs() < 1e-12);
        assert!((row.scheduling_error - (2.0 - 190.0 / 110.0) / 2.0).abs() < 1e-12, "{row:?}");
        assert_eq!((comparison.median_error, comparison.worst_error), (row.error, row.error));
        assert_eq!(comparison.rows[0].error, 0.0);
        assert_eq!(row.predicted_range, [row.predicted_speedup; 2]);
        // Speed-ups by round: 100/50, 400/49, 99/300.
        assert_eq!(row.measured_range, [99.0 / 300.0, 400.0 / 49.0]);
    }

    /// A single recording that the machine has slowed down may be wrong by 99 % (FFT of SPLASH), others by 2 and 6 %.
    #[test]
    fn one_disturbed_recording_does_not_change_the_median_prediction() {
        let measured = [measurement(1, &[(100, 100)]), measurement(2, &[(50, 100)])];
        let recording = |one: f64, two: f64| {
            vec![
                Predicted { cpus: 1, time_ns: one, inflated_ns: one },
                Predicted { cpus: 2, time_ns: two, inflated_ns: two },
            ]
        };
        let comparison =
            compare(&measured, &[recording(200.0, 50.0), recording(98.0, 50.0), recording(110.0, 55.0)]);
        let row = comparison.rows[1];
        assert_eq!((row.predicted_speedup, row.predicted_range), (2.0, [1.96, 4.0]));
        assert_eq!((row.predicted_ns, row.error), (50.0, 0.0));
    }

    #[test]
    fn the_cpu_time_of_other_programs_is_a_share_of_all_cpus() {
        // Others take 10 ms of each run; runs take 100 ms on one CPU, 50 ms on each of two.
        let measured = [measurement(1, &[(100, 90)]), measurement(2, &[(50, 90)])];
        assert!((taken_by_others(&measured) - 0.1).abs() < 1e-12);
        assert_eq!(taken_by_others(&[]), 0.0);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(middle(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(middle(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(middle(Vec::new()), None);
    }
}
