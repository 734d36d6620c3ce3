//! Whether columns are worth their code: `plain_frames FILE...` compares the stored events of session files with the same
//! records as the kernel writes them, in zstd frames. It prints sizes, and CPU time to write and to read.

use std::error::Error;
use std::hint::black_box;
use std::io::{Cursor, Write as _};
use std::time::Instant;

use probe_abi::Record;
use recording::{EventChunks, Writer};

/// Records in a frame.
const RECORDS: usize = 1 << 16;
/// Number of runs; each time is the shortest of them.
const TIMES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    println!("| session | events | columns: MB | write ms | read ms | plain: MB | write ms | read ms |");
    println!("|---|---|---|---|---|---|---|---|");
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file)?;
        let (recording, about) = recording::read_from(Cursor::new(&bytes))?;
        let meta = about.meta.unwrap_or_default();
        let columns = event_bytes(&bytes)?;
        let read =
            shortest(|| recording::read_from(Cursor::new(&bytes)).map(|read| read.0.events.len()).ok());
        let write = shortest(|| {
            let mut chunks = EventChunks::default();
            let mut writer = Writer::new(tempfile::tempfile().ok()?, &meta).ok()?;
            for record in &recording.events {
                if let Some(chunk) = chunks.push(record).ok()? {
                    writer.events(chunk).ok()?;
                }
            }
            chunks.take().map_or(Ok(()), |chunk| writer.events(chunk)).ok()
        });
        let mut frames = Vec::new();
        let plain_write = shortest(|| {
            frames = plain(&recording.events).ok()?;
            let mut file = tempfile::tempfile().ok()?;
            frames.iter().try_for_each(|(_, frame)| file.write_all(frame)).ok()
        });
        let plain_read = shortest(|| {
            let mut count = 0;
            for (length, frame) in &frames {
                let raw = zstd::bulk::decompress(frame, *length).ok()?;
                let mut rest = &raw[..];
                while let [low, high, ..] = rest {
                    let length = usize::from(u16::from_le_bytes([*low, *high]));
                    let record = Record::decode(rest.get(2..2 + length)?).ok()?;
                    count += black_box(record).header().time_ns.min(1) as usize;
                    rest = &rest[2 + length..];
                }
            }
            Some(count)
        });
        let plain_bytes: usize = frames.iter().map(|(_, frame)| frame.len()).sum();
        let mb = |bytes: usize| bytes as f64 / 1e6;
        println!(
            "| {file} | {} | {:.2} | {write:.1} | {read:.1} | {:.2} | {plain_write:.1} | {plain_read:.1} |",
            recording.events.len(),
            mb(columns),
            mb(plain_bytes),
        );
    }
    Ok(())
}

/// Frames of records, each record after its length; a frame has its unpacked size in bytes.
fn plain(events: &[Record]) -> std::io::Result<Vec<(usize, Vec<u8>)>> {
    let mut zstd = zstd::bulk::Compressor::new(1)?;
    let mut frames = Vec::new();
    for events in events.chunks(RECORDS) {
        let mut raw = Vec::new();
        for event in events {
            let bytes = event.as_bytes();
            raw.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            raw.extend_from_slice(bytes);
        }
        frames.push((raw.len(), zstd.compress(&raw)?));
    }
    Ok(frames)
}

/// Bytes of the chunks of events in a file (kind 3; see the documentation of version 1 of the format).
fn event_bytes(file: &[u8]) -> Result<usize, Box<dyn Error>> {
    let (mut at, mut sum) = (20, 0);
    while let Some(header) = file.get(at..at + 44) {
        let kind = u16::from_le_bytes(header[4..6].try_into()?);
        let stored = u32::from_le_bytes(header[8..12].try_into()?) as usize;
        at += 44 + stored;
        sum += if kind == 3 { 44 + stored } else { 0 };
    }
    Ok(sum)
}

/// The shortest time that `work` takes, ms.
fn shortest<T>(mut work: impl FnMut() -> Option<T>) -> f64 {
    let times = (0..TIMES).map(|_| {
        let begin = Instant::now();
        black_box(work());
        begin.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}
