//! What limits a program on the largest of 1 to 16 CPUs, and on its recorded machine if known. usage: limits PROGRAM.json
//! (docs/program-format.md; `longpole export -f program` makes one of a recording)

use std::error::Error;

use engine::limit::limits;
use engine::predict::Model;
use engine::report::Cpus;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: limits PROGRAM.json")?;
    let program = engine::program::json::read(&std::fs::read_to_string(file)?)?;
    let cpus: Vec<Cpus> = [1, 2, 4, 8, 16].into_iter().filter_map(Cpus::count).collect();
    for limit in limits(&program, &cpus, &Model::default()).at {
        println!(
            "{:>2} CPUs: {:>10.3} ms, limited by {}; at most {:.0} % less without it",
            limit.cpus,
            limit.time_ns / 1e6,
            limit.kind.name(),
            limit.gain() * 100.0
        );
    }
    Ok(())
}
