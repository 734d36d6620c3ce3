//! Writes the middle of a recording again and again, for benchmarks of large recordings: `repeated_session FROM TO TIMES`.
//! Prints the number of records.

use engine::event::Facts;
use engine::timeline::{excerpt, extent};
use probe_abi::Record;
use recording::{Meta, Overwrite, Writer};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, times] = &arguments[..] else {
        return Err("usage: repeated_session FROM TO TIMES".into());
    };
    let (recording, info) = recording::read(Path::new(from))?;
    let (begin_ns, end_ns) = extent(&recording);
    let tenth_ns = end_ns.saturating_sub(begin_ns) / 10;
    // Only the middle is repeated: its threads live all the time.
    let all = recording.events.len() as u64;
    let middle = excerpt(recording, begin_ns + tenth_ns, end_ns - tenth_ns, all);
    let (begin_ns, end_ns) = extent(&middle);
    let length_ns = end_ns.saturating_sub(begin_ns) + 1;
    let meta: Meta = info.meta.ok_or("a recording without a beginning")?;
    let mut writer = Writer::create(Path::new(to), Overwrite::AnyFile, &meta)?;
    writer.facts(&middle.facts)?;
    middle.notes.iter().try_for_each(|note| writer.note(note))?;
    let (times, mut records) = (times.parse::<u64>()?, 0u64);
    for turn in 0..times {
        // Each repetition begins with the threads of the first, as in the snapshots that `record` writes.
        let start_ns = begin_ns + turn * length_ns;
        let mut seen = Facts { start_ns, threads: middle.facts.threads.clone(), ..Facts::default() };
        seen.threads.iter_mut().for_each(|thread| thread.seen_ns += turn * length_ns);
        writer.snapshot(&seen)?;
        for event in &middle.events {
            writer.push(&later(event, turn * length_ns)?)?;
            records += 1;
        }
    }
    let mut end = middle.facts.end.ok_or("no end")?;
    end.end_ns += (times.max(1) - 1) * length_ns;
    writer.finish(end)?;
    println!("{records}");
    Ok(())
}

/// The same record, later by `by_ns`. Each record begins with its time.
fn later(event: &Record, by_ns: u64) -> Result<Record, Box<dyn Error>> {
    let mut bytes = event.as_bytes().to_vec();
    let time = bytes.first_chunk_mut::<8>().ok_or("a record without a time")?;
    *time = (u64::from_le_bytes(*time) + by_ns).to_le_bytes();
    Record::decode(&bytes).map_err(|error| format!("{error:?}").into())
}
