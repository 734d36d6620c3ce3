//! longpole build and test commands.
fn main() {}
