//! Tests that counts are exact, and that missing records are counted, too.

mod exact_counts;
mod packets;
mod rings;
