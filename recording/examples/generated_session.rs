//! Writes a recording of a generated program, for benchmarks: `generated_session FILE OPERATIONS THREADS`.

use engine::synth::{Execution, generate, large_program, sampled_recording};
use recording::{ClockAnchor, Meta, Overwrite, Writer};
use std::error::Error;
use std::path::Path;

/// Events between two chunks.
const CHUNK: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, operations, threads] = &arguments[..] else {
        return Err("usage: generated_session FILE OPERATIONS THREADS".into());
    };
    let program = large_program(operations.parse()?, threads.parse()?, 1);
    let execution = Execution { cpus: 8, operations: true, slice_ns: 20_000, ..Execution::default() };
    let generated = generate(&program, &execution)?;
    let recording = sampled_recording(generated.recording(), &generated.truth, |_| true, 499, 1_000);
    let clock = ClockAnchor { monotonic_ns: 1, realtime_ns: 1_700_000_000_000_000_000 };
    let meta = Meta {
        command: vec!["generated".into()],
        pids: vec![1000],
        cpu_count: 8,
        ..Meta::of_this_machine(clock)
    };
    let mut writer = Writer::create(Path::new(file), Overwrite::AnyFile, &meta)?;
    writer.facts(&recording.facts)?;
    for (number, event) in recording.events.iter().enumerate() {
        writer.push(event)?;
        if number % CHUNK == CHUNK - 1 {
            writer.flush()?;
        }
    }
    for note in &recording.notes {
        writer.note(note)?;
    }
    writer.finish(recording.facts.end.clone().ok_or("no end")?)?;
    Ok(())
}
