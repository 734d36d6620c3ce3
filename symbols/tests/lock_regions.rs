//! Which places lie under a lock, in compiled functions: calls of `under` do, calls of `outside` do not, wherever jumps lead.

use super::sources::{Built, build};
use std::process::Command;
use symbols::{LockCall, functions_of, lock_regions};

const SOURCE: &str = r#"
#define CALL(name) __attribute__((noinline)) int name(int n) { __asm__ volatile("" : "+r"(n)); return n; }
CALL(take) CALL(give) CALL(under) CALL(outside)

int straight(int n) { outside(n); take(n); under(n); under(n); give(n); outside(n); return n; }

int loops(int n) {
    for (int i = 0; i < n; i++) {
        outside(i);
        take(i);
        for (int j = 0; j < n; j++) under(j);
        give(i);
    }
    return outside(n);
}

int leaves_early(int n) {
    take(n);
    if (under(n)) { give(n); outside(n); return 1; }
    while (under(n + 1)) n--;
    give(n);
    outside(n);
    return 2;
}

int switches(int n) {
    outside(n);
    take(n);
    switch (under(n)) {
    case 1: under(11); break;
    case 2: under(22); break;
    case 3: under(33); break;
    case 4: under(44); break;
    case 5: under(55); break;
    case 6: give(n); return outside(6);
    default: under(77);
    }
    give(n);
    return outside(n);
}

/* The slow ways are calls; the lock is freed by an atomic instruction. */
int inlined(int *word) {
    int n = 0;
    for (int i = 0; i < 9; i++) {
        n += outside(i);
        int zero = 0;
        if (!__atomic_compare_exchange_n(word, &zero, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) take(i);
        n += under(i);
        if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2) give(i);
        n += outside(i);
    }
    return n;
}
/* The last function of the code, whose last call does not come back. */
__attribute__((noinline, noreturn)) void stops(int n) { for (;;) outside(n); }
__attribute__((section(".text.last"))) int last(int n) {
    outside(n);
    take(n);
    if (under(n)) stops(n);
    give(n);
    return outside(n) + 1;
}
int main(int n, char **words) { return last(n) + straight(n) + loops(n) + leaves_early(n) + switches(n) + inlined(&n); }
"#;

/// Return addresses of a function's calls to another one, as linked.
fn calls(text: &str, function: &str, callee: &str) -> Vec<u64> {
    let start = text.find(&format!("<{function}>:\n")).unwrap_or_else(|| panic!("no {function}"));
    let body = text[start..].split("\n\n").next().unwrap_or_default();
    let parts = text[start..].match_indices(&format!("<{function}.cold>:\n")).next();
    let cold = parts.and_then(|(at, _)| text[start + at..].split("\n\n").next()).unwrap_or_default();
    let mut found = Vec::new();
    for lines in [body, cold] {
        let lines: Vec<&str> = lines.lines().skip(1).collect();
        for pair in lines.windows(2) {
            let address = |line: &str| u64::from_str_radix(line.split(':').next()?.trim(), 16).ok();
            if pair[0].contains("call") && pair[0].ends_with(&format!("<{callee}>")) {
                found.extend(address(pair[1]));
            }
        }
    }
    found
}

fn check(built: &Built, function: &str) {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(&built.binary).output();
    let Ok(output) = output else {
        println!("SKIP held: no objdump");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let module = functions_of(&built.binary).expect("a binary");
    let offset = |returns: u64| module.elf().code_offset_of(returns - 1).expect("code");
    let places = |callee: &str| calls(&text, function, callee).into_iter().map(offset).collect::<Vec<u64>>();
    let (under, outside) = (places("under"), places("outside"));
    assert!(!under.is_empty() && !outside.is_empty(), "{function}: a compiler has left calls out");
    let all: Vec<u64> = under.iter().chain(&outside).copied().collect();
    for taken in places("take") {
        let call = LockCall { taken, given: places("give") };
        let found = lock_regions(&module, &[call], &all);
        let found = found[0].as_ref().unwrap_or_else(|| panic!("{function} cannot be followed"));
        let expected: Vec<u32> = (0..under.len() as u32).collect();
        let mut found = found.clone();
        found.sort_unstable();
        assert_eq!(found, expected, "{function} of {}", built.binary.display());
    }
}

#[test]
fn places_between_lock_and_unlock_lie_in_a_lock_region() {
    for level in ["-O0", "-O1", "-O2", "-Os"] {
        let test = "places_between_lock_and_unlock_lie_in_a_lock_region";
        let arguments = [level, "-fno-inline", "-fno-optimize-sibling-calls"];
        let Some(built) = build(test, "cc", &arguments, &[("held.c", SOURCE)]) else { continue };
        for function in ["straight", "loops", "leaves_early", "switches", "inlined", "last"] {
            check(&built, function);
        }
    }
}

#[test]
fn addresses_outside_code_lie_in_no_lock_region() {
    let Some(built) =
        build("addresses_outside_code_lie_in_no_lock_region", "cc", &["-O1"], &[("held.c", SOURCE)])
    else {
        return;
    };
    let module = functions_of(&built.binary).expect("a binary");
    let calls = [
        LockCall { taken: u64::MAX, given: vec![0] },
        LockCall { taken: 0, given: vec![u64::MAX] },
        LockCall::default(),
    ];
    assert_eq!(lock_regions(&module, &calls, &[0, 7, u64::MAX]), [None, None, None]);
}
