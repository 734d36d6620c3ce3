//! A plot over CPU counts, in text characters.

use crate::present::style::Style;
use std::io::{self, Write};

/// A point of the curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Label on the axis.
    pub label: String,
    /// Its value.
    pub value: f64,
    /// The lower end of the point's band.
    pub low: f64,
    /// The upper end of the point's band.
    pub high: f64,
    /// The ideal value at this point, if there is one.
    pub ideal: Option<f64>,
}

/// Number of rows of the plot, without its axis.
const ROWS: usize = 12;
/// Columns before the plot, for the numbers of the axis.
const MARGIN: usize = 8;

/// Writes the curve with at least one column for each point: as many points as fit, including the first and the last
/// one.
pub fn write(out: &mut impl Write, style: &Style, points: &[Point]) -> io::Result<()> {
    let room = style.width.saturating_sub(MARGIN + 1).max(8);
    let points = thinned(points, room);
    let top = points.iter().map(|point| point.high.max(point.value)).fold(0.0, f64::max);
    if points.is_empty() || !top.is_finite() || top <= 0.0 {
        return Ok(());
    }
    let step = nice(top / ROWS as f64 * 1.02);
    let pitch = (room / points.len()).clamp(1, 8);
    let (dot, bar, ideal, corner, across, down) = if style.unicode {
        ('●', '│', '·', '└', '─', '┤')
    } else {
        ('*', '|', '.', '+', '-', '|')
    };
    let rows = ((top / step).ceil() as usize).clamp(1, ROWS);
    let row_of = |value: f64| (value / step).round().clamp(0.0, usize::MAX as f64) as usize;
    for row in (1..=rows).rev() {
        let label = if row % 2 == 0 || rows <= 4 { number(row as f64 * step) } else { String::new() };
        let mut line = format!("{label:>width$} {down}", width = MARGIN - 2);
        for point in &points {
            let mark = if row_of(point.value) == row {
                dot
            } else if (row_of(point.low)..=row_of(point.high)).contains(&row) {
                bar
            } else if point.ideal.is_some_and(|ideal| row_of(ideal) == row) {
                ideal
            } else {
                ' '
            };
            line.extend(std::iter::repeat_n(' ', pitch - 1));
            line.push(mark);
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    let axis: String = std::iter::repeat_n(across, points.len() * pitch).collect();
    writeln!(out, "{:>width$} {corner}{axis}", "0", width = MARGIN - 2)?;
    writeln!(out, "{}", labels(&points, pitch).trim_end())
}

/// At most `most` of the points, evenly spaced, including the first and the last one.
fn thinned(points: &[Point], most: usize) -> Vec<Point> {
    if points.len() <= most || most < 2 {
        return points.iter().take(most.max(points.len().min(1))).cloned().collect();
    }
    (0..most).filter_map(|place| points.get(place * (points.len() - 1) / (most - 1)).cloned()).collect()
}

/// The labels under the points: as many as fit, including the last one.
fn labels(points: &[Point], pitch: usize) -> String {
    let mut line: Vec<char> = vec![' '; MARGIN + points.len() * pitch];
    let mut free_from = MARGIN - 1;
    let last = points.len() - 1;
    let place = |index: usize, label: &str| {
        let end = MARGIN + (index + 1) * pitch;
        (end.saturating_sub(label.chars().count()), end)
    };
    let (last_start, _) = points.get(last).map_or((0, 0), |point| place(last, &point.label));
    for (index, point) in points.iter().enumerate() {
        let (start, end) = place(index, &point.label);
        if start <= free_from || (index != last && end + 1 > last_start) {
            continue;
        }
        for (column, letter) in (start..end).zip(point.label.chars()) {
            if let Some(cell) = line.get_mut(column) {
                *cell = letter;
            }
        }
        free_from = end;
    }
    line.into_iter().collect()
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `least`.
fn nice(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    factors.into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(least)
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(points: &[Point], unicode: bool) -> String {
        let mut out = Vec::new();
        let style = Style { colour: false, unicode, width: 60 };
        write(&mut out, &style, points).expect("written");
        String::from_utf8(out).expect("text")
    }

    fn point(cpus: u32, value: f64) -> Point {
        Point { label: cpus.to_string(), value, low: value, high: value, ideal: Some(f64::from(cpus)) }
    }

    #[test]
    fn a_saturating_speed_up_curve_is_drawn_with_its_bands() {
        let mut points: Vec<Point> =
            [1, 2, 4, 8, 16].map(|cpus| point(cpus, f64::from(cpus).min(5.0))).to_vec();
        points[3].low = 4.0;
        assert_eq!(
            drawn(&points, false),
            concat!(
                "     5 |                               *       *\n",
                "       |                               |\n",
                "     4 |                       *       |\n",
                "       |\n",
                "     3 |\n",
                "       |\n",
                "     2 |               *\n",
                "       |\n",
                "     1 |       *\n",
                "       |\n",
                "     0 +----------------------------------------\n",
                "               1       2       4       8      16\n",
            )
        );
        assert!(drawn(&points, true).contains('●'));
    }

    #[test]
    fn a_plot_of_any_number_of_points_fits_the_width() {
        for count in [1, 2, 51, 52, 500] {
            let points: Vec<Point> = (1..=count).map(|cpus| point(cpus, f64::from(cpus))).collect();
            for line in drawn(&points, true).lines() {
                assert!(line.chars().count() <= 60, "{count}: {line}");
            }
            let text = drawn(&points, true);
            assert!(text.trim_end().ends_with(&count.to_string()), "{text}");
        }
        assert_eq!(drawn(&[], true), "");
        assert_eq!(drawn(&[point(1, f64::NAN)], true), "");
    }
}
