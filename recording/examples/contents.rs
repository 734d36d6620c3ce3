//! Prints the content of a recording: `contents FILE`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: contents FILE")?;
    let (recording, about) = recording::read(Path::new(&file))?;
    if let Some(meta) = &about.meta {
        println!(
            "{} on {}, {} CPUs, Linux {}",
            meta.command.join(" "),
            meta.host,
            meta.cpu_count,
            meta.kernel_release
        );
    }
    println!("{} functions, {} notes", recording.facts.functions.len(), recording.notes.len());
    let mut by_kind = BTreeMap::new();
    for event in &recording.events {
        *by_kind.entry(event.kind()).or_insert(0u64) += 1;
    }
    for (kind, events) in by_kind {
        println!("{events:>10} × {kind:?}");
    }
    if let Some(damage) = about.damage {
        println!("incomplete: {:?}", damage.kind);
    }
    Ok(())
}
