//! Every target reads the files of its folder in `corpus`, where each input that once did harm stays, and files that are made of
//! them by changing bytes: a little of what `./x fuzz` does for longer, and the same in every run.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz::TARGETS;

/// Files of a target's folder.
fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_reads_its_corpus_without_a_panic() {
    for target in TARGETS {
        let files = corpus(target.name);
        assert!(files.len() >= 3, "{} has a corpus", target.name);
        for file in files {
            let bytes = fs::read(&file).expect("a file");
            assert!(bytes.len() <= 100_000, "{}: an input is at most 100 kB", file.display());
            eprintln!("{}", file.display());
            (target.run)(&bytes);
        }
    }
}

/// Numbers that look random and are the same in every run (a linear congruence, Knuth's MMIX).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % most.max(1)
    }
}

/// Changes some bytes, repeats or removes a stretch, or cuts the end.
fn change(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let end = (at + 1 + numbers.below(64)).min(bytes.len());
        match numbers.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.extend_from_within(at..end),
            3 => bytes[at..end].fill(0xff),
            _ if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
            _ => {}
        }
    }
}

#[test]
fn every_target_reads_changed_files_without_a_panic() {
    for target in TARGETS {
        let files: Vec<Vec<u8>> =
            corpus(target.name).iter().map(|file| fs::read(file).expect("a file")).collect();
        // Analysing takes a hundred times as long as reading.
        let times = if matches!(target.name, "report" | "binary") { 2_000 } else { 20_000 };
        let mut numbers = Numbers(1);
        for time in 0..times {
            let mut bytes = files[numbers.below(files.len())].clone();
            change(&mut bytes, &mut numbers);
            if time % 1_000 == 0 {
                eprintln!("{}: {time}", target.name);
            }
            (target.run)(&bytes);
        }
    }
}
