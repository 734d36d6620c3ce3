//! Locations of many places in a compact form: each text is stored once, and everything else consists of numbers. A
//! sandboxed parser sends this form, and `Located::locations` expands it.

use super::packed;
use crate::answer::{Frame, Location, Reason, SymbolHit};
use crate::elf::BuildId;
use crate::names::{MAX_NAME_BYTES, is_unsafe, safe};
use serde::{Deserialize, Serialize};

/// Locations, in the order of the places in the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located {
    /// The binary's name in messages.
    pub module: String,
    /// The binary's build-id.
    pub build_id: Option<BuildId>,
    /// The texts, without repetitions.
    pub(super) texts: Vec<String>,
    /// The reasons, without repetitions.
    pub(super) reasons: Vec<Reason>,
    #[serde(with = "packed")]
    pub(super) rows: Vec<Row>,
    /// The frames of all places, place after place.
    #[serde(with = "packed")]
    pub(super) frames: Vec<PackedFrame>,
    /// The places that lie in loops that only wait, and whether the loop tries to take a lock.
    pub(super) waits: Vec<(u32, bool)>,
}

/// One place. The first two fields are the number of its name, and the number of its symbol or of a reason. The third
/// field is its distance from the symbol in bytes. The last one is its number of frames, or the number of a reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Row(pub u32, pub Known, pub u64, pub Known);

/// A number, or the number of the reason why it is unknown. Packed into one integer, an even integer means `Yes`.
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

/// Function, file, line and column of a frame. Each field is a number plus one; 0 means that there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedFrame(pub u32, pub u32, pub u32, pub u32);

/// A number plus one; 0 means `None`.
pub(super) fn plus_one(number: Option<u32>) -> u32 {
    number.map_or(0, |number| number.saturating_add(1))
}

impl Located {
    /// Number of places.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no places.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of frames of all places.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Makes all texts safe to print.
    pub(crate) fn make_safe(&mut self) {
        self.texts.iter_mut().for_each(|text| {
            if text.len() > MAX_NAME_BYTES || text.chars().any(is_unsafe) {
                *text = safe(text);
            }
        });
    }

    /// All locations, in order.
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
