//! The cost of recording, and that it is reported.

mod overhead;
