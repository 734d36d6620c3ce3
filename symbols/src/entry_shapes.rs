//! How long the entries of a unit are: most lie between what is looked for, and passing them is most of the work.
//!
//! An abbreviation says which attributes an entry has and in which form. From that follows, once for each abbreviation, a
//! short list of steps that lead over all of them, those of fixed length taken together.

use super::cursor::Cursor;
use gimli::{Abbreviation, Abbreviations, DwForm, DwTag, Encoding, constants};

/// Abbreviations with larger numbers are not looked at in this way.
const MOST_CODES: u64 = 1 << 16;

/// The shapes of a unit's entries, by the number of their abbreviation, made as they are met.
#[derive(Default)]
pub struct Shapes {
    known: Vec<Option<Shape>>,
    steps: Vec<Step>,
}

/// What an entry is, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What it describes.
    pub tag: DwTag,
    /// Whether entries below it follow.
    pub has_children: bool,
    /// Its address attributes.
    pub addresses: Addresses,
    /// Steps over its attributes; none where `fixed` bytes are all.
    count: u16,
    first: u32,
    fixed: u32,
}

/// The addresses of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// Nothing.
    None,
    /// The first one and how many: [`Passed::low`], [`Passed::size`].
    Span,
    /// Where a list of ranges is: [`Passed::list`].
    List,
    /// Something else, which gimli reads.
    Other,
}

/// What was found on the way over an entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Where the next entry after its children is, from the unit's start; 0: it does not say.
    pub sibling: usize,
    /// Its first address.
    pub low: u64,
    /// How many bytes it has.
    pub size: u64,
    /// Where its list of ranges is.
    pub list: usize,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Fixed(u32),
    /// Number of variable length.
    Variable,
    /// A length in this many bytes, then that many bytes.
    Block(u8),
    /// A length of variable length, then that many.
    VariableBlock,
    Text,
    /// Where the entry after the children is, in this many bytes, from the unit's start.
    Sibling(u8),
    /// The first address, in this many bytes.
    Low(u8),
    /// The number of addresses, in this many bytes.
    Size(u8),
    /// Where the list of ranges is, in this many bytes.
    List(u8),
}

impl Step {
    /// Over an attribute of some form; `None`: unknown, or it could be any.
    fn of(form: DwForm, encoding: Encoding) -> Option<Step> {
        Some(match form {
            constants::DW_FORM_implicit_const | constants::DW_FORM_flag_present => Step::Fixed(0),
            constants::DW_FORM_data1
            | constants::DW_FORM_flag
            | constants::DW_FORM_strx1
            | constants::DW_FORM_ref1
            | constants::DW_FORM_addrx1 => Step::Fixed(1),
            constants::DW_FORM_data2
            | constants::DW_FORM_ref2
            | constants::DW_FORM_addrx2
            | constants::DW_FORM_strx2 => Step::Fixed(2),
            constants::DW_FORM_addrx3 | constants::DW_FORM_strx3 => Step::Fixed(3),
            constants::DW_FORM_data4
            | constants::DW_FORM_ref_sup4
            | constants::DW_FORM_ref4
            | constants::DW_FORM_strx4
            | constants::DW_FORM_addrx4 => Step::Fixed(4),
            constants::DW_FORM_data8
            | constants::DW_FORM_ref8
            | constants::DW_FORM_ref_sig8
            | constants::DW_FORM_ref_sup8 => Step::Fixed(8),
            constants::DW_FORM_data16 => Step::Fixed(16),
            constants::DW_FORM_addr => Step::Fixed(u32::from(encoding.address_size)),
            constants::DW_FORM_sec_offset
            | constants::DW_FORM_GNU_ref_alt
            | constants::DW_FORM_strp
            | constants::DW_FORM_strp_sup
            | constants::DW_FORM_GNU_strp_alt
            | constants::DW_FORM_line_strp => Step::Fixed(u32::from(encoding.format.word_size())),
            // As long as an address in version 2.
            constants::DW_FORM_ref_addr if encoding.version == 2 => {
                Step::Fixed(u32::from(encoding.address_size))
            }
            constants::DW_FORM_ref_addr => Step::Fixed(u32::from(encoding.format.word_size())),
            constants::DW_FORM_block1 => Step::Block(1),
            constants::DW_FORM_block2 => Step::Block(2),
            constants::DW_FORM_block4 => Step::Block(4),
            constants::DW_FORM_block | constants::DW_FORM_exprloc => Step::VariableBlock,
            constants::DW_FORM_string => Step::Text,
            constants::DW_FORM_udata
            | constants::DW_FORM_sdata
            | constants::DW_FORM_ref_udata
            | constants::DW_FORM_strx
            | constants::DW_FORM_GNU_str_index
            | constants::DW_FORM_addrx
            | constants::DW_FORM_GNU_addr_index
            | constants::DW_FORM_loclistx
            | constants::DW_FORM_rnglistx => Step::Variable,
            _ => return None,
        })
    }
}

impl Shapes {
    /// Forgets them all: another unit comes.
    pub fn clear(&mut self) {
        self.known.clear();
        self.steps.clear();
    }

    /// The shape of the entries of an abbreviation; `None` if there is none or its forms are unknown.
    #[inline]
    pub fn of<R: gimli::Reader>(&mut self, unit: &gimli::Unit<R>, code: u64) -> Option<Shape> {
        match self.known.get(code as usize) {
            Some(Some(shape)) if code < MOST_CODES => Some(*shape),
            _ => self.make(&unit.abbreviations, unit.header.encoding(), code),
        }
    }

    #[cold]
    fn make(&mut self, abbreviations: &Abbreviations, encoding: Encoding, code: u64) -> Option<Shape> {
        let abbreviation = abbreviations.get(code).filter(|_| code < MOST_CODES)?;
        let first = u32::try_from(self.steps.len()).ok()?;
        self.add_steps(abbreviation, encoding)?;
        let has = |name| abbreviation.attributes().iter().any(|attribute| attribute.name() == name);
        let steps = self.steps.get(first as usize..).unwrap_or_default();
        let counts = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
        let lows = counts(|step| matches!(step, Step::Low(_)));
        let sizes = counts(|step| matches!(step, Step::Size(_)));
        let lists = counts(|step| matches!(step, Step::List(_)));
        let addresses = match (has(constants::DW_AT_low_pc), has(constants::DW_AT_ranges)) {
            (false, false) => Addresses::None,
            (true, false) if lows == 1 && sizes == 1 => Addresses::Span,
            (_, true) if lists == 1 => Addresses::List,
            _ => Addresses::Other,
        };
        let (count, fixed) = match steps {
            [Step::Fixed(size)] => (0, *size),
            steps => (u16::try_from(steps.len()).ok()?, 0),
        };
        let (tag, has_children) = (abbreviation.tag(), abbreviation.has_children());
        let shape = Shape { tag, has_children, addresses, count, first, fixed };
        let at = usize::try_from(code).ok()?;
        if self.known.len() <= at {
            self.known.resize(at + 1, None);
        }
        self.known[at] = Some(shape);
        Some(shape)
    }

    fn add_steps(&mut self, abbreviation: &Abbreviation, encoding: Encoding) -> Option<()> {
        let mut fixed = 0u32;
        for attribute in abbreviation.attributes() {
            let form = attribute.form();
            let step = match (attribute.name(), form) {
                (constants::DW_AT_sibling, constants::DW_FORM_ref1) => Step::Sibling(1),
                (constants::DW_AT_sibling, constants::DW_FORM_ref2) => Step::Sibling(2),
                (constants::DW_AT_sibling, constants::DW_FORM_ref4) => Step::Sibling(4),
                (constants::DW_AT_sibling, constants::DW_FORM_ref8) => Step::Sibling(8),
                (constants::DW_AT_low_pc, constants::DW_FORM_addr) => Step::Low(encoding.address_size),
                (constants::DW_AT_ranges, constants::DW_FORM_sec_offset) => {
                    Step::List(encoding.format.word_size())
                }
                (constants::DW_AT_high_pc, constants::DW_FORM_data1) => Step::Size(1),
                (constants::DW_AT_high_pc, constants::DW_FORM_data2) => Step::Size(2),
                (constants::DW_AT_high_pc, constants::DW_FORM_data4) => Step::Size(4),
                (constants::DW_AT_high_pc, constants::DW_FORM_data8) => Step::Size(8),
                _ => Step::of(form, encoding)?,
            };
            if let Step::Fixed(size) = step {
                fixed = fixed.checked_add(size)?;
                continue;
            }
            if fixed > 0 {
                self.steps.push(Step::Fixed(fixed));
                fixed = 0;
            }
            self.steps.push(step);
        }
        if fixed > 0 || abbreviation.attributes().is_empty() {
            self.steps.push(Step::Fixed(fixed));
        }
        Some(())
    }
    /// Goes over an entry's attributes.
    #[inline]
    pub fn pass(&self, shape: Shape, cursor: &mut Cursor<'_>) -> Option<Passed> {
        if shape.count == 0 {
            cursor.skip(shape.fixed as usize)?;
            return Some(Passed::default());
        }
        self.pass_steps(shape, cursor)
    }

    fn pass_steps(&self, shape: Shape, cursor: &mut Cursor<'_>) -> Option<Passed> {
        let mut passed = Passed::default();
        let first = shape.first as usize;
        for step in self.steps.get(first..first + usize::from(shape.count))? {
            match *step {
                Step::Fixed(size) => cursor.skip(size as usize)?,
                Step::Variable => cursor.skip_variable()?,
                Step::Block(size) => {
                    let size = cursor.number(usize::from(size))?;
                    cursor.skip(usize::try_from(size).ok()?)?;
                }
                Step::VariableBlock => {
                    let size = cursor.unsigned()?;
                    cursor.skip(usize::try_from(size).ok()?)?;
                }
                Step::Text => cursor.skip_text()?,
                Step::Sibling(size) => {
                    passed.sibling = usize::try_from(cursor.number(usize::from(size))?).ok()?;
                }
                Step::Low(size) => passed.low = cursor.number(usize::from(size))?,
                Step::List(size) => passed.list = usize::try_from(cursor.number(usize::from(size))?).ok()?,
                Step::Size(size) => passed.size = cursor.number(usize::from(size))?,
            }
        }
        Some(passed)
    }
}
