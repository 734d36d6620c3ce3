//! A unit's line table without its rows: marks in the program that makes them, from which the rows nearby are made again.
//!
//! The rows of a large program take nearly as much memory as all its debug information. Marks, one for 32 of them, take a
//! thirtieth of that, and making 32 rows again takes a fraction of a microsecond.
//!
//! Has the same meaning as gimli's and addr2line's reading of a line program. Unusual things (several
//! operations in an instruction, files defined inside the program, damage) are left to them.

use super::cursor::Cursor;
use gimli::{EndianSlice, LineProgramHeader, LittleEndian};

/// Rows from one mark to the next.
const ROWS: u32 = 32;
/// Most sequences of one unit: each may take as much memory as ten bytes of the file.
const MOST_SEQUENCES: usize = 1 << 20;
/// Most marks of one unit.
const MOST_MARKS: usize = 1 << 23;

/// The state of the machine that makes rows.
#[derive(Clone, Copy, Debug)]
struct Registers {
    address: u64,
    file: u64,
    line: u64,
    column: u64,
    /// The linker has thrown these rows away.
    dropped: bool,
}

const START: Registers = Registers { address: 0, file: 1, line: 1, column: 0, dropped: false };

/// After a row.
#[derive(Clone, Copy, Debug)]
struct Mark {
    address: u64,
    /// In the program.
    at: u32,
    line: u32,
    file: u32,
    column: u32,
}

/// Rows one after the other, with their marks.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    start: u64,
    end: u64,
    first: u32,
    count: u32,
}

/// Where a program's rows are.
#[derive(Debug)]
pub struct LineMarks {
    sequences: Vec<Sequence>,
    marks: Vec<Mark>,
}

/// A source line, by the number of its file in the unit's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFound {
    pub file: u64,
    /// 0: the compiler names none.
    pub line: u32,
    pub column: u32,
}

/// A line program.
pub struct LineProgram<'a> {
    bytes: &'a [u8],
    lengths: &'a [u8],
    first_special: u8,
    /// What each special instruction adds: lines, and bytes of address.
    special: [(i16, u16); 256],
    step: u64,
    highest: u64,
    version: u16,
    address_size: u8,
}

/// What an instruction has led to.
enum Made {
    Nothing,
    Row,
    End,
}

impl<'a> LineProgram<'a> {
    /// `None`: it is out of the ordinary.
    pub fn of(header: &LineProgramHeader<EndianSlice<'a, LittleEndian>>) -> Option<LineProgram<'a>> {
        let encoding = header.line_encoding();
        let size = header.address_size();
        if encoding.maximum_operations_per_instruction != 1
            || encoding.line_range == 0
            || header.opcode_base() == 0
            || !matches!(size, 4 | 8)
        {
            return None;
        }
        let step = u16::from(encoding.minimum_instruction_length);
        let mut special = [(0, 0); 256];
        for (code, adds) in special.iter_mut().enumerate().skip(usize::from(header.opcode_base())) {
            let code = code as u8 - header.opcode_base();
            let lines = i16::from(encoding.line_base) + i16::from(code % encoding.line_range);
            *adds = (lines, u16::from(code / encoding.line_range) * step);
        }
        Some(LineProgram {
            bytes: header.raw_program_buf().slice(),
            lengths: header.standard_opcode_lengths().slice(),
            first_special: header.opcode_base(),
            special,
            step: u64::from(step),
            highest: u64::MAX >> (64 - u32::from(size) * 8),
            version: header.version(),
            address_size: size,
        })
    }

    #[inline(always)]
    fn advance(&self, registers: &mut Registers, by: u64) -> Option<()> {
        if !registers.dropped {
            let address = registers.address.checked_add(by)?;
            if address > self.highest {
                return None;
            }
            registers.address = address;
        }
        Some(())
    }

    #[inline(always)]
    fn advance_line(registers: &mut Registers, by: i64) {
        registers.line = if by < 0 {
            registers.line.saturating_sub(by.unsigned_abs())
        } else {
            registers.line.wrapping_add(by.unsigned_abs())
        };
    }

    /// Carries one instruction out. `None`: it is damaged or out of the ordinary.
    #[inline(always)]
    fn next(&self, cursor: &mut Cursor<'_>, registers: &mut Registers) -> Option<Made> {
        let code = cursor.byte()?;
        if code >= self.first_special {
            let (lines, bytes) = self.special[usize::from(code)];
            LineProgram::advance_line(registers, i64::from(lines));
            self.advance(registers, u64::from(bytes))?;
            return Some(Made::Row);
        }
        match code {
            0 => return self.extended(cursor, registers),
            1 => return Some(Made::Row),
            2 => {
                let operations = cursor.unsigned()?;
                self.advance(registers, self.step.wrapping_mul(operations))?;
            }
            3 => LineProgram::advance_line(registers, cursor.signed()?),
            4 => registers.file = cursor.unsigned()?,
            5 => registers.column = cursor.unsigned()?,
            // A statement, a basic block, the end of a prologue, the beginning of an epilogue: not needed.
            6 | 7 | 10 | 11 => {}
            8 => self.advance(registers, u64::from(self.special[255].1))?,
            9 => {
                let by = cursor.number(2)?;
                self.advance(registers, by)?;
            }
            12 => drop(cursor.unsigned()?),
            unknown => {
                for _ in 0..*self.lengths.get(usize::from(unknown) - 1)? {
                    cursor.unsigned()?;
                }
            }
        }
        Some(Made::Nothing)
    }

    #[inline(never)]
    fn extended(&self, cursor: &mut Cursor<'_>, registers: &mut Registers) -> Option<Made> {
        let length = usize::try_from(cursor.unsigned()?).ok()?;
        let (from, mut end) = (cursor.at(), *cursor);
        end.skip(length)?;
        if length == 0 {
            return None;
        }
        let made = match cursor.byte()? {
            1 => Made::End,
            2 => {
                let size = usize::from(self.address_size);
                if length <= size {
                    return None;
                }
                let address = cursor.number(size)?;
                // The linker marks what it has thrown away by the highest addresses, or by ones that go back.
                registers.dropped = address < registers.address || address >= self.highest - 1;
                if !registers.dropped {
                    registers.address = address;
                }
                Made::Nothing
            }
            3 if self.version <= 4 => return None,
            _ => Made::Nothing,
        };
        cursor.go_to(from.checked_add(length)?);
        Some(made)
    }
}

impl LineMarks {
    /// Runs the program once. `None`: it is damaged or out of the ordinary.
    pub fn of(program: &LineProgram<'_>) -> Option<LineMarks> {
        // Places in the program are kept in 32 bits.
        u32::try_from(program.bytes.len()).ok()?;
        let (mut sequences, mut marks) = (Vec::new(), Vec::<Mark>::new());
        let mut cursor = Cursor::new(program.bytes, 0);
        let mut registers = START;
        // Of the sequence that is being made: where it starts, its first mark, rows since the last one.
        let mut open: Option<(u64, u32)> = None;
        let mut since = 0;
        let mut last = 0;
        while !cursor.is_at_end() {
            match program.next(&mut cursor, &mut registers)? {
                Made::Nothing => {}
                Made::Row if registers.dropped => {}
                Made::Row => {
                    let address = registers.address;
                    if open.is_none() {
                        open = Some((address, u32::try_from(marks.len()).ok()?));
                        since = ROWS;
                    } else if address < last {
                        return None;
                    }
                    last = address;
                    if since >= ROWS {
                        since = 0;
                        if marks.len() >= MOST_MARKS {
                            return None;
                        }
                        marks.push(Mark {
                            address,
                            at: cursor.at() as u32,
                            line: u32::try_from(registers.line).ok()?,
                            file: u32::try_from(registers.file).ok()?,
                            column: registers.column as u32,
                        });
                    }
                    since += 1;
                }
                Made::End => {
                    if !registers.dropped
                        && let Some((start, first)) = open.take()
                    {
                        let count = u32::try_from(marks.len()).ok()?.saturating_sub(first);
                        if sequences.len() >= MOST_SEQUENCES {
                            return None;
                        }
                        if start < registers.address {
                            sequences.push(Sequence { start, end: registers.address, first, count });
                        }
                    }
                    registers = START;
                }
            }
        }
        sequences.sort_unstable_by_key(|sequence| sequence.start);
        sequences.shrink_to_fit();
        marks.shrink_to_fit();
        Some(LineMarks { sequences, marks })
    }

    /// The addresses of each sequence.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sequences.iter().map(|sequence| (sequence.start, sequence.end))
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.sequences[..]).saturating_add(size_of_val(&self.marks[..]))
    }

    /// The row that holds an address. `None`: the program is damaged after all.
    pub fn find(&self, program: &LineProgram<'_>, address: u64) -> Option<Option<LineFound>> {
        let found = self.sequences.binary_search_by(|sequence| {
            if address < sequence.start {
                std::cmp::Ordering::Greater
            } else if address >= sequence.end {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Equal
            }
        });
        let Some(sequence) = found.ok().and_then(|at| self.sequences.get(at)) else { return Some(None) };
        let first = sequence.first as usize;
        let marks = self.marks.get(first..first + sequence.count as usize)?;
        let behind = marks.partition_point(|mark| mark.address <= address);
        let mark = behind.checked_sub(1).and_then(|at| marks.get(at))?;
        let mut cursor = Cursor::new(program.bytes, mark.at as usize);
        let mut registers = Registers {
            address: mark.address,
            file: u64::from(mark.file),
            line: u64::from(mark.line),
            column: u64::from(mark.column),
            dropped: false,
        };
        let mut row = registers;
        loop {
            match program.next(&mut cursor, &mut registers)? {
                Made::Nothing => {}
                Made::Row if registers.dropped => {}
                Made::Row if registers.address <= address => row = registers,
                // A sequence that was thrown away has no end.
                Made::End if registers.dropped => registers = START,
                Made::Row | Made::End => break,
            }
        }
        Some(Some(LineFound { file: row.file, line: row.line as u32, column: row.column as u32 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{DebugLine, DebugLineOffset};

    /// A table of version 4 with one file.
    fn table(step: u8, first_special: u8, line_base: i8, line_range: u8, program: &[u8]) -> Vec<u8> {
        let mut rest = vec![step, 1, 1, line_base as u8, line_range, first_special];
        let lengths = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 1, 0];
        rest.extend(&lengths[..usize::from(first_special) - 1]);
        rest.extend(b"\0a.c\0\0\0\0\0");
        let mut table = 4u16.to_le_bytes().to_vec();
        table.extend((rest.len() as u32).to_le_bytes());
        table.extend(rest);
        table.extend(program);
        let mut whole = (table.len() as u32).to_le_bytes().to_vec();
        whole.extend(table);
        whole
    }

    type Rows = Vec<(u64, LineFound)>;

    /// All rows by gimli, searched as addr2line does.
    fn plainly(bytes: &[u8], address: u64) -> Option<LineFound> {
        let program = DebugLine::new(bytes, LittleEndian).program(DebugLineOffset(0), 8, None, None);
        let mut rows = program.expect("a program").rows();
        let mut open: Rows = Vec::new();
        let mut sequences: Vec<(u64, u64, Rows)> = Vec::new();
        while let Some((_, row)) = rows.next_row().expect("undamaged") {
            if row.end_sequence() {
                if let Some((start, _)) = open.first() {
                    let (start, end) = (*start, row.address());
                    let rows = std::mem::take(&mut open);
                    if start < end {
                        sequences.push((start, end, rows));
                    }
                }
                continue;
            }
            let column = match row.column() {
                gimli::ColumnType::LeftEdge => 0,
                gimli::ColumnType::Column(column) => column.get() as u32,
            };
            let line = row.line().map_or(0, |line| line.get() as u32);
            open.push((row.address(), LineFound { file: row.file_index(), line, column }));
        }
        let (.., rows) = sequences.iter().find(|(start, end, _)| (*start..*end).contains(&address))?;
        rows.iter().rev().find(|(at, _)| *at <= address).map(|(_, found)| *found)
    }

    #[test]
    fn every_row_is_found_again() {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let (mut compared, mut refused) = (0, 0);
        for round in 0..400 {
            let first_special = [10, 13, 13, 14, 16][round % 5];
            let (step, range) = (1 + next(4) as u8, 1 + next(20) as u8);
            let mut program = Vec::new();
            let mut spots = Vec::new();
            for sequence in 0..1 + next(4) {
                // Sequences lie apart from each other, in any order; some are thrown away.
                let start = ((round as u64 * 7 + sequence * 5) % 11 + 1) << 32;
                let start = if next(8) == 0 { u64::MAX } else { start };
                program.extend([0, 9, 2]);
                program.extend(start.to_le_bytes());
                spots.extend((0..40).map(|_| start.wrapping_add(next(3000) * u64::from(step))));
                for _ in 0..next(300) {
                    match next(16) {
                        0 => program.extend([2, next(128) as u8]),
                        1 => program.extend([3, next(128) as u8]),
                        2 => program.extend([3, 0x80 | next(128) as u8, next(128) as u8]),
                        3 => program.extend([4, next(128) as u8]),
                        4 => program.extend([5, 0x80 | next(128) as u8, 1 + next(3) as u8]),
                        5 => program.extend([1 + 5 * next(2) as u8, 7]),
                        6 => program.push(8),
                        7 => program.extend([9, next(200) as u8, 0]),
                        8 => program.extend([0, 2, 4, next(100) as u8]),
                        9 => program.extend([0, 3, 0x80, 1, 2]),
                        10 if first_special > 13 => program.extend([13, 0x81, 1, 2]),
                        _ => program.push(first_special + next(256 - u64::from(first_special)) as u8),
                    }
                }
                program.extend([0, 1, 1]);
            }
            let bytes = table(step, first_special, -5, range, &program);
            let parsed = DebugLine::new(&bytes, LittleEndian).program(DebugLineOffset(0), 8, None, None);
            let parsed = parsed.expect("a program");
            let program = LineProgram::of(parsed.header()).expect("an ordinary one");
            let Some(marks) = LineMarks::of(&program) else {
                refused += 1;
                continue;
            };
            for spot in spots {
                assert_eq!(
                    marks.find(&program, spot),
                    Some(plainly(&bytes, spot)),
                    "round {round}, {spot:#x}"
                );
                compared += usize::from(plainly(&bytes, spot).is_some());
            }
        }
        assert!(compared > 5000 && refused < 40, "{compared} compared, {refused} refused");
    }

    #[test]
    fn damaged_programs_are_refused_or_read_and_end() {
        let mut random = 0x2545_f491_4f6c_dd1du64;
        for _ in 0..3000 {
            let mut program: Vec<u8> = vec![0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0];
            for _ in 0..200 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                program.push((random >> 32) as u8 >> (random % 4));
            }
            let bytes = table(1, 13, -3, 12, &program);
            let parsed = DebugLine::new(&bytes, LittleEndian).program(DebugLineOffset(0), 8, None, None);
            let Some(program) = LineProgram::of(parsed.expect("a program").header()) else { continue };
            if let Some(marks) = LineMarks::of(&program) {
                (0x1000..0x1400).step_by(7).for_each(|address| {
                    assert!(marks.find(&program, address).is_some(), "read once, read again");
                });
            }
        }
    }
}
