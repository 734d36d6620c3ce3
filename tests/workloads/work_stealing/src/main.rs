//! Work stealing with rayon: a range is split until it is small, and halves that a thread has left for later
//! are taken by idle threads. Halves differ, so that there is always something to steal. usage: work_stealing
//! [threads 4] [units in all 400000000] [smallest part 1000000]

use std::hint::black_box;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let mut next = |otherwise: u64| numbers.next().unwrap_or(Ok(otherwise));
    let (Ok(threads), Ok(units), Ok(smallest)) = (next(4), next(400_000_000), next(1_000_000)) else {
        eprintln!("work_stealing: arguments must be numbers");
        return ExitCode::from(2);
    };
    let pool =
        usize::try_from(threads).map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build());
    let Ok(Ok(pool)) = pool else {
        eprintln!("work_stealing: no pool of {threads} threads");
        return ExitCode::from(2);
    };
    let sum = pool.install(|| split(units, smallest.max(1)));
    println!("{units} units, {sum:x}");
    ExitCode::SUCCESS
}

fn split(units: u64, smallest: u64) -> u64 {
    if units <= smallest {
        return leaf(units);
    }
    let left = units / 5 * 2 + 1;
    let (a, b) = rayon::join(|| split(left, smallest), || split(units - left, smallest));
    a ^ b
}

/// About a nanosecond a unit.
#[inline(never)]
fn leaf(units: u64) -> u64 {
    let mut seed = units | 1;
    for _ in 0..units {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    black_box(seed)
}
