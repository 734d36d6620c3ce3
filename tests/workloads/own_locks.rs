//! Locks of Rust's standard library: one that no thread ever waits for, and a number of locks that one thread
//! each waits for while the main thread holds them. usage: own_locks [contended 2]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;

static COMING: AtomicUsize = AtomicUsize::new(0);

#[inline(never)]
fn nobody_waits(lock: &Mutex<u64>) {
    for _ in 0..1009 {
        if let Ok(mut count) = lock.lock() {
            *count += 1;
        }
    }
}

fn main() {
    let contended = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2usize);
    let free = Mutex::new(0);
    let locks: Vec<&'static Mutex<u64>> =
        (0..contended).map(|_| &*Box::leak(Box::new(Mutex::new(0)))).collect();
    let guards: Vec<_> = locks.iter().map(|lock| lock.lock().unwrap()).collect();
    // A thread in any case, so that there are operations of the C library.
    let _ = std::thread::spawn(|| ()).join();
    let threads: Vec<_> = locks
        .iter()
        .map(|&lock| {
            std::thread::spawn(move || {
                COMING.fetch_add(1, Ordering::SeqCst);
                *lock.lock().unwrap() += 1;
            })
        })
        .collect();
    while COMING.load(Ordering::SeqCst) < contended {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Time for the threads to reach their locks, also where the machine is busy.
    std::thread::sleep(Duration::from_millis(500));
    nobody_waits(&free);
    drop(guards);
    for thread in threads {
        thread.join().unwrap();
    }
    let sum: u64 = locks.iter().map(|lock| *lock.lock().unwrap()).sum();
    println!("{sum} waited, {} did not", free.lock().unwrap());
}
