//! Measures how long it takes to look up addresses, for `./x bench symbols`.
//!
//! `symbols_bench addresses BINARY COUNT` prints addresses in the binary's functions, the same ones each time. `symbols_bench
//! lookup BINARY LONGPOLE ADDRESSES` looks them up as longpole does, in a process without rights. It prints one line of JSON:
//! time to the first answer, time for all, frames, memory.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use symbols::{Parsers, Place, functions_of};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["addresses", binary, count] => addresses(Path::new(binary), count.parse()?),
        ["lookup", binary, longpole, addresses] => {
            lookup(Path::new(binary), Path::new(longpole), Path::new(addresses))
        }
        _ => Err("symbols_bench addresses BINARY COUNT | lookup BINARY LONGPOLE ADDRESSES".into()),
    }
}

fn addresses(binary: &Path, count: usize) -> Result<(), Box<dyn Error>> {
    let module = functions_of(binary)?;
    let functions: Vec<_> = module.functions().iter().filter(|function| function.size > 0).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit.max(1)
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for _ in 0..count {
        let Some(function) = functions.get(next(functions.len() as u64) as usize) else { break };
        writeln!(out, "{:#x}", function.address + next(function.size))?;
    }
    out.flush()?;
    Ok(())
}

fn lookup(binary: &Path, longpole: &Path, addresses: &Path) -> Result<(), Box<dyn Error>> {
    let mut places = Vec::new();
    for line in std::fs::read_to_string(addresses)?.lines() {
        places.push(Place::Address(u64::from_str_radix(line.trim().trim_start_matches("0x"), 16)?));
    }
    let began = Instant::now();
    let mut parser = Parsers::sandboxed(longpole).open(binary, "binary")?;
    parser.locate(places.get(..1).unwrap_or_default())?;
    let load_ns = began.elapsed().as_nanos();
    let began = Instant::now();
    let located = parser.locate(&places)?;
    let first_ns = began.elapsed().as_nanos();
    let began = Instant::now();
    parser.locate(&places)?;
    let again_ns = began.elapsed().as_nanos();
    let status = parser.process().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")));
    let status = status.transpose()?.unwrap_or_default();
    let kib = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    let known = located.locations().iter().filter(|location| location.frames.is_ok()).count();
    writeln!(
        std::io::stdout(),
        "{{\"addresses\":{},\"known\":{known},\"frames\":{},\"load_ns\":{load_ns},\"first_ns\":{first_ns},\
         \"again_ns\":{again_ns},\"peak_kib\":{},\"own_kib\":{},\"mapped_kib\":{}}}",
        located.len(),
        located.frame_count(),
        kib("VmHWM:"),
        kib("RssAnon:"),
        kib("RssFile:"),
    )?;
    Ok(())
}
