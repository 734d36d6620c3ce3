//! Every target reads the files of its folder in `corpus`, where each input that once did harm stays.

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
