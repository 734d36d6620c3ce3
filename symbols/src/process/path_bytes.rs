//! Encodes paths in messages between longpole and parsers as bytes, because a file's name need not be UTF-8.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_os_str().as_bytes().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Vec::deserialize(deserializer).map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use crate::process::service::ToParser;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    /// serde's own encoding of paths fails for such a name ("path contains invalid UTF-8 characters").
    #[test]
    fn a_path_that_is_not_utf_8_reaches_the_parser() {
        let name = OsString::from_vec(b"/tmp/wor\xffker".to_vec());
        let message = ToParser::Binary { path: name.clone().into(), name: "worker".to_owned() };
        let text = serde_json::to_vec(&message).expect("JSON");
        let read: ToParser = serde_json::from_slice(&text).expect("a message");
        assert!(matches!(read, ToParser::Binary { path, .. } if path.as_os_str() == name));
    }
}
