//! What recording costs, and that it is told.

mod overhead;
