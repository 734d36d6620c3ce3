//! Samples as JSON: places with names of functions, stacks as indices of places, and for each thread in order a list of
//! `[operation, stack]`.

use super::names::Names;
use crate::program::{FunctionRef, Place, PlaceId, Program, Sample, Samples};
use serde::{Deserialize, Serialize};

/// The field `samples` of the document.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct SamplesEntry {
    rate_hz: u32,
    elsewhere: u64,
    truncated: u64,
    places: Vec<PlaceEntry>,
    stacks: Vec<Vec<u32>>,
    threads: Vec<Vec<(u32, u32)>>,
}

#[derive(Debug, Deserialize, Serialize)]
struct PlaceEntry {
    function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inlined: bool,
}

impl SamplesEntry {
    /// Makes the entry for a program that has passed its check.
    pub(super) fn of(program: &Program) -> SamplesEntry {
        let samples = &program.samples;
        let name = |place: &Place| program.functions.get(place.function.0 as usize).map(|f| f.name.clone());
        let places = samples.places.iter().map(|place| PlaceEntry {
            function: name(place).unwrap_or_default(),
            line: place.line.clone(),
            inlined: place.inlined,
        });
        let stack = |stack: &Vec<PlaceId>| stack.iter().map(|place| place.0).collect();
        let thread = |thread: &Vec<Sample>| thread.iter().map(|s| (s.operation, s.stack)).collect();
        SamplesEntry {
            rate_hz: samples.rate_hz,
            elsewhere: samples.elsewhere,
            truncated: samples.truncated,
            places: places.collect(),
            stacks: samples.stacks.iter().map(stack).collect(),
            threads: samples.threads.iter().map(thread).collect(),
        }
    }

    /// The samples. Functions without a number get one. The check of the program tests whether samples fit it.
    pub(super) fn into_samples(self, functions: &mut Names) -> Samples {
        let place = |entry: PlaceEntry| Place {
            function: FunctionRef(functions.number(&entry.function).unwrap_or(u32::MAX)),
            line: entry.line,
            inlined: entry.inlined,
        };
        let thread = |thread: Vec<(u32, u32)>| {
            thread.into_iter().map(|(operation, stack)| Sample { operation, stack }).collect()
        };
        Samples {
            places: self.places.into_iter().map(place).collect(),
            stacks: self.stacks.into_iter().map(|s| s.into_iter().map(PlaceId).collect()).collect(),
            threads: self.threads.into_iter().map(thread).collect(),
            rate_hz: self.rate_hz,
            elsewhere: self.elsewhere,
            truncated: self.truncated,
        }
    }
}
