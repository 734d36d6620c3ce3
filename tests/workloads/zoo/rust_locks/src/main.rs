//! A hot mutex of std (`std`) or parking_lot (`parking_lot`), two stages with a crossbeam channel between them (`crossbeam`),
//! jobs of two sizes that two functions send through a channel of std (`mpsc_jobs`) or crossbeam (`crossbeam_jobs`),
//! rayon (`rayon`), tokio with tasks that share nothing (`tokio`) and with its mutex (`tokio_mutex`). Arguments: which, rounds.

use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::thread;

use rayon::prelude::*;

// A macro: a function would have a share of its own where it is inlined.
macro_rules! work {
    ($name:ident, $turns:literal) => {
        #[inline(never)]
        fn $name(mut state: u64) -> u64 {
            let mut left = $turns;
            while left > 0 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                left -= 1;
            }
            state
        }
    };
}

work!(update_ledger, 100_000);
work!(parse_record, 50_000);
work!(tile, 1_000_000);
work!(job, 800_000);

/// Three threads, two thirds of the work of each under the lock.
fn clerks(rounds: u64, update: impl Fn() + Sync) {
    thread::scope(|scope| {
        for me in 1..4 {
            let update = &update;
            scope.spawn(move || {
                let mut state = me;
                for _ in 0..rounds {
                    state = parse_record(state);
                    update();
                }
                black_box(state);
            });
        }
    });
}

fn with_std(rounds: u64) -> u64 {
    let ledger = Mutex::new(1);
    clerks(rounds, || {
        if let Ok(mut ledger) = ledger.lock() {
            *ledger = update_ledger(*ledger);
        }
    });
    ledger.into_inner().unwrap_or_default()
}

fn with_parking_lot(rounds: u64) -> u64 {
    let ledger = parking_lot::Mutex::new(1);
    clerks(rounds, || {
        let mut ledger = ledger.lock();
        *ledger = update_ledger(*ledger);
    });
    ledger.into_inner()
}

fn with_crossbeam(rounds: u64) -> u64 {
    let (sender, receiver) = crossbeam_channel::bounded(16);
    let producer = thread::spawn(move || {
        for item in 0..rounds {
            if sender.send(parse_record(item + 1)).is_err() {
                break;
            }
        }
    });
    let sum = receiver.iter().fold(0, |sum, item| sum ^ update_ledger(item));
    drop(producer.join());
    sum
}

/// A large job takes three times as long as a small one; the worker always waits before the next one comes.
fn jobs(rounds: u64, send: impl Fn(u64), work: impl FnOnce() -> u64 + Send) -> u64 {
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        let mut state = 1;
        for round in 0..rounds {
            state = prepare(state);
            if round % 2 == 0 { order_small(&send) } else { order_large(&send) }
        }
        send(0);
        black_box(state) ^ worker.join().unwrap_or_default()
    })
}

/// More than twice as long as a large job: on a shared machine a CPU may be half as fast as another.
#[inline(never)]
fn prepare(state: u64) -> u64 {
    (0..8).fold(state, |state, _| tile(state))
}

#[inline(never)]
fn order_small(send: impl Fn(u64)) {
    send(black_box(1));
}

#[inline(never)]
fn order_large(send: impl Fn(u64)) {
    send(black_box(3));
}

fn work(next: impl Fn() -> Option<u64>) -> u64 {
    let mut state = 1;
    while let Some(size) = next().filter(|size| *size > 0) {
        state = (0..size).fold(state, |state, _| job(state));
    }
    state
}

fn with_mpsc_jobs(rounds: u64) -> u64 {
    let (sender, receiver) = std::sync::mpsc::channel();
    jobs(rounds, |size| sender.send(size).unwrap_or_default(), move || work(|| receiver.recv().ok()))
}

fn with_crossbeam_jobs(rounds: u64) -> u64 {
    let (sender, receiver) = crossbeam_channel::unbounded();
    jobs(rounds, |size| sender.send(size).unwrap_or_default(), move || work(|| receiver.recv().ok()))
}

fn with_rayon(rounds: u64) -> u64 {
    let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(2).build() else { return 0 };
    pool.install(|| (0..rounds).into_par_iter().map(|item| tile(item + 1)).reduce(|| 0, |a, b| a ^ b))
}

fn runtime() -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().ok()
}

fn with_tokio(rounds: u64) -> u64 {
    let Some(runtime) = runtime() else { return 0 };
    runtime.block_on(async {
        let tasks: Vec<_> = (0..rounds).map(|item| tokio::spawn(async move { tile(item + 1) })).collect();
        let mut sum = 0;
        for task in tasks {
            sum ^= task.await.unwrap_or_default();
        }
        sum
    })
}

fn with_tokio_mutex(rounds: u64) -> u64 {
    let Some(runtime) = runtime() else { return 0 };
    runtime.block_on(async {
        let ledger = Arc::new(tokio::sync::Mutex::new(1));
        let clerk = |me: u64| {
            let ledger = Arc::clone(&ledger);
            async move {
                let mut state = me;
                for _ in 0..rounds {
                    state = parse_record(state);
                    let mut ledger = ledger.lock().await;
                    *ledger = update_ledger(*ledger);
                }
                black_box(state);
            }
        };
        let clerks: Vec<_> = (1..4).map(|me| tokio::spawn(clerk(me))).collect();
        for clerk in clerks {
            drop(clerk.await);
        }
        let ledger = *ledger.lock().await;
        ledger
    })
}

fn main() {
    let mut words = std::env::args().skip(1);
    let which = words.next().unwrap_or_default();
    let rounds = words.next().and_then(|word| word.parse().ok()).unwrap_or(1_000);
    let result = match which.as_str() {
        "std" => with_std(rounds),
        "parking_lot" => with_parking_lot(rounds),
        "crossbeam" => with_crossbeam(rounds),
        "mpsc_jobs" => with_mpsc_jobs(rounds),
        "crossbeam_jobs" => with_crossbeam_jobs(rounds),
        "rayon" => with_rayon(rounds),
        "tokio" => with_tokio(rounds),
        "tokio_mutex" => with_tokio_mutex(rounds),
        _ => return println!("std, parking_lot, crossbeam, mpsc_jobs, crossbeam_jobs, rayon, tokio or tokio_mutex"),
    };
    println!("{which}: {result:x}");
}
