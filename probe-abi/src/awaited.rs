//! Which file, or which other end of a socket, a thread sleeps for. The kernel programs keep one entry for each in a
//! map, and a [`Switch`](crate::Switch) contains the entry's number.

use crate::RequestKey;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What the descriptor refers to for which a thread sleeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Awaited {
    /// The kind: a [`Descriptor`](crate::Descriptor) as a number. Only files, devices and sockets have entries.
    pub kind: u32,
    /// For a socket: its port or its peer. The process id in the key is 0.
    pub socket: RequestKey,
    /// For a socket: its own port, in host byte order. A thread may sleep for the socket before it is known that the
    /// process listens on that port.
    pub own_port: u32,
    /// For a file or device: the name of its folder when a thread first slept for it. The name ends at the first 0.
    pub folder: [u8; FOLDER_BYTES],
    /// For a file or device: its name in the folder. The name ends at the first 0.
    pub name: [u8; NAME_BYTES],
}

/// Number of bytes for the name of a folder, including the 0 at its end.
pub const FOLDER_BYTES: usize = 32;
/// Number of bytes for the name of a file, including the 0 at its end.
pub const NAME_BYTES: usize = 64;

/// Largest number of [`Awaited`] entries.
pub const MAX_AWAITED: u32 = 1 << 10;

impl Awaited {
    /// The number of the file with this inode on this device. Never 0. In rare cases two files have the same number.
    pub const fn of_file(inode: u64, device: u32) -> u32 {
        Awaited::number(inode, device as u64)
    }

    /// The number of the other end of a socket. Never 0.
    pub const fn of_socket(key: RequestKey) -> u32 {
        let end = (key.family as u64) << 32 | (key.port as u64) << 16 | key.served as u64;
        Awaited::number(end, key.address as u64 | 1 << 63)
    }

    /// Multiplicative hashing (Knuth 6.4) of two words.
    const fn number(first: u64, second: u64) -> u32 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = first.wrapping_mul(ODD) ^ second;
        (mixed.wrapping_mul(ODD) >> 32) as u32 | 1
    }
}

const _: () = assert!(size_of::<Awaited>() == 120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_sockets_have_different_numbers_other_than_zero() {
        let mut numbers = [0u32; 2000];
        for (place, number) in (0u64..).zip(numbers.iter_mut()) {
            let key = RequestKey { port: place as u16, family: 2, ..RequestKey::default() };
            *number = if place % 2 == 0 { Awaited::of_file(place, 1) } else { Awaited::of_socket(key) };
        }
        numbers.sort_unstable();
        assert_ne!(numbers[0], 0);
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
