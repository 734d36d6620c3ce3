//! The commands that read: one file each.

pub mod doctor;
pub mod export;
pub mod info;
mod output;
pub mod predict;
pub mod report;
