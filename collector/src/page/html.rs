//! The file: the page as it is built from `view/`, and in it the document, compressed and as base64. No name of a recording is
//! anywhere else in it, so that none can be taken for markup.

use super::document::Document;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// The page without its document: styles, script and a policy that lets nothing else run.
const PAGE: &str = include_str!("../../embedded/page/page.html");
/// The placeholder for the document.
const PLACE: &str = "@document@";
/// What each page begins with.
const BEGINNING: &str = "<!DOCTYPE html><!-- longpole view -->";

/// Whether this is how a page begins.
pub fn is_page(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGINNING.as_bytes())
}

/// Writes the whole file.
///
/// # Errors
/// What writing says.
pub fn write(document: Document<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (before, after) = PAGE.split_once(PLACE).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    let mut packed = GzEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::new(6));
    document.write(&mut packed)?;
    packed.finish()?.finish()?;
    out.write_all(after.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_place_for_the_document() {
        assert!(is_page(PAGE.as_bytes()));
        assert_eq!(PAGE.matches(PLACE).count(), 1);
        assert!(PAGE.contains("default-src 'none'") && PAGE.contains("script-src 'sha256-"));
        for outside in ["https://", "src=", "@import", "url(", "import("] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
        // The name of a namespace, which is never fetched.
        assert_eq!(PAGE.matches("http://").count(), PAGE.matches("http://www.w3.org/2000/svg").count());
    }
}
