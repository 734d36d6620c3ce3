//! As soak.c: threads, a channel, panics that are caught, and results compared.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};

static STOP: AtomicBool = AtomicBool::new(false);
static ROUNDS: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn panics(number: u64) -> u64 {
    let kept = vec![number; 8];
    assert!(number % 97 != 0, "on purpose");
    kept.iter().sum()
}

#[inline(never)]
fn whole(shared: &Mutex<u64>) -> u64 {
    let mut sum = 1u64;
    for number in 1..400 {
        let one = std::panic::catch_unwind(|| panics(number)).unwrap_or(7);
        sum = sum.rotate_left(5) ^ one.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if number % 64 == 0 {
            *shared.lock().unwrap() += 1;
        }
    }
    sum
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let shared = Mutex::new(0);
    let expected = whole(&shared);
    std::thread::scope(|scope| {
        let (results, all) = mpsc::sync_channel(4);
        for _ in 0..2 {
            let (results, shared) = (results.clone(), &shared);
            scope.spawn(move || {
                while !STOP.load(Ordering::Relaxed) {
                    if results.send(whole(shared)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        scope.spawn(move || {
            for result in all {
                ROUNDS.fetch_add(1, Ordering::Relaxed);
                WRONG.fetch_add(u64::from(result != expected), Ordering::Relaxed);
            }
        });
        println!("ready");
        let mut rest = Vec::new();
        let _ = std::io::stdin().read_to_end(&mut rest);
        STOP.store(true, Ordering::Relaxed);
    });
    let (rounds, wrong) = (ROUNDS.load(Ordering::Relaxed), WRONG.load(Ordering::Relaxed));
    println!("{rounds} rounds, {wrong} wrong");
    std::process::exit(i32::from(wrong > 0 || rounds == 0));
}
