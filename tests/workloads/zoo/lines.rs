//! Two threads that check requests against rules: each clones the Arc of the rules for every request (arc), or borrows them
//! (borrow); or counts hits in one counter (tally), or in its own (own). Arguments: which, thousands of requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

struct Rules {
    limits: [u64; 32],
}

static HITS: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn check(rules: &Rules, request: u64) -> bool {
    let mut state = request | 1;
    for _ in 0..4 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state > rules.limits[(request % 32) as usize]
}

#[inline(never)]
fn check_shared(rules: Arc<Rules>, request: u64) -> bool {
    check(&rules, request)
}

#[inline(never)]
fn count_hit(hits: &AtomicU64) {
    hits.fetch_add(1, Ordering::Relaxed);
}

fn serve(which: &str, rules: &Arc<Rules>, requests: u64) -> u64 {
    let own = Box::new([const { AtomicU64::new(0) }; 32]);
    match which {
        "arc" => (0..requests).filter(|request| check_shared(Arc::clone(rules), *request)).count() as u64,
        "borrow" => (0..requests).filter(|request| check(rules, *request)).count() as u64,
        _ => {
            let hits = if which == "tally" { &HITS } else { &own[16] };
            (0..requests).filter(|request| check(rules, *request)).for_each(|_| count_hit(hits));
            own[16].load(Ordering::Relaxed)
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let which = words.get(1).cloned().unwrap_or_else(|| "arc".to_owned());
    let requests = 1000 * words.get(2).and_then(|word| word.parse().ok()).unwrap_or(10_000);
    let rules = Arc::new(Rules { limits: std::array::from_fn(|at| (at as u64) << 55) });
    let serve = |rules: &Arc<Rules>| serve(&which, rules, requests);
    let sum: u64 = std::thread::scope(|scope| {
        let threads = [scope.spawn(|| serve(&rules)), scope.spawn(|| serve(&rules))];
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    println!("{}", sum + HITS.load(Ordering::Relaxed));
}
