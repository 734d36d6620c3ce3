//! The `longpole` command.
fn main() {}
