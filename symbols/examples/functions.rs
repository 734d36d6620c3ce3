//! Lists a binary's functions with the source lines where they begin. Usage: functions FILE

use std::error::Error;
use std::path::PathBuf;

use symbols::{Place, functions_of, locate};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: functions FILE")?;
    let module = functions_of(&file)?;
    let places: Vec<Place> =
        module.functions().iter().map(|function| Place::Address(function.address)).collect();
    for (function, location) in module.functions().iter().zip(locate(&module, &places)) {
        let line = location.line().unwrap_or_else(|| "(no line)".to_owned());
        println!("{:#x} {:>6} bytes  {}  {line}", function.address, function.size, module.name(function));
    }
    Ok(())
}
