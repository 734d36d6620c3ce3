//! Counts are exact, and missing records are counted, too.

mod exact_counts;
mod packets;
mod rings;
