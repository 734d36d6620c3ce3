//! Compiles and runs small target programs, and records them.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use capture::probe::{Capture, CaptureOptions, ProbeFunction};
use engine::event::{LossCounts, Note};
use longpole_tests::workload::{self, Problem};
use longpole_tests::{Background, Ended};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use probe_abi::Record;
use symbols::binary::Binary;

/// A target that takes longer than this fails its test.
const LIMIT: Duration = Duration::from_secs(60);

/// A small compiled program.
pub struct Program {
    pub path: PathBuf,
}

/// Compiles C (`c`), C++ (`cpp`) or Rust (`rs`) with debug information and some optimization, as real programs are
/// compiled. C and C++ programs get a function `gate`.
pub fn compile(extension: &str, source: &str, flags: &[&str]) -> Result<Program, Problem> {
    let (compiler, usual): (_, &[&str]) = match extension {
        "rs" => ("rustc", &["-g", "--edition=2024"]),
        "cpp" => ("c++", &C_FLAGS),
        _ => ("cc", &C_FLAGS),
    };
    let gate = if extension == "rs" { "" } else { GATE };
    let text = format!("{gate}{source}");
    let path = workload::compile_text("target", compiler, &[usual, flags].concat(), &text)?;
    Ok(Program { path })
}

const C_FLAGS: [&str; 6] =
    ["-g", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread", "-D_GNU_SOURCE"];

impl Program {
    /// Starts the program. The target waits for a byte on its standard input (see [`compile`]).
    pub fn start(&self) -> Target {
        let target = Target(Background::must_start(&mut Command::new(&self.path)));
        // When the target waits at the gate, the loader has finished.
        target.wait_for(|stat| stat.contains(" S "));
        target
    }

    /// Runs the program to its end without any probes.
    pub fn run_plain(&self) -> Ended {
        self.start().finish()
    }

    /// A function's code. The address is right only for programs linked with `-no-pie`.
    pub fn code(&self, name: &str) -> Code {
        let data = std::fs::read(&self.path).expect("target");
        let file = object::File::parse(&*data).expect("ELF");
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).expect("function");
        let start = functions(&self.path, &[name])[0].entry_offset as usize;
        Code { address: symbol.address(), bytes: data[start..start + symbol.size() as usize].to_vec() }
    }

    /// The places of the probes of these functions. Functions are numbered from 0, in the given order.
    pub fn functions(&self, names: &[&str]) -> Vec<ProbeFunction> {
        functions(&self.path, names)
    }
}

/// The machine code of a function, as in the file.
pub struct Code {
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// The function `gate`, which precedes all C and C++ code: it waits for a byte on standard input.
const GATE: &str =
    "#include <unistd.h>\nstatic void gate(void) { char c; if (read(0, &c, 1) != 1) _exit(99); }\n";

/// A running target.
pub struct Target(Background);

impl Target {
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Sends the byte for which `gate` waits.
    pub fn open_gate(&mut self) {
        self.0.say("").expect("the target waits");
    }

    /// Waits until `seen` accepts the target's /proc/PID/stat and the target is not on a CPU.
    pub fn wait_for(&self, seen: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
            let wchan = std::fs::read_to_string(format!("/proc/{}/syscall", self.pid())).unwrap_or_default();
            if seen(&stat) && !wchan.starts_with("running") {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the target did not come to its gate");
    }

    /// The target's memory at this moment.
    pub fn memory(&self, address: u64, length: usize) -> Vec<u8> {
        let file = std::fs::File::open(format!("/proc/{}/mem", self.pid())).expect("own child");
        let mut bytes = vec![0; length];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, address).expect("mapped");
        bytes
    }

    /// Whether the target has ended.
    pub fn has_ended(&mut self) -> bool {
        !self.0.is_running().expect("own child")
    }

    /// Opens the gate if the target still waits at it, and waits for the target's end.
    pub fn finish(mut self) -> Ended {
        let _ = self.0.say("");
        self.0.close_stdin();
        self.0.wait(LIMIT).expect("its end")
    }
}

/// The records and counts of a capture, from the opening of a target's gate to its end.
pub struct Recorded {
    pub outcome: Ended,
    pub records: Vec<Record>,
    pub notes: Vec<Note>,
    pub loss: LossCounts,
    pub calls: Vec<u64>,
    pub pid: u32,
}

/// Options with rings that are large enough for all records of a test.
pub fn options(pid: u32) -> CaptureOptions {
    CaptureOptions {
        most_functions: 0,
        pids: vec![pid],
        optional_pids: 0,
        children: false,
        running: false,
        functions: Vec::new(),
        libc: Vec::new(),
        uprobes: true,
        link_program: Some(longpole_tests::binary().to_owned()),
        ring_bytes: 1 << 24,
        max_rate_hz: 0,
        budget_ppm: None,
        sampling: None,
        fitting_samples: false,
        max_depth: 0,
        every_request: false,
        thread_contexts: false,
    }
}

/// Records a target from the opening of its gate to its end, with probes on `names`.
pub fn record(program: &Program, names: &[&str]) -> Recorded {
    record_with(program, |options| options.functions = program.functions(names))
}

/// Records a target from the opening of its gate to its end.
pub fn record_with(program: &Program, change: impl FnOnce(&mut CaptureOptions)) -> Recorded {
    let mut target = program.start();
    let pid = target.pid();
    let mut options = options(pid);
    change(&mut options);
    let count = options.functions.len();
    let mut capture = Capture::start(options).expect("capture");
    assert_eq!(capture.take_refused(), Vec::<u32>::new());
    // Opens the gate, and the second gate that some targets have.
    target.open_gate();
    target.open_gate();
    let mut records = Vec::new();
    let mut bad = 0;
    loop {
        let ended = target.has_ended();
        drain(&mut capture, &mut records, &mut bad);
        if ended {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let outcome = target.finish();
    capture.end();
    drain(&mut capture, &mut records, &mut bad);
    assert_eq!(bad, 0, "bytes that are no record");
    records.sort_by_key(|record| record.header().time_ns);
    let calls = (0..count as u32).map(|number| capture.calls(number).expect("counted")).collect();
    let mut notes = capture.take_notes();
    let summary = capture.stop();
    notes.extend(summary.notes);
    Recorded { outcome, records, notes, loss: summary.loss, calls, pid }
}

/// Reads records until no more are left.
pub fn drain(capture: &mut Capture, records: &mut Vec<Record>, bad: &mut u64) {
    while capture.drain(&mut |_, bytes| match Record::decode(bytes) {
        Ok(record) => records.push(record),
        Err(_) => *bad += 1,
    }) > 0
    {}
}

impl Recorded {
    /// Number of entries and exits of one function.
    pub fn entries_and_exits(&self, number: u32) -> (usize, usize) {
        // A record that only reports hits without records is no entry.
        let is_entry =
            |e: &probe_abi::FunctionEnter| e.function == number && e.silent < probe_abi::SILENT_AT_ONCE;
        let entries = self.records.iter().filter(|r| matches!(r, Record::FunctionEnter(e) if is_entry(e)));
        let exits =
            self.records.iter().filter(|r| matches!(r, Record::FunctionExit(e) if e.function == number));
        (entries.count(), exits.count())
    }

    /// Number of missing sequence numbers between the first and the last record of each CPU.
    pub fn holes(&self) -> u64 {
        let mut cpus = std::collections::BTreeMap::<u16, Vec<u32>>::new();
        for record in &self.records {
            cpus.entry(record.header().cpu).or_default().push(record.header().sequence);
        }
        let mut holes = 0;
        for sequence in cpus.values_mut() {
            sequence.sort_unstable();
            let span = u64::from(sequence[sequence.len() - 1] - sequence[0]) + 1;
            sequence.dedup();
            holes += span - sequence.len() as u64;
        }
        holes
    }
}

/// Finds entries and exits of functions by their symbol names. Exits are every `ret` and every jump out of the
/// function.
pub fn functions(binary: &Path, names: &[&str]) -> Vec<ProbeFunction> {
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};
    let data = std::fs::read(binary).expect("target");
    let file = object::File::parse(&*data).expect("ELF");
    let opened = Arc::new(Binary::open(binary, "target").expect("target"));
    let mut found = Vec::new();
    for (id, name) in names.iter().enumerate() {
        let symbol = file
            .symbols()
            .find(|symbol| symbol.name() == Ok(name) && symbol.size() > 0)
            .unwrap_or_else(|| panic!("no function {name}"));
        let section = file.section_by_index(symbol.section_index().expect("defined")).expect("section");
        let (section_offset, _) = section.file_range().expect("in the file");
        let offset_of = |address: u64| address - section.address() + section_offset;
        let start = offset_of(symbol.address()) as usize;
        let code = &data[start..start + symbol.size() as usize];
        let mut decoder = Decoder::with_ip(64, code, symbol.address(), DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let inside = symbol.address()..symbol.address() + symbol.size();
        let mut exit_offsets = Vec::new();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let leaves = match instruction.flow_control() {
                FlowControl::Return => true,
                FlowControl::UnconditionalBranch => {
                    matches!(instruction.op0_kind(), OpKind::NearBranch64)
                        && !inside.contains(&instruction.near_branch_target())
                }
                _ => false,
            };
            if leaves {
                exit_offsets.push(offset_of(instruction.ip()));
            }
        }
        found.push(ProbeFunction {
            id: id as u32,
            pid: None,
            binary: Arc::clone(&opened),
            entry_offset: offset_of(symbol.address()),
            exit_offsets,
            pair: None,
            entry_stepped: false,
            exits_stepped: false,
        });
    }
    found
}
