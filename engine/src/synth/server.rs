//! Recordings of a server with one thread, whose requests take known times.

use super::execution::Execution;
use super::machine::GenerateError;
use super::recording::generate;
use super::sampling::sampled_recording;
use crate::event::{OtherProgram, OtherPrograms, Overhead, Recording, RequestSums, Requests};
use crate::numbers::Numbers;
use crate::program::{Function, FunctionRef, Operation, Program, Thread};
use crate::time::Ticks;
use probe_abi::{Answer, Kind, REQUEST_BUCKETS, Record, request_bucket};

/// A server, and the load on it. Single CPU times differ by up to a twentieth from these, pauses by up to all of it.
#[derive(Clone, Debug)]
pub struct Service {
    /// Name of the process.
    pub name: &'static str,
    /// Functions, each with its CPU time for a request, nanoseconds.
    pub functions: Vec<(&'static str, u64)>,
    /// Number of requests, one after the other.
    pub requests: u64,
    /// Sleep after each request, nanoseconds.
    pub pause_ns: u64,
    /// Time that each request lies in the socket before, nanoseconds.
    pub unread_ns: u64,
    /// Connections of clients.
    pub connections: u64,
    /// CPUs that another program keeps busy meanwhile.
    pub others: f64,
    /// Seed of the single times.
    pub seed: u64,
}

impl Default for Service {
    fn default() -> Service {
        Service {
            name: "server",
            functions: vec![("parse", 100_000), ("answer", 300_000)],
            requests: 1_000,
            pause_ns: 600_000,
            unread_ns: 200_000,
            connections: 4,
            others: 0.0,
            seed: 1,
        }
    }
}

/// The recording of a server, with samples of its functions and without probes.
///
/// # Errors
/// Those of [`generate`].
pub fn server_recording(service: &Service) -> Result<Recording, GenerateError> {
    let (mut numbers, mut pauses) = (Numbers::new(service.seed), Numbers::new(!service.seed));
    let mut about = |ns: u64| Ticks::from_ns(ns - ns / 20 + numbers.below(ns / 10 + 1));
    let functions = service.functions.iter();
    let mut operations = Vec::new();
    for _ in 0..service.requests {
        operations.extend(
            (0..)
                .zip(&service.functions)
                .map(|(place, (_, ns))| Operation::ExecIn(FunctionRef(place), about(*ns))),
        );
        operations.push(Operation::Sleep(Ticks::from_ns(pauses.below(2 * service.pause_ns + 1).max(1_000))));
    }
    let program = Program {
        functions: functions
            .map(|(name, _)| Function { name: (*name).to_owned(), ..Function::default() })
            .collect(),
        threads: vec![Thread { name: service.name.to_owned(), operations, ..Thread::default() }],
        ..Program::default()
    };
    let generated = generate(&program, &Execution { seed: service.seed, ..Execution::default() })?;
    let all = sampled_recording(generated.recording(), &generated.truth, |_| false, 499, 1_000);
    Ok(with_requests(all, service))
}

/// Adds an answer at each end of the thread's work, their sums, and the cost of the recording.
fn with_requests(mut recording: Recording, service: &Service) -> Recording {
    let mut sums = RequestSums {
        served: true,
        family: 2,
        port: 80,
        buckets: vec![0; REQUEST_BUCKETS],
        ..RequestSums::default()
    };
    let (start_ns, mut began_ns, mut busy_ns) = (recording.facts.start_ns, recording.facts.start_ns, 0);
    let mut events = Vec::new();
    for record in std::mem::take(&mut recording.events) {
        if let Record::Switch(switch) = &record {
            let header = switch.header;
            if header.tid == 0 {
                began_ns = header.time_ns;
            } else {
                let answered_ns = header.time_ns - began_ns;
                busy_ns += answered_ns;
                let arrived_ns = began_ns.saturating_sub(service.unread_ns).max(start_ns);
                let took_ns = header.time_ns - arrived_ns;
                sums.pid = header.pid;
                sums.count += 1;
                sums.queued_ns += began_ns - arrived_ns;
                sums.answered_ns += answered_ns;
                sums.longest_ns = sums.longest_ns.max(took_ns);
                sums.buckets[request_bucket(took_ns)] += 1;
                events.push(Record::Answer(Answer {
                    header: probe_abi::Header { kind: Kind::Answer as u8, ..header },
                    arrived_ns,
                    read_ns: began_ns,
                    reader: header.tid,
                    port: sums.port,
                    family: sums.family,
                }));
            }
        }
        events.push(record);
    }
    recording.events = events;
    if let Some(end) = &mut recording.facts.end {
        let wall_ns = end.end_ns - start_ns;
        let again = sums.count.saturating_sub(service.connections);
        let open_ns = sums.all_ns();
        let idle_ns = (service.connections * wall_ns).saturating_sub(open_ns);
        let sums = RequestSums { again, again_ns: open_ns, between_ns: idle_ns, ..sums };
        end.requests = Some(Requests { sums: vec![sums], counted_ns: wall_ns, ..Requests::default() });
        end.overhead = Some(Overhead { wall_ns, target_ns: busy_ns, ..Overhead::default() });
        let cpu_ns = (service.others * wall_ns as f64) as u64;
        let other = OtherProgram { name: "other".to_owned(), processes: 1, cpu_ns };
        end.others = Some(OtherPrograms { measured_ns: wall_ns, programs: vec![other], children: None });
    }
    recording
}
