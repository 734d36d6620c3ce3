//! Tests of reading binaries that need longpole's own binary, which is also the process without rights.

mod sandboxed;
#[path = "../../../symbols/tests/sources.rs"]
mod sources;
mod symbolized;
