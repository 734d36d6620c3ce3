//! Chrome's trace event format (`chrome://tracing`, and all tools that read its JSON): the same content as `perfetto`,
//! for tools that do not read that format. Its text is some thousand times as long as the recording, and browsers do
//! not open more than some ten megabytes. So there is a level of detail ([`super::detail`]).

mod measured;
mod paths;
mod trace;

use super::Model;
use super::detail::LeftOut;
use std::io::{self, Write};
use trace::Trace;

/// Metadata that sets the trace's level of detail in viewers.
#[derive(serde::Serialize)]
struct LevelOfDetail {
    quantum_ns: u64,
    left_out: LeftOut,
}

/// Writes the trace with a level of detail that fits into `most` bytes. Returns the quantum, nanoseconds: shorter items
/// are joined or omitted; 0: all items are written.
pub fn write(model: &Model<'_>, most: Option<u64>, out: &mut dyn Write) -> io::Result<u64> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    // Reserves room for the beginning and the end. A third of all other entries is for critical paths.
    let most = most.map(|most| most.saturating_sub(1_000));
    let of_path = most.map(|most| most / 3 / model.cpus.len().max(1) as u64);
    let mut trace = Trace::new(out);
    let mut quantum = paths::write(model, of_path, &mut trace)?;
    if let Some(measured) = &model.measured {
        let most = most.map(|most| most.saturating_sub(trace.written));
        quantum = quantum.max(measured::write(measured, most, &mut trace)?);
    }
    let left_out = trace.left_out;
    write!(out, "\n]")?;
    if quantum > 0 {
        write!(out, ",\"otherData\":")?;
        serde_json::to_writer(&mut *out, &LevelOfDetail { quantum_ns: quantum, left_out })?;
    }
    writeln!(out, "}}")?;
    Ok(quantum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::About;
    use crate::input::{Input, Parts};
    use crate::plan::InputPlan;
    use engine::report::Cpus;
    use serde_json::Value;
    use std::collections::BTreeMap;

    /// A kept recording.
    fn kept(name: &str) -> Parts {
        let path = format!("{}/../tests/data/recordings/{name}.lp", env!("CARGO_MANIFEST_DIR"));
        Input::open(&InputPlan::whole(path.into())).expect("a recording").into_parts()
    }

    fn trace(parts: &Parts, most: Option<u64>) -> (Vec<u8>, Value, u64) {
        let cpus = Cpus::parse_list("1,4,inf").expect("a list");
        let model = Model::new(parts.timeline.as_ref(), &parts.program, cpus, About::default());
        let mut bytes = Vec::new();
        let quantum = write(&model.expect("a valid program"), most, &mut bytes).expect("written");
        let json = serde_json::from_slice(&bytes).expect("JSON");
        (bytes, json, quantum)
    }

    /// Nanoseconds of each state, stretch and lock by thread and name.
    fn sums(trace: &Value) -> BTreeMap<(u64, u64, String), f64> {
        let mut sums = BTreeMap::new();
        for event in trace["traceEvents"].as_array().expect("events") {
            let measured = event["pid"] != 0;
            let number = |name: &str| {
                let ns = event[name].as_f64().expect("a number") * 1_000.0;
                if measured { ns.round() } else { ns }
            };
            let ns = match event["ph"].as_str().expect("a phase") {
                "X" => number("dur"),
                "b" => -number("ts"),
                "e" => number("ts"),
                _ => continue,
            };
            let track = |name: &str| event[name].as_u64().expect("a number");
            let key = (track("pid"), track("tid"), event["name"].as_str().expect("a name").to_owned());
            *sums.entry(key).or_insert(0.0) += ns;
        }
        // States of length zero are missing in a coarse trace.
        sums.retain(|_, ns| *ns != 0.0);
        sums
    }

    fn count(trace: &Value, ph: &str) -> u64 {
        trace["traceEvents"].as_array().expect("events").iter().filter(|event| event["ph"] == ph).count()
            as u64
    }

    #[test]
    fn a_coarse_trace_fits_and_keeps_the_sums_of_each_thread_and_state() {
        for name in ["store", "attached", "pipeline"] {
            let parts = kept(name);
            let (bytes, all, quantum) = trace(&parts, None);
            assert_eq!((quantum, &all["otherData"]), (0, &Value::Null), "{name}");
            let same = trace(&parts, Some(3 * bytes.len() as u64));
            assert!(same.0 == bytes && same.2 == 0, "{name}: what fits is written as it is");
            for part in [4, 20] {
                let most = bytes.len() as u64 / part;
                let (bytes, coarse, quantum) = trace(&parts, Some(most));
                assert!(bytes.len() as u64 <= most && quantum > 0, "{name}: {} of {most}", bytes.len());
                let (all_sums, sums) = (sums(&all), sums(&coarse));
                assert!(all_sums.keys().eq(sums.keys()), "{name}");
                for ((key, ns), all_ns) in sums.iter().zip(all_sums.values()) {
                    // Ends of a path's stretches are rounded.
                    let most = if key.0 == 0 { 1_000.0 } else { 0.0 };
                    assert!((ns - all_ns).abs() <= most, "{name} {key:?}: {ns} of {all_ns}");
                }
                let left_out = &coarse["otherData"]["left_out"];
                for (ph, what) in [("B", "calls"), ("s", "wake_ups")] {
                    let told = left_out[what].as_u64().expect("a number");
                    assert_eq!(count(&coarse, ph) + told, count(&all, ph), "{name}: {what}");
                }
                assert!(count(&coarse, "f") <= count(&coarse, "s"), "{name}: arrows that end begin");
            }
        }
    }
}
