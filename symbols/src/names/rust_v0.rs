//! Reads enough of Rust's v0 mangling (RFC 2603) to find the crate that contains a function's code.

/// Deepest nesting of paths that is followed. In a hostile symbol, paths may nest without end.
const MAX_DEPTH: u32 = 64;

/// The crate that defines the code of the path. `path` is the symbol without `_R`.
pub fn defining_crate(path: &str) -> Option<&str> {
    Parser { text: path, at: 0 }.path(0)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.as_bytes().get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Moves past this byte if it is the next one. Returns whether it was.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads a path up to the part that shows the crate, and returns the crate.
    fn path(&mut self, depth: u32) -> Option<&'a str> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.next()? {
            b'C' => self.identifier(),
            // A nested name: namespace, parent path, name.
            b'N' => {
                self.next()?;
                self.path(depth + 1)
            }
            // Generic arguments follow the path.
            b'I' => self.path(depth + 1),
            // An impl: first the path of its module, then the type (and the trait).
            b'M' | b'X' => {
                self.disambiguator()?;
                self.path(depth + 1)
            }
            // A provided method of a trait: its code is in the trait's crate.
            b'Y' => {
                self.skip_type(depth + 1)?;
                self.path(depth + 1)
            }
            b'B' => {
                let to = usize::try_from(self.base62()?).ok()?;
                (to < self.at).then(|| Parser { text: self.text, at: to }.path(depth + 1))?
            }
            _ => None,
        }
    }

    fn disambiguator(&mut self) -> Option<()> {
        if self.take(b's') {
            self.base62()?;
        }
        Some(())
    }

    fn identifier(&mut self) -> Option<&'a str> {
        self.disambiguator()?;
        self.take(b'u');
        let digits = self.text.get(self.at..)?.bytes().take_while(u8::is_ascii_digit).take(6).count();
        let length: usize = self.text.get(self.at..self.at + digits)?.parse().ok()?;
        self.at += digits;
        self.take(b'_');
        let name = self.text.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(name)
    }

    fn base62(&mut self) -> Option<u64> {
        let mut value = 0u64;
        loop {
            let digit = match self.next()? {
                b'_' => return Some(value),
                byte @ b'0'..=b'9' => byte - b'0',
                byte @ b'a'..=b'z' => byte - b'a' + 10,
                byte @ b'A'..=b'Z' => byte - b'A' + 36,
                _ => return None,
            };
            // "_" is 0 and "0_" is 1. Back references use the same numbers.
            value = value.checked_mul(62)?.checked_add(u64::from(digit))?;
            if self.take(b'_') {
                return value.checked_add(1);
            }
        }
    }

    /// Skips a type. `None` if the kind of type is unknown.
    fn skip_type(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.next()? {
            b'a'..=b'z' => Some(()),
            b'R' | b'Q' => {
                if self.take(b'L') {
                    self.base62()?;
                }
                self.skip_type(depth + 1)
            }
            b'P' | b'O' | b'S' => self.skip_type(depth + 1),
            b'B' => self.base62().map(drop),
            b'T' => {
                while !self.take(b'E') {
                    self.skip_type(depth + 1)?;
                }
                Some(())
            }
            b'A' => {
                self.skip_type(depth + 1)?;
                self.skip_constant(depth + 1)
            }
            // dyn: traits, with the associated types they name, up to E; then a lifetime.
            b'D' => {
                self.binder()?;
                while !self.take(b'E') {
                    self.skip_path(depth + 1)?;
                    while self.take(b'p') {
                        self.identifier()?;
                        self.skip_type(depth + 1)?;
                    }
                }
                self.take(b'L').then(|| self.base62())?.map(drop)
            }
            // A function pointer: unsafe, ABI, parameters up to E, result.
            b'F' => {
                self.binder()?;
                self.take(b'U');
                if self.take(b'K') && !self.take(b'C') {
                    self.identifier()?;
                }
                while !self.take(b'E') {
                    self.skip_type(depth + 1)?;
                }
                self.skip_type(depth + 1)
            }
            b'C' | b'M' | b'X' | b'N' | b'I' | b'Y' => {
                self.at -= 1;
                self.skip_path(depth + 1)
            }
            _ => None,
        }
    }

    /// Skips the lifetimes that a type introduces.
    fn binder(&mut self) -> Option<()> {
        if self.take(b'G') { self.base62().map(drop) } else { Some(()) }
    }

    /// Skips a constant: a type and hexadecimal digits up to "_", a placeholder, or a back reference.
    fn skip_constant(&mut self, depth: u32) -> Option<()> {
        if self.take(b'p') {
            return Some(());
        }
        if self.take(b'B') {
            return self.base62().map(drop);
        }
        self.skip_type(depth + 1)?;
        while self.next()? != b'_' {}
        Some(())
    }

    /// Skips a complete path, including its arguments.
    fn skip_path(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.next()? {
            b'C' => self.identifier().map(drop),
            b'N' => {
                self.next()?;
                self.skip_path(depth + 1)?;
                self.identifier().map(drop)
            }
            b'M' => {
                self.disambiguator()?;
                self.skip_path(depth + 1)?;
                self.skip_type(depth + 1)
            }
            b'X' => {
                self.disambiguator()?;
                self.skip_path(depth + 1)?;
                self.skip_type(depth + 1)?;
                self.skip_path(depth + 1)
            }
            b'Y' => {
                self.skip_type(depth + 1)?;
                self.skip_path(depth + 1)
            }
            b'I' => {
                self.skip_path(depth + 1)?;
                loop {
                    match *self.text.as_bytes().get(self.at)? {
                        b'E' => break self.at += 1,
                        b'L' => {
                            self.at += 1;
                            self.base62()?;
                        }
                        b'K' => {
                            self.at += 1;
                            self.skip_constant(depth + 1)?;
                        }
                        _ => self.skip_type(depth + 1)?,
                    }
                }
                Some(())
            }
            b'B' => self.base62().map(drop),
            _ => None,
        }
    }
}
