//! Time of requests as folded stacks with two numbers, in the format of `difffolded.pl` for `flamegraph.pl` and
//! inferno: the nanoseconds of a fast request, then those of a slow one. The graph is as wide as the slow request, and
//! red where that one takes longer.

use super::folded::plain;
use crate::present::words::cause::words;
use engine::requests::{CauseKind, Means, SpentOn};
use std::io::{self, Write};

/// Writes stacks that do not round to zero. A wait is a frame in brackets; a lock is one below what its holder did.
pub fn write(stacks: &[(SpentOn, Means)], out: &mut dyn Write) -> io::Result<()> {
    for (spent, means) in stacks {
        let [fast, slow] = means.map(|ns| ns.round().max(0.0) as u64);
        if fast == 0 && slow == 0 {
            continue;
        }
        let lock = spent.lock.iter().flat_map(|(lock, by)| [format!("[{lock}]"), format!("[held by {by}]")]);
        let own = match spent.kind {
            CauseKind::Computing => spent.frames.clone(),
            kind => vec![format!("[{}]", words(kind, &spent.name))],
        };
        let frames: Vec<String> = lock.chain(own).map(|name| name.chars().map(plain).collect()).collect();
        writeln!(out, "{} {fast} {slow}", frames.join(";"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_stacks_have_the_numbers_of_both_groups_after_them() {
        let computing = SpentOn {
            lock: Some(("mutex a;b".to_owned(), "keeper".to_owned())),
            kind: CauseKind::Computing,
            frames: vec!["main".to_owned(), "work".to_owned()],
            ..SpentOn::default()
        };
        let disk =
            SpentOn { kind: CauseKind::Disk, name: "file sync in store".to_owned(), ..SpentOn::default() };
        let mut out = Vec::new();
        let stacks = [(computing, [0.0, 1500.4]), (disk.clone(), [7.0, 9.0]), (disk, [0.1, 0.0])];
        write(&stacks, &mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "[mutex a:b];[held by keeper];main;work 0 1500\n[disk: file sync in store] 7 9\n");
    }
}
