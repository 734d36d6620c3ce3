//! Two hosts: threads of `web` ask `db`, and each request's times are known.

use super::*;
use crate::cpus::Cpus;
use crate::event::{Facts, HostFact, IDS_OF_A_HOST, ProcessFact, ThreadFact, ThreadState, WindowEnd};
use crate::numbers::Numbers;
use crate::predict::{Model, Timing};
use crate::timeline::{self, Timeline, Wake};
use probe_abi::{Call, Cause, Context, Exchange, Header, Kind, Switch, SwitchFlags, Waking};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
/// The true time at which recording begins.
const START: u64 = 1_000 * MS;

/// A host's records while they are written: a host with one CPU and one thread.
struct Host {
    tid: u32,
    events: Vec<Record>,
    /// How far its clock is ahead, and how much faster it runs, in millionths.
    ahead_ns: u64,
    faster_ppm: u64,
}

impl Host {
    fn new(tid: u32, ahead_ns: u64, faster_ppm: u64) -> Host {
        Host { tid, events: Vec::new(), ahead_ns, faster_ppm }
    }

    fn clock(&self, true_ns: u64) -> u64 {
        true_ns + self.ahead_ns + true_ns / 1_000_000 * self.faster_ppm
    }

    fn header(&self, true_ns: u64, kind: Kind, context: Context, tid: u32) -> Header {
        let (kind, context) = (kind as u8, context as u8);
        Header { time_ns: self.clock(true_ns), sequence: 0, cpu: 0, kind, context, tid, pid: tid }
    }

    /// The thread goes to sleep in a read, or comes back to the CPU.
    fn switch(&mut self, true_ns: u64, sleeps: bool) {
        let (tid, next) = if sleeps { (self.tid, 0) } else { (0, self.tid) };
        self.events.push(Record::Switch(Switch {
            header: self.header(true_ns, Kind::Switch, Context::Task, tid),
            next_tid: next,
            next_pid: next,
            prev_state: u32::from(sleeps),
            flags: if sleeps { SwitchFlags::PREV_TRACKED } else { SwitchFlags::NEXT_TRACKED },
            prev_user_sp: 0,
            prev_call: if sleeps { Call { number: 0, argument1: 0, argument0: 5 } } else { Call::NONE },
        }));
    }

    /// A packet wakes the thread.
    fn woken(&mut self, true_ns: u64) {
        self.events.push(Record::Waking(Waking {
            header: self.header(true_ns, Kind::Waking, Context::SoftIrq, 0),
            wakee_tid: self.tid,
            wakee_pid: self.tid,
            flags: 0,
            wakee_state: 1,
            waker_call: Call::NONE.number,
            cause: Cause::Network as u32,
            wakee_call: Call { number: 0, argument1: 0, argument0: 5 },
        }));
    }

    fn exchange(&mut self, true_ns: u64, (sent, arrived): (u64, u64), number: u32, served: u16) {
        self.events.push(Record::Exchange(Exchange {
            header: self.header(true_ns, Kind::Exchange, Context::Task, self.tid),
            sent_ns: self.clock(sent),
            arrived_ns: self.clock(arrived),
            read_ns: self.clock(if served == 1 { arrived + 10 * US } else { true_ns }),
            other: self.tid,
            request_end: number.wrapping_mul(100),
            answer_begin: number.wrapping_mul(7),
            port: 5432,
            served,
        }));
    }

    fn recorded(self, name: &str, end: u64) -> OfHost {
        let (start_ns, end_ns) = (self.clock(START), self.clock(end));
        let process = ProcessFact { pid: self.tid, comm: name.into(), ..ProcessFact::default() };
        let thread = ThreadFact {
            tid: self.tid,
            pid: self.tid,
            comm: name.into(),
            state: ThreadState::Running,
            seen_ns: start_ns,
            ..ThreadFact::default()
        };
        let facts = Facts {
            start_ns,
            processes: vec![process],
            threads: vec![thread],
            end: Some(WindowEnd { end_ns, ..WindowEnd::default() }),
            ..Facts::default()
        };
        OfHost {
            name: name.to_owned(),
            cpus: 1,
            recording: Recording { facts, events: self.events, notes: Vec::new() },
        }
    }
}

/// `web` computes for 1 ms, asks, and waits; `db` computes for 3 ms for each request. Messages are under way for 200 to 300 µs.
fn two_hosts(requests: u32) -> Vec<OfHost> {
    hosts_of(requests, true)
}

/// As [`two_hosts`]; if `web` does not wait, it computes until 1 ms after the answer lay in its socket, and then reads it.
fn hosts_of(requests: u32, waits: bool) -> Vec<OfHost> {
    let mut numbers = Numbers::new(3);
    let (mut web, mut db) = (Host::new(41, 0, 0), Host::new(42, 5_000 * MS, 20));
    let mut now = START;
    db.switch(now + 10 * US, true);
    if !waits {
        // One sleep, so that it is known to run.
        web.switch(now + US, true);
        web.woken(now + 2 * US);
        web.switch(now + 3 * US, false);
    }
    for number in 1..=requests {
        let sent = now + MS;
        if waits {
            web.switch(sent + 5 * US, true);
        }
        let arrived = sent + 200 * US + numbers.below(100 * US);
        db.woken(arrived + US);
        db.switch(arrived + 5 * US, false);
        let answered = arrived + 5 * US + 3 * MS;
        db.exchange(answered, (answered, arrived), number, 1);
        db.switch(answered + 5 * US, true);
        let back = answered + 200 * US + numbers.below(100 * US);
        let read = if waits { back + 10 * US } else { back + MS };
        if waits {
            web.woken(back + US);
            web.switch(back + 5 * US, false);
        }
        web.exchange(read, (sent, back), number, 0);
        now = read;
    }
    vec![web.recorded("web", now + MS), db.recorded("db", now + MS)]
}

fn joined() -> (Recording, Timeline) {
    let joined = join(two_hosts(400)).expect("joined");
    let timeline = timeline::build(&joined);
    (joined, timeline)
}

#[test]
fn the_other_host_s_clock_is_found_from_messages_both_ways() {
    let (joined, timeline) = joined();
    let [web, db] = &joined.facts.hosts[..] else { panic!("two hosts") };
    assert_eq!((web.clock_ahead_ns, web.clock_error_ns, web.first_cpu, db.first_cpu), (0, 0, 0, 1));
    let middle = u64::midpoint(timeline.start.0, timeline.end.0);
    let truth = (5_000 * MS + middle / 1_000_000 * 20) as i64;
    assert!((db.clock_ahead_ns - truth).unsigned_abs() < 50 * US, "{} {truth}", db.clock_ahead_ns);
    assert!((200 * US..=300 * US).contains(&db.clock_error_ns), "{}", db.clock_error_ns);
    assert_eq!(db.messages, 800);
}

#[test]
fn messages_between_hosts_end_waits_and_keep_their_time_under_way() {
    let (_, timeline) = joined();
    let of = |tid: u32| timeline.threads.iter().find(|thread| thread.tid == tid).expect("a thread");
    let (web, db) = (of(41), of(42 + IDS_OF_A_HOST));
    let by_messages = |thread: &timeline::Thread| {
        thread
            .waits
            .iter()
            .filter(|wait| matches!(wait.wake, Wake::By(by) if timeline.messages.contains(&by)))
            .count()
    };
    assert_eq!((by_messages(web), by_messages(db)), (400, 400));
    for (number, wakeup) in (0u32..).zip(&timeline.wakeups) {
        let (wakee, _) = timeline.ended_by(wakeup).expect("each ends a wait");
        let end = wakee.spans().find_map(|(_, end, state)| match state {
            timeline::State::Blocked(wait) if wakeup.ended == Some(wait) => Some(end.0),
            _ => None,
        });
        let under_way = end.expect("an end") - wakeup.time.0;
        assert!((100 * US..=400 * US).contains(&under_way), "message {number}: {under_way} ns");
    }
}

#[test]
fn a_joined_recording_predicts_what_faster_work_on_the_other_host_gains() {
    let (_, timeline) = joined();
    let mut program = crate::translation::from_timeline(&timeline);
    program.recorded_on(Some(2));
    assert_eq!(
        program.threads.iter().map(|thread| thread.name.as_str()).collect::<Vec<_>>(),
        ["web@web/41", "db@db/42"]
    );
    let two = Cpus::count(2).expect("two");
    assert_eq!(program.counts(&[Cpus::ONE, Cpus::Infinite]), [two]);
    let model = Model::default();
    let recorded = timeline.end.0 - timeline.start.0;
    let before = Timing::new(&program, &model).expect("a valid program").time_ns(two);
    assert!((before / recorded as f64 - 1.0).abs() < 0.02, "{before} of {recorded}");
    // Each request: 1 ms, 250 µs, 3 ms, 250 µs.
    for thread in &mut program.threads {
        for operation in &mut thread.operations {
            if let crate::program::Operation::Exec(length) = operation
                && thread.name.starts_with("db")
            {
                length.0 /= 2;
            }
        }
    }
    let after = Timing::new(&program, &model).expect("a valid program").time_ns(two);
    assert!((after / before - 3.0 / 4.5).abs() < 0.02, "{}", after / before);
}

/// The reader of a message depends on its sender, also if the message was there in time.
#[test]
fn a_message_that_is_read_without_waiting_would_have_been_waited_for() {
    let joined = join(hosts_of(200, false)).expect("joined");
    let timeline = timeline::build(&joined);
    let web = timeline.threads.iter().find(|thread| thread.tid == 41).expect("the thread");
    let by_messages = web.waits.iter().filter(|wait| matches!(wait.wake, Wake::By(_))).count();
    assert_eq!(by_messages, 200);
    let blocked = web.time_in(|state| matches!(state, timeline::State::Blocked(_)));
    assert!(blocked.0 <= US, "{} ns: it slept once at most", blocked.0);
    let mut program = crate::translation::from_timeline(&timeline);
    program.recorded_on(Some(2));
    let two = Cpus::count(2).expect("two");
    let time = |program: &crate::program::Program| {
        Timing::new(program, &Model::default()).expect("a valid program").time_ns(two)
    };
    let before = time(&program);
    let of_db = program.threads.iter_mut().filter(|thread| thread.name.starts_with("db"));
    for operation in of_db.flat_map(|thread| &mut thread.operations) {
        if let crate::program::Operation::Exec(length) = operation {
            length.0 *= 3;
        }
    }
    // Each request: 1 ms, 250 µs, 9 ms; then web, which has computed meanwhile, goes on.
    let ratio = time(&program) / before;
    let expected = 10.25 / 5.5;
    assert!((ratio / expected - 1.0).abs() < 0.03, "{ratio} times as long, not {expected}");
}

#[test]
fn recordings_that_do_not_belong_together_are_refused() {
    let of = |hosts| join(hosts).map(|_| ()).expect_err("refused");
    let [web, db] = <[OfHost; 2]>::try_from(two_hosts(20)).unwrap_or_default();
    assert_eq!(of(vec![web.clone()]), JoinError::Count(1));
    let mut silent = db.clone();
    silent.recording.events.retain(|event| !matches!(event, Record::Exchange(_)));
    assert_eq!(of(vec![web.clone(), silent]), JoinError::NoRequests(1));
    assert_eq!(
        of(vec![web.clone(), web.clone()]),
        JoinError::NotConnected(1),
        "requests that occur twice do not count"
    );
    let mut late = web.clone();
    late.recording.events.retain(|event| matches!(event, Record::Exchange(_)));
    late.recording.facts.start_ns = 3_000_000 * MS;
    late.recording.facts.end = Some(WindowEnd { end_ns: 4_000_000 * MS, ..WindowEnd::default() });
    assert_eq!(of(vec![late, db]), JoinError::Apart(1));
}

#[test]
fn a_host_s_name_from_a_file_is_cut_and_has_no_control_characters() {
    let hosts = vec![HostFact { name: format!("a\u{1b}{}", "b".repeat(1_000)), ..HostFact::default() }];
    let facts = Facts { hosts, ..Facts::default() };
    let timeline = timeline::build(&Recording { facts, ..Recording::default() });
    assert_eq!(timeline.hosts[0].name, format!("a?{}", "b".repeat(62)));
}

#[test]
fn hosts_with_the_same_name_get_numbers() {
    let mut hosts: Vec<HostFact> =
        ["a", "a", "", "a"].map(|name| HostFact { name: name.into(), ..HostFact::default() }).to_vec();
    unique_names(&mut hosts);
    assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["a", "a-2", "host", "a-3"]);
}

/// Session files are not trusted.
#[test]
fn records_with_any_numbers_are_joined_or_refused_without_panic() {
    let mut numbers = Numbers::new(11);
    for round in 0..200 {
        let mut hosts = two_hosts(30);
        for host in &mut hosts {
            host.cpus = [1, 3, u32::MAX][numbers.below(3) as usize];
            for event in &mut host.recording.events {
                if numbers.below(20) > 0 {
                    continue;
                }
                let mut bytes = [0u8; 64];
                let own = event.as_bytes();
                bytes[..own.len()].copy_from_slice(own);
                let place = 8 * numbers.below(8) as usize;
                let word = [0, 1, u64::MAX, u64::MAX / 2, numbers.below(u64::MAX)][numbers.below(5) as usize];
                let kind = bytes[14];
                bytes[place..place + 8].copy_from_slice(&word.to_le_bytes());
                bytes[14] = kind;
                *event = Record::decode(&bytes).expect("a record");
            }
        }
        if let Ok(joined) = join(hosts) {
            let program = crate::translation::from_timeline(&timeline::build(&joined));
            assert!(program.threads.len() < 1_000, "round {round}");
        }
    }
}
