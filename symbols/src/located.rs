//! Locations of many places in a form that is small: each text once, everything else numbers. This is how a sandboxed
//! parser answers; [`Located::location`] gives one place in words.

use super::answer::{Frame, Location, Reason, SymbolHit};
use super::build_id::BuildId;
use super::name::{MAX_NAME_BYTES, is_unsafe, safe};
use super::packed;
use serde::{Deserialize, Serialize};

/// Locations, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located {
    /// What people call the binary.
    pub module: String,
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// Every text that occurs.
    pub(super) texts: Vec<String>,
    /// Every reason that occurs.
    pub(super) reasons: Vec<Reason>,
    #[serde(with = "packed")]
    pub(super) rows: Vec<Row>,
    /// All frames, one place's after the other's.
    #[serde(with = "packed")]
    pub(super) frames: Vec<PackedFrame>,
    /// Which of the places lie in loops that only wait, and whether these try to take a lock.
    pub(super) waits: Vec<(u32, bool)>,
}

/// Name, symbol (number of a text or of a reason), distance from the symbol, frames (number of them, or of a reason).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row(pub u32, pub Known, pub u64, pub Known);

/// A number, or the number of the reason why there is none. As one number: even is yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Yes(u32),
    No(u32),
}

impl From<Known> for u64 {
    fn from(known: Known) -> u64 {
        match known {
            Known::Yes(number) => u64::from(number) << 1,
            Known::No(number) => u64::from(number) << 1 | 1,
        }
    }
}

impl From<u64> for Known {
    fn from(packed: u64) -> Known {
        let number = u32::try_from(packed >> 1).unwrap_or(u32::MAX);
        if packed & 1 == 0 { Known::Yes(number) } else { Known::No(number) }
    }
}

impl Default for Known {
    fn default() -> Known {
        Known::No(0)
    }
}

/// Function, file, line and column, each plus one; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedFrame(pub u32, pub u32, pub u32, pub u32);

/// One more than a number, to leave 0 for none.
pub(super) fn plus_one(number: Option<u32>) -> u32 {
    number.map_or(0, |number| number.saturating_add(1))
}

impl Located {
    /// How many places.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no place was asked for.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Frames of all places together.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Safe to print, whatever the texts contain.
    pub(super) fn make_safe(&mut self) {
        self.texts.iter_mut().for_each(|text| {
            if text.len() > MAX_NAME_BYTES || text.chars().any(is_unsafe) {
                *text = safe(text);
            }
        });
    }

    /// Every place in words.
    pub fn locations(&self) -> Vec<Location> {
        let mut next = 0;
        let mut locations: Vec<Location> =
            self.rows.iter().map(|row| self.location(row, &mut next)).collect();
        for (place, tries) in &self.waits {
            if let Some(location) = locations.get_mut(*place as usize) {
                (location.waits, location.tries) = (true, *tries);
            }
        }
        locations
    }

    fn location(&self, Row(name, symbol, distance, frames): &Row, next: &mut usize) -> Location {
        let text = |number: u32| self.texts.get(number as usize).cloned();
        let reason =
            |number: u32| self.reasons.get(number as usize).cloned().unwrap_or(Reason::NoSymbolForAddress);
        let symbol = match *symbol {
            Known::Yes(number) => {
                Ok(SymbolHit { name: text(number).unwrap_or_default(), distance: *distance })
            }
            Known::No(number) => Err(reason(number)),
        };
        let frames = match *frames {
            Known::Yes(count) => {
                let from = *next;
                *next = from.saturating_add(count as usize);
                let frames = self.frames.get(from..*next).unwrap_or_default();
                let one_less = |number: u32| number.checked_sub(1);
                Ok(frames
                    .iter()
                    .map(|&PackedFrame(function, file, line, column)| Frame {
                        function: one_less(function).and_then(text),
                        file: one_less(file).and_then(text),
                        line: one_less(line),
                        column: one_less(column),
                    })
                    .collect())
            }
            Known::No(number) => Err(reason(number)),
        };
        Location { name: text(*name).unwrap_or_default(), symbol, frames, waits: false, tries: false }
    }
}
