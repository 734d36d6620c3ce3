//! Limits on the content of one file. The reader reads no more than that, so it needs a limited amount of memory for
//! any file. The writer counts in the same way, and omits what exceeds the limits.

/// The most that a file may hold.
#[derive(Clone, Copy, Debug)]
pub struct FileLimits {
    /// Events. The reader sets this by its free memory; the writer writes any number.
    pub events: u64,
    /// Bytes of unpacked JSON in all chunks of facts and notes, plus memory of stacks. Entries alone are not enough to count,
    /// because their lists and names have any length.
    pub bytes: u64,
    /// Entries of facts.
    pub facts: usize,
    /// Notes and stacks together.
    pub notes: usize,
    /// Bytes of unpacked JSON in all parts of the end. The end has a limit of its own, because every recording needs one.
    pub end_bytes: u64,
    /// Threads and pending operations in all parts of the end.
    pub end_entries: usize,
}

impl FileLimits {
    /// The limits of every file. A recording of a million functions takes about `bytes`. In memory a byte of a list becomes at
    /// most 8: `0,` in a list of rates, in a vector that has just doubled. A part of the end takes 1 kB for a thread that may
    /// use 256 CPUs; no Linux has more than `end_entries` threads.
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

/// How much content a file has so far, and its limits.
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
    /// The room of an empty file.
    pub fn of(limits: FileLimits) -> Room {
        Room { limits, ..Room::default() }
    }

    /// The limits.
    pub fn limits(&self) -> &FileLimits {
        &self.limits
    }

    /// Bytes of room for facts, notes and stacks.
    pub fn bytes_left(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.bytes)
    }

    /// Counts facts with this number of bytes of JSON, whether there is room for them or not.
    pub fn count_facts(&mut self, entries: usize, bytes: u64) {
        self.facts = self.facts.saturating_add(entries);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts notes with this many bytes of JSON, or stacks with this many bytes of memory, even without room.
    pub fn count_notes(&mut self, notes: usize, bytes: u64) {
        self.notes = self.notes.saturating_add(notes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts facts with this many bytes of JSON if there is room for all; else returns `false`.
    pub fn take_facts(&mut self, entries: usize, bytes: u64) -> bool {
        let limits = self.limits;
        take((&mut self.facts, entries, limits.facts), (&mut self.bytes, bytes, limits.bytes))
    }

    /// Counts notes with this number of bytes of JSON, or stacks with this number of bytes of memory, if there is room
    /// for them; returns whether there was.
    pub fn take_notes(&mut self, notes: usize, bytes: u64) -> bool {
        let limits = self.limits;
        take((&mut self.notes, notes, limits.notes), (&mut self.bytes, bytes, limits.bytes))
    }

    /// Counts threads and pending operations in parts of the end, if there is room for them; returns whether there was.
    pub fn take_end(&mut self, entries: usize, bytes: u64) -> bool {
        let limits = self.limits;
        take(
            (&mut self.end_entries, entries, limits.end_entries),
            (&mut self.end_bytes, bytes, limits.end_bytes),
        )
    }
}

/// Adds to both counts if both stay within their limits, else to neither. Each tuple is count, addition, limit.
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
