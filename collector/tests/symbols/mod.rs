//! Tests of reading binaries that need longpole itself, which is the process without rights.

mod sandboxed;
#[path = "../../../symbols/tests/sources.rs"]
mod sources;
mod symbolized;
