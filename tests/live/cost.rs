//! Tests of the cost of recording, and of its report.

mod overhead;
