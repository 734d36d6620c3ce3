//! Headroom: how far a function can be made faster before another one leads (future work in the 2001 paper, section 7). A
//! curve, not a point.

use super::outlook::outlook;
use crate::cpus::Cpus;
use crate::experiment::{Edit, edited};
use crate::json::{name_only, number};
use crate::predict::Model;
use crate::program::{FunctionRef, Program, ProgramError};
use serde::Serialize;

/// Number of points of a curve.
const POINTS: u32 = 11;
/// Number of bisections between two points to find a takeover: a precision of a thousandth.
const HALVINGS: u32 = 7;

/// A function's headroom on one CPU count: the predicted time as the function's self time shrinks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The CPU count.
    pub cpus: Cpus,
    /// Points from the full cost of the function down to zero.
    pub points: Vec<CurvePoint>,
    /// Changes of the leading function (the one with the largest share of the extended critical path), in the same
    /// order as `points`.
    pub takeovers: Vec<Takeover>,
}

/// A point of the curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The remaining part of the function's self time: 1 is all.
    #[serde(serialize_with = "number")]
    pub scale: f64,
    /// Predicted time, nanoseconds.
    #[serde(serialize_with = "number")]
    pub time_ns: f64,
    /// The function with the largest share of the extended critical path, and its share.
    #[serde(serialize_with = "name_only")]
    pub first: Option<(String, f64)>,
}

/// A change of the leading function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Takeover {
    /// The scale from which on downwards the new function leads, to a thousandth.
    #[serde(serialize_with = "number")]
    pub scale: f64,
    /// Predicted time there, nanoseconds.
    #[serde(serialize_with = "number")]
    pub time_ns: f64,
    /// The function that led until here.
    pub over: String,
    /// The function that leads from here.
    pub function: String,
}

/// One curve for each CPU count, for functions that get faster together: one function, and the standard functions that
/// count for it.
///
/// # Errors
/// The program fails [`Program::check`].
pub fn headroom(
    program: &Program,
    functions: &[FunctionRef],
    cpus: &[Cpus],
    model: &Model,
) -> Result<Vec<Curve>, ProgramError> {
    let mut curves: Vec<Curve> =
        cpus.iter().map(|cpus| Curve { cpus: *cpus, points: Vec::new(), takeovers: Vec::new() }).collect();
    for point in 0..POINTS {
        let scale = 1.0 - f64::from(point) / f64::from(POINTS - 1);
        for (curve, point) in curves.iter_mut().zip(at(program, functions, scale, cpus, model)?) {
            curve.points.push(point);
        }
    }
    for curve in &mut curves {
        for pair in 1..curve.points.len() {
            let (above, below) = (curve.points[pair - 1].clone(), curve.points[pair].clone());
            if let Some(takeover) = between(program, functions, curve.cpus, model, above, below)? {
                curve.takeovers.push(takeover);
            }
        }
    }
    Ok(curves)
}

fn at(
    program: &Program,
    functions: &[FunctionRef],
    scale: f64,
    cpus: &[Cpus],
    model: &Model,
) -> Result<Vec<CurvePoint>, ProgramError> {
    // Cannot fail: a scale from 0 to 1 can always be applied.
    let scaled = edited(program, &[Edit::Scale(functions.to_vec(), scale)]);
    let results = match &scaled {
        Ok(scaled) => outlook(scaled, cpus, model)?.results,
        Err(_) => Vec::new(),
    };
    let points =
        results.into_iter().map(|result| CurvePoint { scale, time_ns: result.time_ns, first: result.leader });
    Ok(points.collect())
}

fn between(
    program: &Program,
    functions: &[FunctionRef],
    cpus: Cpus,
    model: &Model,
    mut above: CurvePoint,
    mut below: CurvePoint,
) -> Result<Option<Takeover>, ProgramError> {
    let name = |point: &CurvePoint| point.first.as_ref().map(|(name, _)| name.clone());
    let (Some(over), Some(_)) = (name(&above), name(&below)) else { return Ok(None) };
    if Some(&over) == name(&below).as_ref() {
        return Ok(None);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(above.scale, below.scale);
        let Some(point) = at(program, functions, middle, &[cpus], model)?.pop() else { break };
        if name(&point).as_ref() == Some(&over) {
            above = point;
        } else {
            below = point;
        }
    }
    let function = name(&below).unwrap_or_default();
    Ok(Some(Takeover { scale: below.scale, time_ns: below.time_ns, over, function }))
}
