//! Limits the content of one file. The reader reads no more than the limits, so it needs bounded memory for any file.
//! The writer counts in the same way, and omits content beyond the limits.

/// The largest content of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileLimits {
    /// Number of events. The reader computes this limit from its free memory; the writer has no such limit.
    pub events: u64,
    /// Bytes of unpacked JSON in all chunks of facts and notes, plus the memory of stacks. A limit on the number of
    /// entries is not enough, because entries contain lists and names of any length.
    pub bytes: u64,
    /// Number of entries of facts.
    pub facts: usize,
    /// Number of notes and stacks together.
    pub notes: usize,
    /// Bytes of unpacked JSON in all parts of the end. This limit is separate, because every recording needs an end.
    pub end_bytes: u64,
    /// Number of threads and pending operations in all parts of the end.
    pub end_entries: usize,
}

impl FileLimits {
    /// The limits of every file. A recording of a million functions takes about `bytes`. In memory, one byte of JSON
    /// becomes at most 8 bytes: `0,` in a list of rates, in a vector that has just doubled. A part of the end takes 1
    /// kB for a thread that may use 256 CPUs. No Linux has more than `end_entries` threads.
    pub const FILE: FileLimits = FileLimits {
        events: u64::MAX,
        bytes: 256 << 20,
        facts: 1 << 22,
        notes: 1 << 22,
        end_bytes: 64 << 20,
        end_entries: 1 << 22,
    };
}

impl Default for FileLimits {
    fn default() -> FileLimits {
        FileLimits::FILE
    }
}

/// The content of a file so far, as counts, and its limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    limits: FileLimits,
    bytes: u64,
    facts: usize,
    notes: usize,
    end_bytes: u64,
    end_entries: usize,
}

impl Room {
    /// The counts of an empty file.
    pub fn of(limits: FileLimits) -> Room {
        Room { limits, ..Room::default() }
    }

    /// The limits.
    pub fn limits(&self) -> &FileLimits {
        &self.limits
    }

    /// Number of bytes that facts, notes and stacks may still take.
    pub fn bytes_left(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.bytes)
    }

    /// Counts facts with this many bytes of JSON, even if they exceed the limits.
    pub fn count_facts(&mut self, entries: usize, bytes: u64) {
        self.facts = self.facts.saturating_add(entries);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts notes with this many bytes of JSON, or stacks with this many bytes of memory, even if they exceed the
    /// limits.
    pub fn count_notes(&mut self, notes: usize, bytes: u64) {
        self.notes = self.notes.saturating_add(notes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts facts with this many bytes of JSON if all of them have room. Returns whether they had.
    pub fn take_facts(&mut self, entries: usize, bytes: u64) -> bool {
        let limits = self.limits;
        take((&mut self.facts, entries, limits.facts), (&mut self.bytes, bytes, limits.bytes))
    }

    /// Counts notes with this many bytes of JSON, or stacks with this many bytes of memory, if all of them have room.
    /// Returns whether they had.
    pub fn take_notes(&mut self, notes: usize, bytes: u64) -> bool {
        let limits = self.limits;
        take((&mut self.notes, notes, limits.notes), (&mut self.bytes, bytes, limits.bytes))
    }

    /// Counts threads and pending operations in parts of the end if they have room. Returns whether they had.
    pub fn take_end(&mut self, entries: usize, bytes: u64) -> bool {
        let limits = self.limits;
        take(
            (&mut self.end_entries, entries, limits.end_entries),
            (&mut self.end_bytes, bytes, limits.end_bytes),
        )
    }
}

/// Adds to both counts if both stay within their limits. Otherwise adds to neither. Each tuple has a count, the
/// addition, and the limit.
fn take(entries: (&mut usize, usize, usize), bytes: (&mut u64, u64, u64)) -> bool {
    let ((entries, more, most), (bytes, more_bytes, most_bytes)) = (entries, bytes);
    let all = entries.saturating_add(more);
    let all_bytes = bytes.saturating_add(more_bytes);
    let fits = all <= most && all_bytes <= most_bytes;
    if fits {
        (*entries, *bytes) = (all, all_bytes);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_completely_or_not_at_all() {
        let limits =
            FileLimits { bytes: 10, facts: 2, notes: 2, end_bytes: 3, end_entries: 1, ..FileLimits::FILE };
        let mut room = Room::of(limits);
        assert!(room.take_facts(1, 6) && !room.take_facts(1, 5) && !room.take_facts(2, 1));
        assert_eq!(room.bytes_left(), 4);
        assert!(!room.take_notes(1, 5) && !room.take_notes(3, 0) && room.take_notes(2, 4));
        assert!(!room.take_facts(1, 1), "the bytes are shared");
        assert!(!room.take_end(2, 1) && !room.take_end(1, 4) && room.take_end(1, 3), "but for the end's");
        assert!(!room.take_facts(usize::MAX, 0) && !room.take_notes(0, u64::MAX));
    }
}
