//! The results of a measurement's runs.

use anyhow::{Context, Result};
use serde_json::Value;

use super::measurement::Side;
use crate::sample::{Sample, digits};

/// Results of all sides.
pub struct Results {
    /// The sides in their order.
    pub sides: Vec<Outcome>,
    /// How often each side ran, or repeated what it measures.
    pub runs: usize,
}

impl Results {
    /// The side with this index.
    pub fn at(&self, place: usize) -> Result<&Outcome> {
        self.sides.get(place).context("no such side")
    }

    /// Sides that have a row in the table.
    pub fn listed(&self) -> impl Iterator<Item = &Outcome> {
        self.sides.iter().filter(|side| side.is_listed && side.last().is_some())
    }

    /// The last value of each side that did not fail.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.sides.iter().filter_map(|side| Some((side.label.as_str(), side.last()?)))
    }

    /// Sides that failed or cannot run on this machine, and why.
    pub fn left_out(&self) -> Vec<String> {
        let why =
            |side: &Outcome| Some(format!("{} ({})", side.label.replace(" | ", ", "), side.failed.as_ref()?));
        self.sides.iter().filter_map(why).collect()
    }
}

/// Results of a side.
pub struct Outcome {
    /// First cells of the side's row.
    pub label: String,
    /// Index of the side among all sides.
    pub at: usize,
    is_listed: bool,
    pub(super) values: Vec<Value>,
    pub(super) failed: Option<String>,
}

impl Outcome {
    pub(super) fn new(side: &Side<'_>, at: usize) -> Self {
        let label = side.label.clone();
        Outcome { label, at, is_listed: side.is_listed, values: Vec::new(), failed: None }
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The result of the last run; `None` if the side failed.
    pub fn last(&self) -> Option<&Value> {
        self.values.last().filter(|_| self.failed.is_none())
    }

    /// All numbers with this name, in the order of the runs.
    pub fn of(&self, name: &str) -> Result<Sample> {
        let sample: Sample = self.values.iter().filter_map(|value| value[name].as_f64()).collect();
        (sample.len() > 0).then_some(sample).with_context(|| format!("{}: no {name}", self.label))
    }

    /// The median of the numbers with this name.
    pub fn median(&self, name: &str) -> Result<f64> {
        Ok(self.of(name)?.median())
    }

    /// A cell with median, smallest and largest number, in another unit.
    pub fn spread(&self, name: &str, factor: f64) -> Result<String> {
        Ok(self.of(name)?.scaled(factor).to_string())
    }

    /// A cell with the median to three digits, in another unit.
    pub fn middle(&self, name: &str, factor: f64) -> Result<String> {
        Ok(digits(self.median(name)? * factor))
    }

    /// A cell with the median of a count.
    pub fn count(&self, name: &str) -> Result<String> {
        Ok(self.median(name)?.to_string())
    }

    /// A cell with one median divided by another one, in another unit.
    pub fn ratio(&self, name: &str, by: &str, factor: f64) -> Result<String> {
        Ok(digits(self.median(name)? / self.median(by)? * factor))
    }
}
