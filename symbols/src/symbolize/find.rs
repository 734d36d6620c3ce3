//! Finds a binary of a recording on this machine. The build-id must be the same, not only the name.

use crate::{BuildId, Outline};
use std::path::{Path, PathBuf};

/// Finds the binary at its own path or in one of the folders. `Err`: a message that says why it was not found.
pub fn binary(path: &str, build_id: Option<&str>, folders: &[PathBuf]) -> Result<PathBuf, String> {
    let wanted = build_id.and_then(|id| BuildId::try_from(id.to_owned()).ok());
    let Some(wanted) = wanted else {
        return Err("it has no build-id, so no file here can be compared".to_owned());
    };
    let name = Path::new(path).file_name().unwrap_or_default();
    let hex = wanted.to_string();
    let mut places = vec![PathBuf::from(path)];
    for folder in folders {
        places.push(folder.join(name));
        places.push(folder.join(Path::new(path).strip_prefix("/").unwrap_or(Path::new(path))));
        places.push(folder.join(&hex).join("executable"));
        if let Some((start, rest)) = hex.split_at_checked(2) {
            places.push(folder.join(".build-id").join(start).join(rest));
        }
    }
    let mut other = None;
    for place in places {
        match Outline::open(&place).map(|(_, outline)| outline.build_id) {
            Some(Some(found)) if found == wanted => return Ok(place),
            Some(found) => {
                other.get_or_insert(match found {
                    Some(found) => format!("{} now has another build-id ({found})", place.display()),
                    None => format!("{} now has no build-id", place.display()),
                });
            }
            None => {}
        }
    }
    Err(other.unwrap_or_else(|| format!("there is no {path} here")))
}
