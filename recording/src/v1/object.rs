//! Builds JSON entry by entry. No chunk becomes too large, whatever its entries contain, and the space that an entry
//! takes in the file is known in advance.

use std::borrow::Cow;

/// Size from which on the JSON becomes a chunk, in bytes.
const GOOD_BYTES: usize = 1 << 20;

/// Largest entry, in bytes, so that a chunk stays below the limit for chunks. Names are cut to far less.
pub const MOST_ENTRY_BYTES: usize = 8 << 20;

/// JSON that is built entry by entry: an object of lists, or a single list.
#[derive(Debug, Default)]
pub struct Growing {
    json: Vec<u8>,
    entries: u32,
    list: Option<List>,
}

/// The list to which an entry is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// The only list, which is not in an object.
    Alone,
    /// The list with this name in the object.
    Named(&'static str),
}

impl List {
    fn begin(self, is_first: bool) -> Cow<'static, str> {
        match (self, is_first) {
            (List::Alone, _) => "[".into(),
            (List::Named(name), true) => format!("{{\"{name}\":[").into(),
            (List::Named(name), false) => format!(",\"{name}\":[").into(),
        }
    }

    fn end(self) -> &'static str {
        match self {
            List::Alone => "]",
            List::Named(_) => "]}",
        }
    }
}

impl Growing {
    /// Begins the JSON with an object that has no lists. If the object is empty, begins with nothing.
    pub fn beginning_with(
        object: &serde_json::Map<String, serde_json::Value>,
    ) -> serde_json::Result<Growing> {
        if object.is_empty() {
            return Ok(Growing::default());
        }
        let mut json = serde_json::to_vec(object)?;
        // Removes the closing brace, because lists follow in the same object.
        json.pop();
        Ok(Growing { json, ..Growing::default() })
    }

    /// Size of the JSON if no entry is added any more, in bytes.
    pub fn bytes(&self) -> usize {
        match self.list {
            Some(list) => self.json.len() + list.end().len(),
            None if self.json.is_empty() => 0,
            None => self.json.len() + 1,
        }
    }

    /// Number of bytes by which the JSON grows if an entry of this size is added to that list.
    pub fn adds(&self, list: List, entry_bytes: usize) -> usize {
        let with_it = self.json.len() + self.before(list).len() + entry_bytes + list.end().len();
        with_it - self.bytes()
    }

    /// The text that separates the next entry from the JSON so far.
    fn before(&self, list: List) -> Cow<'static, str> {
        match self.list {
            Some(open) if open == list => ",".into(),
            Some(_) => format!("]{}", list.begin(false)).into(),
            None => list.begin(self.json.is_empty()),
        }
    }

    /// Adds an entry. Lists must be filled one after the other.
    pub fn push(&mut self, list: List, entry: &[u8]) {
        let before = self.before(list);
        self.json.extend_from_slice(before.as_bytes());
        self.json.extend_from_slice(entry);
        self.entries = self.entries.saturating_add(1);
        self.list = Some(list);
    }

    /// Number of entries so far.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Whether the JSON is large enough for a chunk.
    pub fn is_full(&self) -> bool {
        self.json.len() >= GOOD_BYTES
    }

    /// A copy of the JSON, with the number of entries. `None` if there is nothing.
    pub fn draft(&self) -> Option<(u32, Vec<u8>)> {
        let mut json = self.json.clone();
        let end = self.list.map_or("}", List::end);
        json.extend_from_slice(end.as_bytes());
        (!self.json.is_empty()).then_some((self.entries, json))
    }

    /// Returns the JSON and the number of entries, and starts again with nothing. `None` if there is nothing.
    pub fn finish(&mut self) -> Option<(u32, Vec<u8>)> {
        let Growing { mut json, entries, list } = std::mem::take(self);
        if json.is_empty() {
            return None;
        }
        json.extend_from_slice(list.map_or("}", List::end).as_bytes());
        Some((entries, json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(object: &str, entries: &[(List, &str)]) -> (u32, String) {
        let object = serde_json::from_str(object).expect("an object");
        let mut growing = Growing::beginning_with(&object).expect("JSON");
        for (list, entry) in entries {
            let expected = growing.bytes() + growing.adds(*list, entry.len());
            growing.push(*list, entry.as_bytes());
            assert_eq!(growing.bytes(), expected);
        }
        let bytes = growing.bytes();
        let draft = growing.draft();
        let (entries, json) = growing.finish().expect("something");
        assert_eq!((json.len(), draft), (bytes, Some((entries, json.clone()))));
        assert_eq!((growing.finish(), growing.bytes()), (None, 0));
        (entries, String::from_utf8(json).expect("text"))
    }

    #[test]
    fn json_entries_become_lists_whose_size_is_known_before() {
        let (a, b) = (List::Named("a"), List::Named("b"));
        assert_eq!(grown("{}", &[(List::Alone, "1"), (List::Alone, "{}")]), (2, "[1,{}]".into()));
        assert_eq!(grown("{}", &[(a, "1"), (a, "2"), (b, "3")]), (3, r#"{"a":[1,2],"b":[3]}"#.into()));
        assert_eq!(grown(r#"{"x":7}"#, &[(a, "1"), (b, "2")]), (2, r#"{"x":7,"a":[1],"b":[2]}"#.into()));
        assert_eq!(grown(r#"{"x":7}"#, &[]), (0, r#"{"x":7}"#.into()));
    }
}
