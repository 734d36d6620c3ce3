//! Time to attach to a program of 5,000 functions and to detach from it. The program's memory shows when breakpoints
//! appear and disappear.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use longpole_tests::{Background, workload};
use serde_json::json;

use crate::command;
use crate::measure::{Measurement, Need, Runs, Side};

const FUNCTIONS: usize = 5_000;
const LIMIT: Duration = Duration::from_secs(120);
/// The instruction by which the kernel replaces the first byte of a probed function (x86-64: int3).
const BREAKPOINT: u8 = 0xcc;

pub const ATTACH: Measurement = Measurement {
    name: "attach",
    about: "Attaching to and detaching from 5,000 functions",
    title: "Attaching to a program of 5,000 functions",
    needs: &[Need::Recorder],
    runs: Runs::Times(7),
    sides: |setting| {
        let program = workload::build_many_functions(FUNCTIONS)?;
        let run = move |_| {
            let mut target =
                Background::start(&mut Command::new(&program)).context("cannot start the program")?;
            target.line(LIMIT)?;
            let text = Text::of(&target.line(LIMIT)?, target.pid())?;
            ensure!(text.probed()? == 0, "breakpoints before anything was attached");
            let mut record = setting.call("record --force --exact --functions * --max-functions 6000 -o");
            record.arg(setting.file("attach.lp")).args(["-p", &target.pid().to_string()]);
            let ms = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
            let start = Instant::now();
            let mut record = Background::start(&mut record).context("longpole")?;
            text.wait_for(FUNCTIONS, &mut record)?;
            let attach = ms(start);
            // In this time, the program calls some of its functions now and then.
            std::thread::sleep(Duration::from_millis(500));
            let start = Instant::now();
            record.signal("INT")?;
            text.wait_for(0, &mut record)?;
            let detach = ms(start);
            let ended = record.wait(LIMIT)?;
            let end = ms(start);
            command::well(ended, "longpole record")?;
            ensure!(target.is_running()?, "the program did not survive");
            Ok(json!({ "attach": attach, "detach": detach, "end": end }))
        };
        Ok(vec![Side::new("5,000 functions", run)])
    },
    says: "Entry and exit probes on all of them, {runs} times, seen from the program's own memory. The targets are 1 \
           s and 0.5 s.",
    heads: "from | to | ms",
    rows: Some(|results| {
        let steps = [
            ("start of `longpole record -p PID` | last breakpoint in place", "attach"),
            ("^C | last breakpoint gone", "detach"),
            ("^C | longpole has ended, recording complete", "end"),
        ];
        let row = |(step, name)| Ok(format!("{step} | {}", results.at(0)?.spread(name, 1.0)?));
        steps.into_iter().map(row).collect()
    }),
    ..Measurement::NEW
};

/// The program's functions in its memory.
struct Text {
    memory: File,
    first: u64,
    length: usize,
    offsets: Vec<usize>,
}

impl Text {
    /// Reads the line of addresses that the program prints.
    fn of(line: &str, pid: u32) -> Result<Self> {
        let addresses: Result<Vec<u64>, _> =
            line.split_whitespace().map(|text| u64::from_str_radix(text, 16)).collect();
        let addresses = addresses.context("the program prints no addresses")?;
        let first = addresses.iter().copied().min().context("no addresses")?;
        let offsets: Result<Vec<usize>, _> =
            addresses.iter().map(|address| usize::try_from(address - first)).collect();
        let offsets = offsets.context("addresses far apart")?;
        let length = offsets.iter().max().map_or(1, |last| last + 1);
        let memory = File::open(format!("/proc/{pid}/mem")).context("cannot read the program's memory")?;
        Ok(Self { memory, first, length, offsets })
    }

    /// Number of functions that begin with a breakpoint.
    fn probed(&self) -> Result<usize> {
        let mut bytes = vec![0; self.length];
        self.memory.read_exact_at(&mut bytes, self.first).context("cannot read the program's memory")?;
        Ok(self.offsets.iter().filter(|offset| bytes.get(**offset) == Some(&BREAKPOINT)).count())
    }

    fn wait_for(&self, count: usize, record: &mut Background) -> Result<()> {
        let end = Instant::now() + LIMIT;
        loop {
            let probed = self.probed()?;
            if probed == count {
                return Ok(());
            }
            if Instant::now() > end || (count > 0 && !record.is_running()?) {
                bail!("{probed} of {FUNCTIONS} functions have a breakpoint instead of {count}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
