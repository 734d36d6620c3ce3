//! A record of any kind, decoded.

use crate::{
    Answer, Burst, Exchange, Exec, Exit, Fork, FunctionEnter, FunctionExit, Header, Kind, Operation, Ran,
    Rename, Sample, Switch, ThreadContext, Waking,
};
use zerocopy::{FromBytes, IntoBytes};

/// One record of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is documented at its type")]
pub enum Record {
    Switch(Switch),
    Waking(Waking),
    Fork(Fork),
    Exec(Exec),
    Exit(Exit),
    Rename(Rename),
    FunctionEnter(FunctionEnter),
    FunctionExit(FunctionExit),
    Operation(Operation),
    Sample(Sample),
    Ran(Ran),
    Burst(Burst),
    Answer(Answer),
    Exchange(Exchange),
    ThreadContext(ThreadContext),
}

/// Why bytes cannot be decoded as a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// There are fewer bytes than a header, or than a record of this kind.
    Short {
        /// Number of bytes.
        got_bytes: usize,
    },
    /// The kind byte is one that this version does not know.
    UnknownKind(u8),
}

impl Record {
    /// Reads one record from the start of `bytes`. Bytes after the record are ignored, because ring buffers round sizes
    /// up to 8 bytes.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Record, DecodeError> {
        let short = DecodeError::Short { got_bytes: bytes.len() };
        let (header, _) = Header::read_from_prefix(bytes).map_err(|_| short)?;
        let kind = Kind::from_byte(header.kind).ok_or(DecodeError::UnknownKind(header.kind))?;
        fn read<T: FromBytes>(bytes: &[u8], short: DecodeError) -> Result<T, DecodeError> {
            T::read_from_prefix(bytes).map(|(value, _)| value).map_err(|_| short)
        }
        Ok(match kind {
            Kind::Switch => Record::Switch(read(bytes, short)?),
            Kind::Waking => Record::Waking(read(bytes, short)?),
            Kind::Fork => Record::Fork(read(bytes, short)?),
            Kind::Exec => Record::Exec(read(bytes, short)?),
            Kind::Exit => Record::Exit(read(bytes, short)?),
            Kind::Rename => Record::Rename(read(bytes, short)?),
            Kind::FunctionEnter => Record::FunctionEnter(read(bytes, short)?),
            Kind::FunctionExit => Record::FunctionExit(read(bytes, short)?),
            Kind::Operation => Record::Operation(read(bytes, short)?),
            Kind::Sample => Record::Sample(read(bytes, short)?),
            Kind::Ran => Record::Ran(read(bytes, short)?),
            Kind::Burst => Record::Burst(read(bytes, short)?),
            Kind::Answer => Record::Answer(read(bytes, short)?),
            Kind::Exchange => Record::Exchange(read(bytes, short)?),
            Kind::ThreadContext => Record::ThreadContext(read(bytes, short)?),
        })
    }

    /// The record's bytes, exactly as the kernel wrote them.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Record::Switch(r) => r.as_bytes(),
            Record::Waking(r) => r.as_bytes(),
            Record::Fork(r) => r.as_bytes(),
            Record::Exec(r) => r.as_bytes(),
            Record::Exit(r) => r.as_bytes(),
            Record::Rename(r) => r.as_bytes(),
            Record::FunctionEnter(r) => r.as_bytes(),
            Record::FunctionExit(r) => r.as_bytes(),
            Record::Operation(r) => r.as_bytes(),
            Record::Sample(r) => r.as_bytes(),
            Record::Ran(r) => r.as_bytes(),
            Record::Burst(r) => r.as_bytes(),
            Record::Answer(r) => r.as_bytes(),
            Record::Exchange(r) => r.as_bytes(),
            Record::ThreadContext(r) => r.as_bytes(),
        }
    }

    /// The record's kind, according to its type and not to its header.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Record::Switch(_) => Kind::Switch,
            Record::Waking(_) => Kind::Waking,
            Record::Fork(_) => Kind::Fork,
            Record::Exec(_) => Kind::Exec,
            Record::Exit(_) => Kind::Exit,
            Record::Rename(_) => Kind::Rename,
            Record::FunctionEnter(_) => Kind::FunctionEnter,
            Record::FunctionExit(_) => Kind::FunctionExit,
            Record::Operation(_) => Kind::Operation,
            Record::Sample(_) => Kind::Sample,
            Record::Ran(_) => Kind::Ran,
            Record::Burst(_) => Kind::Burst,
            Record::Answer(_) => Kind::Answer,
            Record::Exchange(_) => Kind::Exchange,
            Record::ThreadContext(_) => Kind::ThreadContext,
        }
    }

    /// The record's header.
    #[inline]
    pub fn header(&self) -> &Header {
        match self {
            Record::Switch(r) => &r.header,
            Record::Waking(r) => &r.header,
            Record::Fork(r) => &r.header,
            Record::Exec(r) => &r.header,
            Record::Exit(r) => &r.header,
            Record::Rename(r) => &r.header,
            Record::FunctionEnter(r) => &r.header,
            Record::FunctionExit(r) => &r.header,
            Record::Operation(r) => &r.header,
            Record::Sample(r) => &r.header,
            Record::Ran(r) => &r.header,
            Record::Burst(r) => &r.header,
            Record::Answer(r) => &r.header,
            Record::Exchange(r) => &r.header,
            Record::ThreadContext(r) => &r.header,
        }
    }

    /// Size of a record of this kind, in bytes.
    pub const fn size_of(kind: Kind) -> usize {
        match kind {
            Kind::Switch => size_of::<Switch>(),
            Kind::Waking => size_of::<Waking>(),
            Kind::Fork => size_of::<Fork>(),
            Kind::Exec => size_of::<Exec>(),
            Kind::Exit => size_of::<Exit>(),
            Kind::Rename => size_of::<Rename>(),
            Kind::FunctionEnter => size_of::<FunctionEnter>(),
            Kind::FunctionExit => size_of::<FunctionExit>(),
            Kind::Operation => size_of::<Operation>(),
            Kind::Sample => size_of::<Sample>(),
            Kind::Ran => size_of::<Ran>(),
            Kind::Burst => size_of::<Burst>(),
            Kind::Answer => size_of::<Answer>(),
            Kind::Exchange => size_of::<Exchange>(),
            Kind::ThreadContext => size_of::<ThreadContext>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_kind_are_decoded_to_the_same_bytes() {
        for kind in Kind::ALL {
            let size = Record::size_of(kind);
            let mut bytes = [0u8; 64];
            for (i, byte) in bytes.iter_mut().enumerate() {
                *byte = (i as u8).wrapping_mul(37).wrapping_add(kind as u8);
            }
            bytes[14] = kind as u8;
            let record = Record::decode(&bytes).expect("whole record");
            assert_eq!(record.as_bytes(), &bytes[..size]);
            assert_eq!(record.header().kind, kind as u8);
            for short in 0..size {
                assert_eq!(
                    Record::decode(&bytes[..short]),
                    Err(DecodeError::Short { got_bytes: short }),
                    "{kind:?} cut to {short} bytes"
                );
            }
        }
    }

    #[test]
    fn unknown_record_kinds_are_errors_with_their_number() {
        let mut bytes = [0u8; 64];
        let beyond = Kind::ALL.iter().map(|&kind| kind as u8 + 1).max().unwrap_or(1);
        for kind in [0u8, beyond, 255] {
            bytes[14] = kind;
            assert_eq!(Record::decode(&bytes), Err(DecodeError::UnknownKind(kind)));
        }
    }
}
