//! Rust panics caught by catch_unwind, in two threads. usage: unwind [panics 307]

use std::panic::catch_unwind;

#[inline(never)]
fn sink_in(depth: u32, seed: u64) -> u64 {
    let seed = std::hint::black_box(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    if depth == 0 {
        std::panic::resume_unwind(Box::new(seed));
    }
    sink_in(depth - 1, seed).wrapping_add(1)
}

#[inline(never)]
fn caught(seed: u64) -> bool {
    catch_unwind(|| sink_in(9, seed)).is_err_and(|payload| payload.is::<u64>())
}

#[inline(never)]
fn all(panics: u64) -> usize {
    (0..panics).filter(|seed| caught(*seed)).count()
}

fn main() {
    let panics = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(307);
    let other = std::thread::spawn(move || all(panics));
    let own = all(panics);
    println!("{} panics caught", own + other.join().unwrap_or(0));
}
