//! The running kernel's type information: just enough of the BTF format (Documentation/bpf/btf.rst) to find
//! members of structs, per-CPU variables and the arguments of tracepoints.

use rustc_hash::FxHashMap;

const KIND_PTR: u32 = 2;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_TYPEDEF: u32 = 8;
const KIND_VOLATILE: u32 = 9;
const KIND_CONST: u32 = 10;
const KIND_RESTRICT: u32 = 11;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_TYPE_TAG: u32 = 18;
const KIND_ENUM64: u32 = 19;

/// Largest number of nested structs that a search for a member follows.
const DEEPEST: u32 = 16;

/// Prefix of the names of all tracepoint types.
const TRACEPOINT: &[u8] = b"btf_trace_";

/// Type information with the positions of its types.
pub(crate) struct Btf<'a> {
    data: &'a [u8],
    strings: (usize, usize),
    /// Offset at which each type starts; index 0 is `void`.
    types: Vec<usize>,
    /// Ids by kind and name, of the kinds that are looked up.
    names: FxHashMap<(u32, &'a [u8]), u32>,
}

/// A type as encoded in the data.
#[derive(Clone, Copy)]
struct Type {
    at: usize,
    kind: u32,
    count: usize,
    bit_fields: bool,
    /// Size in bytes, or the id of the type to which this one refers.
    size_or_type: u32,
}

/// The running kernel's type information, as bytes.
pub(crate) fn of_kernel() -> std::io::Result<Vec<u8>> {
    std::fs::read("/sys/kernel/btf/vmlinux")
}

impl<'a> Btf<'a> {
    /// Indexes type information; `None` if it is damaged or of an unknown version.
    pub(crate) fn parse(data: &'a [u8]) -> Option<Btf<'a>> {
        if u16::from_le_bytes(data.get(0..2)?.try_into().ok()?) != 0xeb9f {
            return None;
        }
        let header = word(data, 4)? as usize;
        let section = |at: usize| -> Option<(usize, usize)> {
            let start = header.checked_add(word(data, at)? as usize)?;
            let end = start.checked_add(word(data, at + 4)? as usize)?;
            (end <= data.len()).then_some((start, end))
        };
        let (mut at, end) = section(8)?;
        let strings = section(16)?;
        let mut btf = Btf { data, strings, types: vec![0], names: FxHashMap::default() };
        while at < end {
            let id = u32::try_from(btf.types.len()).ok()?;
            let kind = btf.read_type(at)?;
            btf.types.push(at);
            if matches!(kind.kind, KIND_STRUCT | KIND_VAR | KIND_TYPEDEF | KIND_DATASEC)
                && let Some(name) = btf.string(word(data, at)?)
                && !name.is_empty()
            {
                btf.names.entry((kind.kind, name)).or_insert(id);
            }
            at = at.checked_add(12)?.checked_add(kind.tail()?)?;
        }
        Some(btf)
    }

    /// The type information reduced to the tracepoints' types, which keep their ids. Other types become empty
    /// placeholders, and types after the last tracepoint are omitted: reading all types takes aya longer than all other
    /// work before a recording begins.
    pub(crate) fn tracepoints(&self) -> Vec<u8> {
        const KIND_FWD: u32 = 7;
        const HEADER: usize = 24;
        let (mut types, mut strings) = (Vec::with_capacity(12 * self.types.len()), vec![0]);
        let mut after_last = 0;
        for &at in self.types.iter().skip(1) {
            let name = self
                .read_type(at)
                .filter(|found| found.kind == KIND_TYPEDEF)
                .and_then(|_| self.string(word(self.data, at)?))
                .filter(|name| name.starts_with(TRACEPOINT));
            let [name, kind] = match name {
                Some(name) => {
                    let offset = strings.len() as u32;
                    strings.extend(name.iter().chain(&[0]));
                    [offset, KIND_TYPEDEF]
                }
                None => [0, KIND_FWD],
            };
            types.extend([name, kind << 24, 0].iter().flat_map(|word| word.to_le_bytes()));
            if kind == KIND_TYPEDEF {
                after_last = types.len();
            }
        }
        types.truncate(after_last);
        let mut data = vec![0x9f, 0xeb, 1, 0];
        let [length, of_strings] = [types.len() as u32, strings.len() as u32];
        data.extend(
            [HEADER as u32, 0, length, length, of_strings].iter().flat_map(|word| word.to_le_bytes()),
        );
        data.extend(types);
        data.extend(strings);
        data
    }

    /// Bytes from the start of struct `name` to a member. `path` separates members of members by dots. Members of
    /// unnamed structs and unions count as members of the outer struct.
    pub(crate) fn member(&self, name: &str, path: &str) -> Option<u32> {
        let mut id = self.id(KIND_STRUCT, name)?;
        let mut offset = 0u32;
        for part in path.split('.') {
            let (bits, member) = self.find_member(self.strip(id)?, part.as_bytes(), DEEPEST)?;
            if bits % 8 != 0 {
                return None;
            }
            offset = offset.checked_add(bits / 8)?;
            id = member;
        }
        Some(offset)
    }

    /// Offset in bytes of a variable from the start of the per-CPU section.
    pub(crate) fn per_cpu_offset(&self, name: &str) -> Option<u32> {
        let variable = self.id(KIND_VAR, name)?;
        let section = self.get(self.id(KIND_DATASEC, ".data..percpu")?)?;
        (0..section.count).find_map(|index| {
            let at = section.at + 12 + 12 * index;
            (word(self.data, at)? == variable).then(|| word(self.data, at + 4)).flatten()
        })
    }

    /// Number of arguments of a tracepoint's programs; `None` if there is no such tracepoint.
    pub(crate) fn tracepoint_arguments(&self, name: &str) -> Option<usize> {
        let pointer = self.get(self.id(KIND_TYPEDEF, &format!("btf_trace_{name}"))?)?;
        let pointer = self.get(pointer.size_or_type)?;
        let function = self.get(pointer.size_or_type)?;
        // The first argument is the tracepoint's private data.
        (function.kind == KIND_FUNC_PROTO).then(|| function.count.saturating_sub(1))
    }

    fn id(&self, kind: u32, name: &str) -> Option<u32> {
        self.names.get(&(kind, name.as_bytes())).copied()
    }

    fn find_member(&self, id: u32, name: &[u8], depth: u32) -> Option<(u32, u32)> {
        let outer = self.get(id)?;
        if depth == 0 || !matches!(outer.kind, KIND_STRUCT | KIND_UNION) {
            return None;
        }
        for index in 0..outer.count {
            let at = outer.at + 12 + 12 * index;
            let member_name = self.string(word(self.data, at)?)?;
            let member = word(self.data, at + 4)?;
            let position = word(self.data, at + 8)?;
            let bits = if outer.bit_fields { position & 0xff_ffff } else { position };
            if member_name == name {
                return Some((bits, member));
            }
            if member_name.is_empty()
                && let Some((inner_bits, found)) = self.find_member(self.strip(member)?, name, depth - 1)
            {
                return Some((bits.checked_add(inner_bits)?, found));
            }
        }
        None
    }

    /// The type behind typedefs and qualifiers.
    fn strip(&self, mut id: u32) -> Option<u32> {
        for _ in 0..DEEPEST {
            let found = self.get(id)?;
            match found.kind {
                KIND_TYPEDEF | KIND_VOLATILE | KIND_CONST | KIND_RESTRICT | KIND_TYPE_TAG => {
                    id = found.size_or_type;
                }
                _ => return Some(id),
            }
        }
        None
    }

    fn get(&self, id: u32) -> Option<Type> {
        let at = *self.types.get(id as usize)?;
        if id == 0 { None } else { self.read_type(at) }
    }

    fn read_type(&self, at: usize) -> Option<Type> {
        let info = word(self.data, at.checked_add(4)?)?;
        Some(Type {
            at,
            kind: info >> 24 & 0x1f,
            count: (info & 0xffff) as usize,
            bit_fields: info >> 31 != 0,
            size_or_type: word(self.data, at.checked_add(8)?)?,
        })
    }

    fn string(&self, offset: u32) -> Option<&'a [u8]> {
        let (start, end) = self.strings;
        let data: &'a [u8] = self.data;
        let text = data.get(start.checked_add(offset as usize)?..end)?;
        text.split(|byte| *byte == 0).next()
    }
}

impl Type {
    /// Bytes that follow the twelve that each type begins with.
    fn tail(&self) -> Option<usize> {
        Some(match self.kind {
            1 | KIND_VAR | KIND_DECL_TAG => 4,
            KIND_ARRAY => 12,
            KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 12 * self.count,
            KIND_ENUM | KIND_FUNC_PROTO => 8 * self.count,
            KIND_PTR | 7 | KIND_TYPEDEF | KIND_VOLATILE | KIND_CONST | KIND_RESTRICT | KIND_FUNC | 16
            | KIND_TYPE_TAG => 0,
            _ => return None,
        })
    }
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type information with `struct outer { int a; struct { int b; long c; }; }`, `int variable` and
    /// `typedef void (*btf_trace_x)(void *, struct outer *, int)`.
    fn sample() -> Vec<u8> {
        let names = b"\0int\0outer\0a\0b\0c\0variable\0btf_trace_x\0.data..percpu\0";
        let name = |text: &str| {
            let text = format!("{text}\0");
            names.windows(text.len()).position(|w| w == text.as_bytes()).expect("listed above") as u32
        };
        let mut types: Vec<u32> = Vec::new();
        let info = |kind: u32, count: u32| kind << 24 | count;
        types.extend([name("int"), info(1, 0), 4, 32]); // 1
        types.extend([0, info(KIND_STRUCT, 2), 16, name("b"), 1, 0, name("c"), 1, 64]); // 2
        types.extend([name("outer"), info(KIND_STRUCT, 2), 24, name("a"), 1, 0, 0, 2, 64]); // 3
        types.extend([name("variable"), info(KIND_VAR, 0), 1, 1]); // 4
        types.extend([0, info(KIND_FUNC_PROTO, 3), 0, 0, 6, 0, 6, 0, 1]); // 5
        types.extend([0, info(KIND_PTR, 0), 5]); // 6
        types.extend([name("btf_trace_x"), info(KIND_TYPEDEF, 0), 6]); // 7
        types.extend([name(".data..percpu"), info(KIND_DATASEC, 2), 64, 9, 0, 4, 4, 48, 4]); // 8
        let type_bytes: Vec<u8> = types.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut data = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, type_bytes.len() as u32, type_bytes.len() as u32, names.len() as u32] {
            data.extend(word.to_le_bytes());
        }
        data.extend(type_bytes);
        data.extend(names);
        data
    }

    #[test]
    fn btf_finds_members_variables_and_tracepoint_arguments() {
        let sample = sample();
        let btf = Btf::parse(&sample).expect("whole");
        assert_eq!(btf.member("outer", "a"), Some(0));
        assert_eq!(btf.member("outer", "b"), Some(8));
        assert_eq!(btf.member("outer", "c"), Some(16));
        assert_eq!(btf.member("outer", "d"), None);
        assert_eq!(btf.member("inner", "a"), None);
        assert_eq!(btf.per_cpu_offset("variable"), Some(48));
        assert_eq!(btf.per_cpu_offset("outer"), None);
        assert_eq!(btf.tracepoint_arguments("x"), Some(2));
        assert_eq!(btf.tracepoint_arguments("y"), None);
    }

    #[test]
    fn reduced_btf_keeps_the_numbers_of_tracepoints() {
        let sample = sample();
        let reduced = Btf::parse(&sample).expect("whole").tracepoints();
        let aya = aya::Btf::parse(&reduced, aya::Endianness::Little).expect("whole");
        drop(aya);
        let btf = Btf::parse(&reduced).expect("whole");
        assert_eq!(btf.types.len(), 8, "the last one is a tracepoint's");
        assert_eq!(btf.id(KIND_TYPEDEF, "btf_trace_x"), Some(7));
        assert_eq!(btf.names.len(), 1);
    }

    #[test]
    fn cut_or_changed_btf_never_panics() {
        let whole = sample();
        for cut in 0..whole.len() {
            let _ = Btf::parse(&whole[..cut]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Some(btf) = Btf::parse(&changed) {
                    let _ = btf.tracepoints();
                    let _ = btf.member("outer", "c");
                    let _ = btf.tracepoint_arguments("x");
                    let _ = btf.per_cpu_offset("variable");
                }
            }
        }
    }
}
