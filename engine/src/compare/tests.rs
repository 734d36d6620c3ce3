//! Comparisons of generated servers whose requests take known times.

use super::{
    BeforeAfter, PerRequest, Served, Server, Unlike, other_load, other_programs, per_request, unlike,
};
use crate::program::{Endpoint, Program};
use crate::synth::{Service, server_recording};
use crate::timeline::Timeline;

fn recorded(service: &Service) -> (Timeline, Program) {
    let recording = server_recording(service).expect("a server");
    let timeline = crate::timeline::build(&recording);
    let mut program = crate::translation::unsimulated_from_timeline(&timeline);
    program.recorded_on(Some(2));
    (timeline, program)
}

fn compared(before: &Service, after: &Service) -> (PerRequest, Vec<Unlike>) {
    let both = [recorded(before), recorded(after)];
    let [a, b] = Endpoint::served_by_both(&both[0].1.recorded.traffic, &both[1].1.recorded.traffic);
    let served = [(0, a), (1, b)].map(|(place, end): (usize, Option<&Endpoint>)| {
        Served::of(&both[place].1, Some(&both[place].0), end.expect("it serves"))
    });
    let server = |place: usize| Server {
        program: &both[place].1,
        timeline: Some(&both[place].0),
        served: &served[place],
    };
    let requests = per_request([&[server(0)], &[server(1)]]);
    let mut found = unlike([&both[0].1, &both[1].1], [true; 2], [true; 2]);
    found.extend(other_load(server(0), server(1), &requests));
    (requests, found)
}

fn is_about(change: &BeforeAfter, before: f64, after: f64) -> bool {
    let near = |value: f64, expected: f64| (value - expected).abs() <= 0.03 * expected;
    near(change.before, before) && near(change.after, after)
}

#[test]
fn two_recordings_of_a_server_under_one_load_do_not_differ_beyond_chance() {
    let mut clear = 0;
    for seed in 2..22 {
        let other = Service { seed: seed + 100, requests: 900 + seed * 10, ..Service::default() };
        let (requests, unlike) = compared(&Service { seed, ..Service::default() }, &other);
        assert!(unlike.iter().all(|unlike| matches!(unlike, Unlike::Lengths(_))), "{unlike:?}");
        let cpu = requests.cpu.expect("CPU time");
        let all = [requests.rate, requests.mean, requests.p99, requests.unread, cpu];
        clear += all
            .iter()
            .chain(requests.functions.iter().flat_map(|row| &row.changes))
            .filter(|change| change.is_clear())
            .count();
        assert!(is_about(&cpu, 400_000.0, 400_000.0) && is_about(&requests.mean, 600_000.0, 600_000.0));
        assert!(cpu.noise.expect("chance") < 40_000.0, "{cpu:?}");
    }
    assert!(clear <= 14, "{clear} of 140, of which 7 are expected");
}

#[test]
fn a_slower_function_costs_each_request_its_time() {
    let slower =
        Service { functions: vec![("parse", 100_000), ("answer", 500_000)], seed: 2, ..Service::default() };
    let (requests, unlike) = compared(&Service::default(), &slower);
    let cpu = requests.cpu.expect("CPU time");
    assert!(is_about(&cpu, 400_000.0, 600_000.0) && cpu.is_clear(), "{cpu:?}");
    assert!(
        is_about(&requests.mean, 600_000.0, 800_000.0) && requests.mean.is_clear(),
        "{:?}",
        requests.mean
    );
    let row = |name: &str| requests.functions.iter().find(|row| row.name == name).expect("a row").changes[0];
    assert!(row("answer").is_clear() && !row("parse").is_clear(), "{:?}", requests.functions);
    assert_eq!(requests.functions[0].name, "answer");
    assert!(unlike.iter().any(|unlike| matches!(unlike, Unlike::Lengths(_))), "{unlike:?}");
}

#[test]
fn another_load_is_told_from_a_slower_server() {
    let half = Service { pause_ns: 1_600_000, seed: 2, ..Service::default() };
    let (requests, found) = compared(&Service::default(), &half);
    let is_rate = |unlike: &Unlike| matches!(unlike, Unlike::Rate([a, b]) if *a > 900.0 && *b < 600.0);
    assert!(found.iter().any(is_rate), "{found:?}");
    assert!(!requests.cpu.expect("CPU time").is_clear(), "{:?}", requests.cpu);
    // Clients that wait for an answer all the time: fewer requests are the server's doing.
    let busy = Service { connections: 2, unread_ns: 900_000, ..Service::default() };
    let slow = Service { functions: vec![("answer", 800_000)], seed: 2, ..busy.clone() };
    let (_, found) = compared(&busy, &slow);
    assert!(
        !found.iter().any(|unlike| matches!(unlike, Unlike::Rate(_) | Unlike::Connections(_))),
        "{found:?}"
    );
    let (_, found) = compared(&busy, &Service { connections: 3, seed: 2, ..busy.clone() });
    assert!(found.iter().any(|unlike| matches!(unlike, Unlike::Connections(_))), "{found:?}");
}

#[test]
fn each_other_difference_of_two_recordings_has_a_warning() {
    let (_, program) = recorded(&Service { requests: 100, ..Service::default() });
    let alike = unlike([&program, &program], [true; 2], [true; 2]);
    assert!(alike.is_empty(), "{alike:?}");
    let mut other = program.clone();
    other.recorded_cpus = Some(8);
    let long = Service { requests: 200, others: 1.5, ..Service::default() };
    let (_, long) = recorded(&long);
    let found = unlike([&program, &other], [true, false], [true; 2]);
    assert_eq!(found, [Unlike::OneServes { first: true }, Unlike::Cpus([2, 8])]);
    let found = unlike([&program, &long], [true; 2], [true; 2]);
    assert!(matches!(found[..], [Unlike::Lengths(_), Unlike::Others([0.0, 1.4..=1.6])]), "{found:?}");
    // The time of a program that ran to its end is what is compared.
    assert_eq!(unlike([&program, &long], [true; 2], [false; 2]).len(), 1);
}

#[test]
fn a_renamed_program_is_the_same_program_and_another_one_is_not() {
    let of = |name, functions: &[&'static str]| {
        let functions = functions.iter().map(|name| (*name, 100_000)).collect();
        recorded(&Service { name, functions, requests: 500, ..Service::default() }).1
    };
    let before = of("before", &["parse", "answer"]);
    assert_eq!(other_programs(&before, &of("before", &["other"])), None);
    assert_eq!(other_programs(&before, &of("after", &["parse", "answer", "other"])), None);
    let names = ["before", "nginx"].map(str::to_owned);
    assert_eq!(other_programs(&before, &of("nginx", &["other", "more"])), Some(Unlike::Programs(names)));
    assert_eq!(other_programs(&before, &Program::default()), None, "a program written by hand has no name");
}

/// One of the recordings was made while something slowed the whole machine down.
#[test]
fn several_recordings_of_a_server_show_how_far_they_differ() {
    let of = |nanoseconds, seed| {
        let functions = vec![("parse", 100_000), ("answer", nanoseconds)];
        recorded(&Service { functions, seed, ..Service::default() })
    };
    let compared = |sides: [[u64; 2]; 2]| {
        let sides = [0, 1].map(|side: usize| {
            [0, 1].map(|place: usize| of(sides[side][place], (2 * side + place + 1) as u64))
        });
        let served = sides.each_ref().map(|side| {
            side.each_ref().map(|(timeline, program)| {
                let end = Endpoint::most_served(&program.recorded.traffic).expect("it serves");
                Served::of(program, Some(timeline), end)
            })
        });
        let servers = [0, 1].map(|side: usize| {
            [0, 1].map(|place: usize| {
                let (timeline, program) = &sides[side][place];
                Server { program, timeline: Some(timeline), served: &served[side][place] }
            })
        });
        per_request([&servers[0], &servers[1]])
    };
    let same = compared([[300_000, 400_000], [330_000, 380_000]]);
    let row = |requests: &PerRequest| {
        requests.functions.iter().find(|row| row.name == "answer").expect("a row").changes[0]
    };
    let cpu = same.cpu.expect("CPU time");
    assert!(is_about(&cpu, 450_000.0, 455_000.0), "{cpu:?}");
    assert_eq!([same.mean.is_noise(), cpu.is_noise(), row(&same).is_noise()], [Some(true); 3], "{same:?}");
    let slower = compared([[300_000, 310_000], [600_000, 610_000]]);
    assert_eq!(slower.requests, [2_002; 2], "both recordings of each side count");
    assert_eq!([slower.mean.is_noise(), row(&slower).is_noise()], [Some(false); 2], "{slower:?}");
}
