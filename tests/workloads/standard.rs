//! Nearly all of the time is in functions of the standard library that are inlined into `mix`. usage: standard [rounds]

use std::hint::black_box;

#[inline(never)]
fn mix(rounds: u64) -> u64 {
    (0..rounds).fold(black_box(7u64), |sum, round| black_box(sum.wrapping_mul(31).rotate_left(7).wrapping_add(round)))
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200u64);
    println!("{}", (0..rounds).map(|_| mix(2_000_000)).fold(0, u64::wrapping_add));
}
