//! Condition variables.

use crate::program::Operation;

/// What the condition variables of a recording stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {}

impl Conditions {
    pub(super) fn gives(&self, _number: u32, _list: &mut Vec<Operation>) {}
    pub(super) fn is_simulated(&self, _object: u32) -> bool {
        false
    }
    pub(super) fn decides(&self, _number: u32) -> bool {
        false
    }
    pub(super) fn keeps_mutex(&self, _number: u32) -> bool {
        false
    }
    pub(super) fn meets(&self, _number: u32, _list: &mut Vec<Operation>) {}
    pub(super) fn before_give(&self, _number: u32, _list: &mut Vec<Operation>) {}
    pub(super) fn before_take(&self, _number: u32, _list: &mut Vec<Operation>) {}
}
