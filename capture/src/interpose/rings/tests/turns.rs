//! The records that turns pass on, and the times up to which turns are complete.

use super::*;

#[test]
fn records_leave_their_rings_once_and_in_order() {
    let mut rings = rings();
    let shared = other_side(&rings);
    assert_eq!(turn(&mut rings, 50, &[]), (vec![], Some(50)));
    let first = Writer::claims(&shared, 0, 7);
    let second = Writer::claims(&shared, 1, 8);
    first.writes(60);
    second.writes(61);
    first.writes(62);
    assert_eq!(turn(&mut rings, 70, &[7, 8]), (vec![(0, 60), (0, 62), (1, 61)], Some(70)));
    assert_eq!(turn(&mut rings, 80, &[7, 8]), (vec![], Some(80)));
    assert_eq!((rings.dropped(), rings.undecodable()), (0, 0));
}

#[test]
fn a_record_that_is_being_written_delays_completeness_and_is_not_lost() {
    let mut rings = rings();
    let shared = other_side(&rings);
    let thread = Writer::claims(&shared, 0, 7);
    turn(&mut rings, 1_000, &[7]);
    let slow = thread.takes_place();
    // A signal handler writes a record in between.
    thread.writes(1_500);
    // At 1,000 the unfilled place had not been taken, so its record is newer than that.
    assert_eq!(turn(&mut rings, 2_000, &[7]), (vec![], Some(1_000)));
    assert_eq!(turn(&mut rings, 3_000, &[7]), (vec![], Some(1_000)));
    thread.fills(slow, 2_500);
    assert_eq!(turn(&mut rings, 4_000, &[7]), (vec![(0, 2_500), (0, 1_500)], Some(4_000)));
    // The next unfilled place delays completeness again, from the last turn that did not see it on.
    let next = thread.takes_place();
    assert_eq!(turn(&mut rings, 5_000, &[7]).1, Some(4_000));
    thread.fills(next, 4_500);
    let after = thread.takes_place();
    assert_eq!(turn(&mut rings, 6_000, &[7]), (vec![(0, 4_500)], Some(5_000)));
    thread.fills(after, 5_500);
    assert_eq!(turn(&mut rings, 7_000, &[7]), (vec![(0, 5_500)], Some(7_000)));
    assert_eq!(rings.dropped(), 0);
}

#[test]
fn a_stopped_thread_delays_completeness_longer_than_a_dead_one() {
    let mut rings = rings();
    let shared = other_side(&rings);
    let thread = Writer::claims(&shared, 0, 7);
    turn(&mut rings, 1_000, &[7]);
    let place = thread.takes_place();
    let late = 1_000 + PATIENCE_NS;
    assert_eq!(turn(&mut rings, late, &[7]).1, Some(1_000));
    assert_eq!(turn(&mut rings, late + 1, &[7]).1, Some(late + 1));
    // The thread was only stopped: its record is still taken.
    thread.fills(place, 1_100);
    assert_eq!(turn(&mut rings, late + 2, &[7]).0, [(0, 1_100)]);
    assert_eq!(rings.dropped(), 0);

    let mut rings = self::rings();
    let shared = other_side(&rings);
    let thread = Writer::claims(&shared, 0, 7);
    turn(&mut rings, 1_000, &[7]);
    thread.takes_place();
    thread.writes(1_500);
    turn(&mut rings, 2_000, &[7]);
    let later = 1_001 + DOUBT_NS;
    turn(&mut rings, later, &[]);
    assert_eq!(turn(&mut rings, later + 1, &[]), (vec![(0, 1_500)], Some(later + 1)));
    assert_eq!(rings.dropped(), 1, "the one that was never written");
}

#[test]
fn records_that_did_not_fit_are_counted_and_numbers_continue() {
    let mut rings = rings();
    let shared = other_side(&rings);
    let thread = Writer::claims(&shared, 2, 7);
    for time in 1..=960 {
        thread.writes(time);
    }
    thread.control(RingWord::ATTEMPTS).fetch_add(5, Ordering::Relaxed);
    shared.word(SharedWord::WITHOUT_RING).store(3, Ordering::Relaxed);
    assert_eq!(turn(&mut rings, 2_000, &[7]).0.len(), 960);
    assert_eq!(rings.dropped(), 8);
    thread.control(RingWord::FORBIDDEN).store(13, Ordering::Relaxed);
    shared.word(SharedWord::FORBIDDEN).store(2, Ordering::Relaxed);
    assert_eq!((rings.forbidden(), rings.dropped()), (15, 8));
    thread.control(RingWord::FORBIDDEN).store(u64::MAX, Ordering::Relaxed);
    assert_eq!(rings.forbidden(), 2, "nonsense counts nothing");
    assert_eq!(thread.control(RingWord::TAIL).load(Ordering::Relaxed), 960);
    // The numbers continue after the missing records, and places wrap around the ring's end.
    thread.writes(2_100);
    thread.writes(2_101);
    assert_eq!(turn(&mut rings, 3_000, &[7]).0, [(2, 2_100), (2, 2_101)]);
    assert_eq!(thread.control(RingWord::ATTEMPTS).load(Ordering::Relaxed), 967);
}

#[test]
fn impossible_records_and_counters_in_a_ring_are_not_believed() {
    let mut rings = rings();
    let shared = other_side(&rings);
    let thread = Writer::claims(&shared, 0, 7);
    // Four invalid records: of another thread, from the future, with an end before its beginning, and of another kind.
    Writer { tid: 8, ..Writer::claims(&shared, 0, 7) }.fills(thread.takes_place(), 10);
    thread.writes(1_000);
    thread.writes(11);
    shared.word(shared.layout().place(0, 2) + 3).store(12, Ordering::Relaxed);
    thread.writes(12);
    shared.word(shared.layout().place(0, 3) + 1).store(0, Ordering::Relaxed);
    thread.writes(13);
    assert_eq!(turn(&mut rings, 100, &[7]).0, [(0, 13)]);
    assert_eq!(rings.undecodable(), 4);
    // Counters that no writer would produce.
    for nonsense in [u64::MAX, 1 << 40, 0] {
        thread.control(RingWord::HEAD).store(nonsense, Ordering::Relaxed);
        let (got, complete) = turn(&mut rings, 200, &[7]);
        assert_eq!((got, complete), (vec![], Some(200)));
    }
    for word in [SharedWord::NEXT_RING, SharedWord::RINGS, SharedWord::RING_RECORDS, SharedWord::MAGIC] {
        shared.word(word).store(u64::MAX, Ordering::Relaxed);
    }
    assert_eq!(turn(&mut rings, 300, &[7]).1, Some(300));
    assert_eq!(rings.count(), 4);
}
