//! Six threads that book transfers and write each to a journal on the disk: synced under the journal's lock (each), or by
//! one thread for all that came meanwhile (batch). Arguments: which, transfers of each thread, folder.

use std::fs::File;
use std::io::Write;
use std::sync::{Condvar, Mutex};

struct Journal {
    file: Mutex<File>,
    // Lines not yet written; the number of batches begun; the number of batches on the disk.
    open: Mutex<(Vec<u8>, u64, u64)>,
    changed: Condvar,
}

#[inline(never)]
fn book(transfer: u64) -> u64 {
    (0..60_000).fold(transfer | 1, |state, _| {
        let state = state ^ (state << 13);
        let state = state ^ (state >> 7);
        state ^ (state << 17)
    })
}

fn write_each(journal: &Journal, line: &[u8]) -> std::io::Result<()> {
    let mut file = journal.file.lock().expect("the journal");
    file.write_all(line)?;
    file.sync_data()
}

fn write_batch(journal: &Journal, line: &[u8]) -> std::io::Result<()> {
    let mut open = journal.open.lock().expect("what is open");
    open.0.extend_from_slice(line);
    let mine = open.1 + 1;
    while open.2 < mine {
        if open.1 > open.2 {
            open = journal.changed.wait(open).expect("what is open");
            continue;
        }
        open.1 += 1;
        let (lines, batch) = (std::mem::take(&mut open.0), open.1);
        drop(open);
        write_each(journal, &lines)?;
        open = journal.open.lock().expect("what is open");
        open.2 = batch;
        journal.changed.notify_all();
    }
    Ok(())
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let write = if words[1] == "each" { write_each } else { write_batch };
    let path = format!("{}/journal", words[3]);
    let file = Mutex::new(File::create(&path).expect("a journal"));
    let journal = &Journal { file, open: Mutex::new((Vec::new(), 0, 0)), changed: Condvar::new() };
    let transfers: u64 = words[2].parse().expect("transfers");
    let body = || (0..transfers).try_for_each(|at| write(journal, format!("{at} {:x}\n", book(at)).as_bytes()));
    std::thread::scope(|scope| (0..6).for_each(|_| drop(scope.spawn(body))));
    println!("{:?}", std::fs::remove_file(&path));
}
