//! Predictions for more CPUs than this machine has, compared with the same program on an emulated machine. On the
//! emulated machine, a thread that computes takes one of P tokens and sleeps. Locks and wake-ups are real
//! (tests/workloads/common.h).

use anyhow::Result;
use longpole_tests::workload;
use serde_json::{Value, json};

use super::attached;
use super::programs::{LIMIT, SCALABLE, launch};
use crate::command;
use crate::measure::{Measurement, Need, Runs, Setting, Side, in_turns};
use crate::sample::{Sample, digits};

/// The CPU counts. Speed-ups are relative to the first one.
const CPUS: [u64; 6] = [1, 2, 4, 8, 16, 32];
/// Only predictions for more CPUs than this count, because this machine cannot show the others.
const BEYOND: u64 = 2;

/// The programs with their arguments. Each piece of work takes at least a millisecond, so that waking a sleeping thread
/// is a small part.
const SUBJECTS: [(&str, &str, &str); 12] = [
    ("barriers, 16 threads", "phases.c", "16 40 4000000"),
    ("a pool of 16 threads", "pool.c", "16 800 4000000"),
    ("a pool of 40 threads", "pool.c", "40 800 4000000"),
    ("readers and writers, 16 threads", "readers.c", "16 60 2000000 20"),
    ("a hot lock, 8 threads", "convoy.c", "30 8 6000000"),
    ("one lock of 16 threads, held a third of the time", "store.c", "16 60 1 2000000 1000000"),
    ("the same with the lock split in 8", "store.c", "16 60 8 2000000 1000000"),
    ("fork and join, 12 branches", "forkjoin.c", "30 12 5000000"),
    ("a pipeline of three stages", "pipeline.c", "300 4 1000000"),
    ("a queue of eight", "producer_consumer.c", "150 1000000"),
    ("handing a token on", "handoff.c", "400 8 4000000"),
    ("work stealing, 16 threads", "stealing.c", "16 3000000000 4000000"),
];

pub const EMULATED: Measurement = Measurement {
    name: "emulated",
    about: "Speed-ups on an emulated machine of up to 32 CPUs",
    title: "Beyond this machine: emulated CPUs",
    needs: &[Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let side = |(title, source, words)| {
            Side::new(format!("{title} ({source})"), move |_| compared(setting, source, words))
        };
        Ok(SUBJECTS.map(side).into())
    },
    says: "Speed-ups relative to one CPU, measured / predicted. Measured on an emulated machine: a thread that \
           computes takes one of P tokens, sleeps as long as it would compute, and returns the token after a slice \
           of 4 ms at the latest. Locks, queues and wake-ups are real\n({runs} runs, medians). Predicted from one \
           recording of the same program that computes, on the CPUs of this machine.\nThe emulation has no caches \
           and memory that CPUs share. A thread that wakes up waits for the end of a slice there, whereas Linux runs \
           a short job first: the pool's main thread, which adds up results.",
    heads: "program | 2 CPUs | 4 CPUs | 8 CPUs | 16 CPUs | 32 CPUs",
    rows: Some(|results| {
        let cell =
            |[measured, predicted]: [f64; 2]| format!(" | {} / {}", digits(measured), digits(predicted));
        let row = |(title, value)| {
            format!("{title}{}", pairs(value).map(|(_, pair)| cell(pair)).collect::<String>())
        };
        Ok(results.values().map(row).collect())
    }),
    ends: |results| {
        let all = results.values().flat_map(|(_, value)| pairs(value)).filter(|(cpus, _)| *cpus > BEYOND);
        let errors: Sample = all.map(|(_, [real, told])| 100.0 * (told / real - 1.0).abs()).collect();
        Ok(format!("Errors on more than {BEYOND} CPUs in percent, middle (smallest–largest): {errors}."))
    },
    ..Measurement::NEW
};

/// Measured and predicted speed-ups, by number of CPUs. One CPU is left out.
fn pairs(value: &Value) -> impl Iterator<Item = (u64, [f64; 2])> {
    let of = |name: &str, at: usize| value[name][at].as_f64().unwrap_or(f64::NAN);
    CPUS.into_iter()
        .enumerate()
        .skip(1)
        .map(move |(at, cpus)| (cpus, [of("measured", at), of("predicted", at)]))
}

fn compared(setting: &Setting, source: &str, words: &str) -> Result<Value> {
    let (program, file) = (workload::build_with(source, &SCALABLE)?, setting.file("emulated.lp"));
    launch(setting, "", &program, words, &file)?;
    let predicted = attached::predicted(setting, &CPUS[1..], &file)?;
    let times = in_turns(setting.runs, CPUS.len(), false, |at| {
        let mut run = command::line(&program, words);
        command::seconds(run.env("WORKLOAD_CPUS", CPUS[at].to_string()), LIMIT)
    })?;
    let measured: Vec<f64> = times.iter().map(|time| times[0].median() / time.median()).collect();
    let predicted = [&[1.0], &predicted[..]].concat();
    Ok(json!({ "measured": measured, "predicted": predicted }))
}
