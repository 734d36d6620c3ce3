//! Counts are exact, and what is missing is counted, too.

mod exact_counts;
mod packets;
mod rings;
