//! The cost of operations, and leaving operations out.

use super::*;

/// The cost that was measured for a few operations is assumed for all operations that came with them; impossible
/// numbers are ignored.
#[test]
fn the_measured_cost_of_some_operations_applies_to_all() {
    let mut rings = rings();
    let memory = other_side(&rings);
    let writer = Writer::claims(&memory, 0, 7);
    let says = |measured: u64, took_ns: u64| {
        writer.control(RingWord::COSTS).store(measured, Ordering::Relaxed);
        writer.control(RingWord::COST_NS).store(took_ns, Ordering::Relaxed);
    };
    let after = |rings: &mut Rings, now: u64| {
        (0..10).for_each(|number| writer.writes(now + number));
        turn(rings, now + 100, &[7]);
        (rings.cost().recorded, rings.cost().recorded_ns)
    };
    says(2, 300);
    assert_eq!(after(&mut rings, 1_000), (10, 1_500));
    says(3, 350);
    assert_eq!(after(&mut rings, 2_000), (20, 2_000));
    // More measurements than records, and an impossibly long time.
    says(u64::MAX, 400);
    assert_eq!(after(&mut rings, 3_000), (20, 2_000));
    says(4, u64::MAX);
    assert_eq!(after(&mut rings, 4_000), (20, 2_000));
    says(4, 450);
    assert_eq!(after(&mut rings, 5_000), (50, 5_000));
    // Operations that are not recorded on purpose count as well, and impossible numbers are cut off.
    let left_out = |rings: &mut Rings, now: u64, count: u64, each_ps: u64| {
        writer.control(RingWord::LEFT_OUT).store(count, Ordering::Relaxed);
        writer.control(RingWord::LEFT_OUT_PS).store(each_ps, Ordering::Relaxed);
        turn(rings, now, &[7]);
        (rings.cost().left_out, rings.cost().left_out_ns)
    };
    assert_eq!(left_out(&mut rings, 6_000, 1_000, 2_500), (1_000, 2_500));
    assert_eq!(left_out(&mut rings, 7_000, 1_000, u64::MAX), (1_000, 100_000));
    assert_eq!(left_out(&mut rings, 8_000, u64::MAX, 2_500), (0, 0));
    assert_eq!(rings.cost().recorded_ns, 5_000);
}

/// A thread that does nothing but operations may stop recording some of them; the ring's next thread starts without
/// that right.
#[test]
fn a_thread_whose_operations_cost_too_much_may_leave_them_out() {
    const MS: u64 = 1_000_000;
    let mut rings = rings();
    let memory = other_side(&rings);
    let writer = Writer::claims(&memory, 0, 7);
    let leaves_out = || writer.control(RingWord::LEAVE_OUT).load(Ordering::Relaxed) == 1;
    let mut now = 1_000 * MS;
    let mut operations = |rings: &mut Rings, each_turn: u64, turns: u64| {
        for _ in 0..turns {
            (0..each_turn).for_each(|number| writer.writes(now + number));
            now += 10 * MS;
            assert_eq!(turn(rings, now, &[7]).0.len() as u64, each_turn);
        }
    };
    // 50,000 operations per second take 1.75 % of the thread's time, and 100,000 take 3.5 %. After 0.3 s that exceeds
    // the limit of 2 % by the time that a quarter of a second allows.
    operations(&mut rings, 500, 100);
    assert!(!leaves_out());
    operations(&mut rings, 900, 20);
    assert!(!leaves_out());
    operations(&mut rings, 900, 40);
    assert!(leaves_out());
    writer.control(RingWord::ATTEMPTS).fetch_add(1, Ordering::Relaxed);
    writer.control(RingWord::STRETCHES).fetch_add(1, Ordering::Relaxed);
    writer.control(RingWord::LEFT_OUT).fetch_add(70, Ordering::Relaxed);
    assert_eq!((rings.dropped(), rings.left_out()), (0, 70));
    rings.thread_ended(PID, 7);
    turn(&mut rings, 9_000 * MS, &[]);
    assert_eq!(writer.control(RingWord::OWNER).load(Ordering::Relaxed), 0, "freed");
    assert!(!leaves_out());
    writer.control(RingWord::LEFT_OUT).store(u64::MAX, Ordering::Relaxed);
    assert_eq!(rings.left_out(), 0, "nonsense is no number");
}

/// With a budget, a thread that is alone in its process stops recording operations when its ring is full, so that none
/// is lost.
#[test]
fn with_a_budget_a_full_ring_makes_a_lone_thread_leave_operations_out() {
    for (share, rather) in [(Some(0.02), 1), (None, 0)] {
        let shared = Shared::new(SharedLayout::new(4, 1024).expect("layout")).expect("memory");
        let memory = other_side(&Rings::new(shared, share));
        assert_eq!(memory.word(SharedWord::RATHER_LEAVE_OUT).load(Ordering::Relaxed), rather, "{share:?}");
    }
}
