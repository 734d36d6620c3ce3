//! The parallel quick sort of 2001, section 4.1, as a program: the tree of Fig. 10 with 2,000,000 integers, in which parts
//! of more than 100,000 integers are split among new threads.
//!
//! Sorting n integers around a pivot costs n ns. The recursion on a part of n integers costs 0.9 · n · log2(n) ns: with
//! this ratio the paper's crossover appears between five and six processors.

use std::fmt::Write;

const INTEGERS: u64 = 2_000_000;
const THRESHOLD: u64 = 100_000;

/// The program's JSON text.
pub fn program() -> String {
    let mut tree = Tree { seed: 1, threads: Vec::new() };
    tree.node(INTEGERS);
    let mut text = String::from("{\"format\":\"longpole-program\",\"version\":1,\"threads\":[\n");
    for (number, operations) in tree.threads.iter().enumerate() {
        let comma = if number + 1 < tree.threads.len() { "," } else { "" };
        let _ = writeln!(text, "{{\"name\":\"T{}\",\"ops\":[{}]}}{comma}", number + 1, operations.join(","));
    }
    text + "]}\n"
}

/// Sum of all computing: the time on one processor.
pub fn total_ns() -> f64 {
    let mut total = 0;
    let text = program();
    for part in text.split("[\"exec\",").skip(1) {
        let digits = part.split(']').next().unwrap_or_default();
        total += digits.parse::<u64>().unwrap_or_else(|error| panic!("{error}: {digits}"));
    }
    let total = u32::try_from(total).unwrap_or_else(|error| panic!("{error}: {total}"));
    f64::from(total)
}

struct Tree {
    seed: u64,
    threads: Vec<Vec<String>>,
}

impl Tree {
    /// Adds the thread that sorts a part, and the threads below it. Returns its number.
    fn node(&mut self, integers: u64) -> usize {
        let own = self.threads.len();
        self.threads.push(Vec::new());
        let left = integers * (1024 + self.random()) / 4096;
        let parts = [left, integers - left];
        let mut operations =
            vec!["[\"call\",\"ParallelQuickSort\"]".to_owned(), format!("[\"exec\",{integers}]")];
        if integers > THRESHOLD {
            let children = parts.map(|part| self.node(part) + 1);
            operations.extend(children.map(|child| format!("[\"create\",\"T{child}\"]")));
            operations.extend(children.map(|child| format!("[\"join\",\"T{child}\"]")));
        } else {
            for part in parts {
                operations.push("[\"call\",\"RecursiveQuickSort\"]".to_owned());
                operations.push(format!("[\"exec\",{}]", recursion_ns(part)));
                operations.push("[\"ret\"]".to_owned());
            }
        }
        operations.push("[\"ret\"]".to_owned());
        self.threads[own] = operations;
        own
    }

    /// A number from 0 to 2047.
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 53
    }
}

/// 0.9 · n · log2(n), with log2 linear between powers of two so that it is the same on every machine.
fn recursion_ns(integers: u64) -> u64 {
    let whole = u64::from(integers.max(1).ilog2());
    let power = 1 << whole;
    let log_1024 = whole * 1024 + (integers - power) * 1024 / power;
    integers * log_1024 * 9 / 10_240
}
