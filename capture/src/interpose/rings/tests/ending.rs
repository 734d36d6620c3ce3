//! Rings whose threads have ended.

use super::*;

#[test]
fn the_ring_of_a_dead_thread_is_freed_when_it_is_empty() {
    let mut rings = rings();
    let shared = other_side(&rings);
    let thread = Writer::claims(&shared, 0, 7);
    thread.writes(10);
    thread.control(RingWord::BEGAN).store(12, Ordering::Relaxed);
    thread.control(RingWord::PHASE).store(0x300 | Phase::Inside as u64, Ordering::Release);
    // The records of a dead thread are read in the same turn that finds the thread dead.
    assert_eq!(turn(&mut rings, 20, &[]).0, [(0, 10)]);
    let owner = |ring: usize| shared.word(shared.layout().control(ring)).load(Ordering::Relaxed);
    // The kernel reported no end: whether the thread lives is checked once it has been quiet for a while, not before.
    let later = 20 + LOOK_EVERY_NS;
    turn(&mut rings, later - 1, &[]);
    assert_ne!(owner(0), 0);
    turn(&mut rings, later, &[]);
    assert_eq!((owner(0), shared.word(SharedWord::NEXT_RING).load(Ordering::Relaxed)), (0, 0));
    let next = Writer::claims(&shared, 0, 9);
    next.writes(later + 40);
    assert_eq!(turn(&mut rings, later + 50, &[9]).0, [(0, later + 40)]);
    assert_ne!(owner(0), 0);
    // The operation that the dead thread was in the middle of is known at the end.
    let pending = rings.take_pending();
    assert_eq!(pending.iter().map(|p| (p.pid, p.tid, p.began_ns)).collect::<Vec<_>>(), [(PID, 7, 12)]);
}

/// Every check is a system call or more, so threads that only wait are checked rarely.
#[test]
fn a_quiet_thread_is_checked_for_life_at_intervals() {
    let mut rings = rings();
    let shared = other_side(&rings);
    Writer::claims(&shared, 0, 7).writes(10);
    let busy = Writer::claims(&shared, 1, 8);
    let mut looks = Vec::new();
    for step in 1..=100 {
        let now_ns = step * (LOOK_EVERY_NS / 20);
        busy.writes(now_ns - 1);
        let mut lives = |_, tid| {
            looks.push(tid);
            true
        };
        rings.drain(&mut || now_ns, &mut lives, &mut |_, _| {});
    }
    assert_eq!(looks, [7; 4]);
}

#[test]
fn a_reported_thread_end_frees_its_ring_unless_the_ids_live_on() {
    let mut rings = rings();
    let shared = other_side(&rings);
    let owner = |ring: usize| shared.word(shared.layout().control(ring)).load(Ordering::Relaxed);
    Writer::claims(&shared, 0, 7).writes(10);
    rings.thread_ended(PID, 7);
    turn(&mut rings, 20, &[]);
    assert_eq!(owner(0), 0);
    // Another thread runs a new program, so the leader ends and that thread goes on under the leader's ids.
    Writer::claims(&shared, 1, PID).writes(30);
    rings.thread_ended(PID, PID);
    for now in 40..40 + u64::from(TRIES) * 2 {
        turn(&mut rings, now, &[PID]);
    }
    assert_ne!(owner(1), 0);
    assert_eq!(rings.ended.len(), 0);
}
