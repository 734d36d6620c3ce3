//! The memory that rings use.

use super::*;

#[test]
fn memory_of_rings_of_quiet_threads_is_released() {
    const TURN_NS: u64 = 5_000_000;
    let layout = SharedLayout::new(64, 4096).expect("layout");
    let mut rings = Rings::new(Shared::new(layout).expect("memory"), None);
    let shared = other_side(&rings);
    let threads: Vec<Writer<'_>> =
        (0..64).map(|ring| Writer::claims(&shared, ring, 100 + ring as u32)).collect();
    let alive: Vec<u32> = (100..164).collect();
    let mut read = 0;
    for round in 1..=100u64 {
        for thread in &threads {
            (0..20).for_each(|i| thread.writes(round * TURN_NS + i));
        }
        read += turn(&mut rings, round * TURN_NS + 50, &alive).0.len();
    }
    assert_eq!(read, 64 * 100 * 20);
    // 2,000 records of each thread have passed through some 32 pages of its ring.
    let pages = shared.resident_bytes().expect("size") / 4096;
    assert!(pages < 64 * 5, "{pages} pages");
}

/// Threads that are busy only now and then must not keep all memory of their rings: for 600 threads that would be 1.2
/// GB.
#[test]
fn memory_of_rings_of_many_busy_threads_is_bounded() {
    const TURN_NS: u64 = 5_000_000;
    const THREADS: usize = 96;
    const OF_ALL: u64 = (4096 * 64) * 64;
    let layout = SharedLayout::new(THREADS, 4096).expect("layout");
    let mut rings = Rings::new(Shared::new(layout).expect("memory"), None);
    rings.may_use(OF_ALL);
    let shared = other_side(&rings);
    let threads: Vec<Writer<'_>> =
        (0..THREADS).map(|ring| Writer::claims(&shared, ring, 100 + ring as u32)).collect();
    let alive: Vec<u32> = (100..100 + THREADS as u32).collect();
    turn(&mut rings, 1, &alive);
    let mut read = 0;
    for (round, thread) in (1..).zip(threads.iter().cycle().take(3 * THREADS)) {
        (0..4_000).for_each(|i| thread.writes(round * TURN_NS + i));
        read += turn(&mut rings, round * TURN_NS + 5_000, &alive).0.len();
    }
    assert_eq!(read, 3 * THREADS * 4_000, "nothing of it is lost");
    let used = bytes(&shared);
    let most = OF_ALL * 5 / 8;
    assert!(used <= most, "{} KiB, at most {} KiB", used >> 10, most >> 10);
    assert!(used > OF_ALL / 4, "some keep theirs: {} KiB", used >> 10);
}

/// Bytes of memory that the rings really use, without the header and the control blocks.
fn bytes(shared: &Shared) -> u64 {
    let others = shared.layout().ring(0) * 8;
    shared.resident_bytes().expect("size").saturating_sub(others as u64)
}

/// All threads write at once, before the first turn. They share the pool, records that find no memory
/// are counted, and all memory is returned when the threads have ended.
#[test]
fn threads_that_flood_their_rings_at_once_share_the_pool() {
    const THREADS: usize = 60;
    const OF_ALL: u64 = 4096 * 610;
    let layout = SharedLayout::new(THREADS + 1, 4096).expect("layout");
    let mut rings = Rings::new(Shared::new(layout).expect("memory"), None);
    rings.may_use(OF_ALL);
    let shared = other_side(&rings);
    let threads: Vec<Writer<'_>> =
        (0..THREADS).map(|ring| Writer::claims(&shared, ring, 100 + ring as u32)).collect();
    let alive: Vec<u32> = (100..=100 + THREADS as u32).collect();
    let (mut made, mut written, mut read) = (0, 0, 0);
    for round in 1..=4u64 {
        for record in 0..2_000 {
            for thread in &threads {
                made += 1;
                written += usize::from(thread.writes_if_it_can(round * 1_000_000 + record));
            }
        }
        let used = bytes(&shared);
        assert!(used <= OF_ALL, "{} KiB", used >> 10);
        // A thread that comes now and writes a little loses nothing.
        let late = Writer::claims(&shared, THREADS, 100 + THREADS as u32);
        (0..250).for_each(|i| late.writes(round * 1_000_000 + i));
        (made, written) = (made + 250, written + 250);
        read += turn(&mut rings, round * 1_000_000 + 5_000, &alive).0.len();
        assert_eq!(read, written);
        assert_eq!(read + rings.dropped() as usize, made, "what is not there is counted");
        assert!(rings.short() > 0 && rings.short() <= rings.dropped());
        for thread in &threads {
            assert!(thread.control(RingWord::HEAD).load(Ordering::Relaxed) >= round * 9 * 64, "equal parts");
        }
        assert!(bytes(&shared) < OF_ALL / 2);
    }
    for thread in &threads {
        thread.writes(9_000_000);
        rings.thread_ended(PID, thread.tid);
    }
    rings.thread_ended(PID, 100 + THREADS as u32);
    turn(&mut rings, 10_000_000, &[]);
    // A few pages each at most.
    assert!(rings.used_bytes() <= 4096 * 4 * THREADS as u64 && bytes(&shared) <= rings.used_bytes());
}

/// A thread that once needed much memory and then only waits keeps the memory until other threads need it.
#[test]
fn a_ring_s_idle_memory_is_released_when_the_pool_shrinks() {
    let layout = SharedLayout::new(3, 4096).expect("layout");
    let mut rings = Rings::new(Shared::new(layout).expect("memory"), None);
    rings.may_use(4096 * 192);
    let shared = other_side(&rings);
    let threads: Vec<Writer<'_>> =
        (0..3).map(|ring| Writer::claims(&shared, ring, 100 + ring as u32)).collect();
    let fills = |rings: &mut Rings, thread: &Writer<'_>, round: u64| {
        let written = (0..4_000).take_while(|i| thread.writes_if_it_can(round * 1_000_000 + i)).count();
        turn(rings, round * 1_000_000 + 5_000, &[100, 101, 102]);
        written
    };
    assert_eq!(fills(&mut rings, &threads[0], 1), 4_000);
    assert_eq!(rings.used_bytes(), 4096 * 63, "the first one keeps it");
    assert_eq!(fills(&mut rings, &threads[0], 2), 4_000);
    assert_eq!(fills(&mut rings, &threads[1], 3), 4_000);
    // The pool becomes smaller.
    rings.may_use(4096 * 80);
    turn(&mut rings, 4_000_000, &[100, 101, 102]);
    assert!(rings.used_bytes() <= 4096 * 8 && bytes(&shared) <= rings.used_bytes());
    let written = fills(&mut rings, &threads[2], 5);
    assert!((2_000..3_000).contains(&written), "half of it is for others: {written}");
    assert!(bytes(&shared) <= 4096 * 80);
}
