//! Tests of parts of a recording, and of the choice of the most typical part.

use super::*;
use crate::event::{Facts, LossCounts, Overhead, SampleCounts};
use crate::timeline::{
    Census, Effort, Places, RecordStretch, Wanted, beginning_at, excerpt, typical, typical_among,
};
use probe_abi::Burst;

/// Calls by thread A. For each part: number of calls, the functions in turn, and the distance between calls.
fn calls(parts: &[(u64, &[&str], u64)]) -> Recording {
    let mut all = recording("A runs");
    let mut time_ns = 10;
    for (count, functions, apart_ns) in parts {
        for number in 0..*count {
            time_ns += apart_ns;
            let function = functions[(number % functions.len() as u64) as usize];
            all.events.push(record(time_ns, 0, "A", &["enters", function, "100"]));
        }
    }
    all.facts.end = Some(WindowEnd { end_ns: time_ns, ..WindowEnd::default() });
    all
}

#[test]
fn the_typical_part_of_a_recording_has_its_mix_of_calls_over_time() {
    // Nine tenths of the calls are in the first 6 % of the time.
    let all = calls(&[(80_000, &["f"], 1), (8_000, &["g", "h"], 150), (1_000, &["g"], 50)]);
    let (from_ns, to_ns, apart) = typical(&all, 2_000).expect("a part");
    assert!(from_ns > 79_000 && to_ns < 1_300_000, "{from_ns} {to_ns}");
    assert!((0.01..0.12).contains(&apart), "{apart}");
    let cut = excerpt(all.clone(), from_ns, to_ns, all.events.len() as u64);
    assert!((1_900..=2_000).contains(&cut.events.len()), "{}", cut.events.len());
    assert_eq!(typical(&all, all.events.len()), None, "it has no more");
    assert_eq!(typical(&all, 0), None);
}

#[test]
fn the_typical_part_of_a_recording_that_ends_quietly_is_its_end() {
    let mut all = calls(&[(1_000, &["f"], 10)]);
    all.facts.end = Some(WindowEnd { end_ns: 40_000, ..WindowEnd::default() });
    let (from_ns, to_ns, apart) = typical(&all, 100).expect("a part");
    assert_eq!(to_ns, 40_000);
    assert!(from_ns > 8_000 && apart < 0.1, "{from_ns}, {apart}");
}

#[test]
fn a_typical_part_is_found_with_equal_times_and_clocks_that_go_back() {
    let mut back = calls(&[(3_000, &["f"], 3)]);
    back.events.reverse();
    for mut all in [calls(&[(3_000, &["f"], 0)]), back] {
        all.facts.end = Some(WindowEnd { end_ns: 4, ..WindowEnd::default() });
        let (from_ns, to_ns, apart) = typical(&all, 10).expect("a part");
        assert!((0.0..=1.0).contains(&apart), "{apart}");
        drop(build(&excerpt(all, from_ns, to_ns, 3_000)));
    }
}

/// To choose a part of a large file, most stretches are never decoded.
#[test]
fn a_typical_part_is_chosen_by_decoding_few_stretches() {
    // A start and an end that are unlike the rest.
    let all = calls(&[(1_000, &["f"], 10), (8_000, &["g", "h"], 10), (1_000, &["f"], 10)]);
    let stretches: Vec<&[Record]> = all.events.chunks(100).collect();
    let listed: Vec<RecordStretch> = stretches
        .iter()
        .map(|records| RecordStretch {
            records: records.len() as u64,
            first_ns: records[0].header().time_ns,
            last_ns: records[records.len() - 1].header().time_ns,
        })
        .collect();
    let places = Places { starts: &[0, 20, 45, 90], fences: &[] };
    let effort = Effort { of_all: 10, parts: 4, of_each: 2 };
    let wanted = Wanted { most: 500, length_ns: 100_000, effort };
    let mut read = std::collections::BTreeSet::new();
    let found = typical_among(&listed, places, wanted, Census::default(), |number, count| {
        read.insert(number);
        count(stretches[number]);
        Ok::<(), ()>(())
    });
    let found = found.expect("no error").expect("a part");
    assert!([20..25, 45..50].contains(&found.stretches), "{found:?}");
    assert!((0.1..0.3).contains(&found.apart), "a fifth is of f: {found:?}");
    assert!(read.len() <= 10 + 4 * 2 + 5, "{read:?}");
    let failed = typical_among(&listed, places, wanted, Census::default(), |_, _| Err(7));
    assert_eq!(failed, Err(7));
    let enough = Wanted { most: 5_000, ..wanted };
    let none = typical_among(&listed, places, enough, Census::default(), |_, _| Ok::<(), ()>(()));
    assert_eq!(none, Ok(None), "it would save little");
}

/// A recording begun at the snapshot would have had the same content.
#[test]
fn a_recording_cut_at_a_snapshot_is_like_one_begun_there() {
    let all =
        recording("A runs\nB sleeps\n 10 0 A sleeps\n 30 0 idle wakes A\n 40 0 idle to A\n 80 0 A sleeps");
    let later = build(&excerpt(all.clone(), 20, 80, 5));
    let mut seen = Facts { start_ns: 20, threads: all.facts.threads.clone(), ..Facts::default() };
    for thread in &mut seen.threads {
        (thread.state, thread.seen_ns) = (ThreadState::Sleeping, 21);
    }
    let cut = beginning_at(all.clone(), seen);
    assert_eq!((cut.facts.start_ns, cut.events.len()), (20, 3));
    let begun = build(&cut);
    for (thread, other) in begun.threads.iter().zip(&later.threads) {
        assert_eq!((thread.start, &thread.comm, thread.ran()), (other.start, &other.comm, other.ran()));
    }
}

#[test]
fn an_excerpt_has_its_share_of_the_cost_and_threads_as_they_were() {
    let mut all = recording("A runs\n 10 0 A sleeps\n 30 0 idle wakes A\n 40 0 idle to A\n 80 0 A sleeps");
    if let Some(end) = &mut all.facts.end {
        end.loss = LossCounts { dropped: 3, ..LossCounts::default() };
        end.samples = Some(SampleCounts { taken: 40, ..SampleCounts::default() });
        end.overhead = Some(Overhead { event_ns: 1_000, once_ns: 70, ..Overhead::default() });
    }
    let cut = excerpt(all.clone(), 20, 50, 4);
    let end = cut.facts.end.clone().expect("an end");
    let cost = end.overhead.expect("a cost");
    assert_eq!((cut.facts.start_ns, end.end_ns, cut.events.len()), (20, 50, 2));
    assert_eq!((cost.event_ns, cost.once_ns, end.samples.map(|samples| samples.taken)), (500, 70, Some(20)));
    // The number of lost records stays that of the complete recording: only notes show when records were lost.
    assert_eq!(end.loss.dropped, 3);
    let ran = |recording: &Recording| build(recording).threads[0].ran().0;
    assert_eq!((ran(&cut), ran(&all)), (10, 10 + 40));
    assert_eq!(excerpt(all.clone(), 0, u64::MAX, 4).events, all.events);
}

/// Without this rule, 27,000 records of a mutex would take longer to analyse than six million records of switches.
#[test]
fn an_excerpt_has_fewer_records_where_one_stands_for_many_operations() {
    let with_bursts = |of_two: bool| {
        let mut all = calls(&[(1_000, &["f"], 10)]);
        for number in 0..1_000u64 {
            let tid = if of_two { 1 + (number % 2) as u32 } else { 1 };
            let header = Header {
                time_ns: 15 + 10 * number,
                sequence: 0,
                cpu: Header::NO_CPU,
                kind: Kind::Burst as u8,
                context: 0,
                tid,
                pid: 1,
            };
            all.events.push(Record::Burst(Burst {
                header,
                object: 0x100,
                caller: 1,
                span_ns: 5,
                held_ns: 1,
                held_least_ns: 1,
                apart_least_ns: 0,
                release: 1,
                count: 49,
                flags: 0,
            }));
        }
        all.events.sort_by_key(|event| event.header().time_ns);
        all
    };
    // 1,000 of 2,000 records are bursts, each of which becomes 98 operations: 50 operations for each record.
    let all = with_bursts(true);
    let (from_ns, to_ns, _) = typical(&all, 1_500).expect("a part");
    let cut = excerpt(all, from_ns, to_ns, 2_000);
    assert!((20..=30).contains(&cut.events.len()), "{}", cut.events.len());
    assert_eq!(typical(&with_bursts(false), 1_500), None, "no other thread could have waited");
}
