//! The file: the page, built from `view/`, with the compressed document in it as base64. Names of the recording are nowhere
//! else, so none can be taken for markup.

use super::document::Document;
use crate::level_of_detail::Room;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// The page without its document: styles, script, and a policy that allows no other code.
const PAGE: &str = include_str!("../../embedded/page/page.html");
/// The placeholder for the document.
const PLACE: &str = "@document@";
/// The beginning of each page.
const BEGINNING: &str = "<!DOCTYPE html><!-- longpole view -->";

/// Whether a file begins like a page.
pub fn is_page(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGINNING.as_bytes())
}

/// Largest size of a page, bytes: browsers open that within a second.
pub const MOST_BYTES: u64 = 30_000_000;

/// Writes the complete file, with as much detail of the measured run as fits into `most` bytes. With the least detail
/// the file is written even if it is larger, mostly because of names.
///
/// # Errors
/// Writing fails.
pub fn write(document: &Document<'_>, most: u64, out: &mut dyn Write) -> io::Result<()> {
    const COARSEST: usize = 1 << 12;
    let mut coarser = 1;
    while coarser < COARSEST {
        let mut room = Room { left: most, out: Vec::new() };
        match page(document, coarser, &mut room) {
            Ok(()) => return out.write_all(&room.out),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => coarser *= 2,
            Err(error) => return Err(error),
        }
    }
    page(document, COARSEST, out)
}

fn page(document: &Document<'_>, coarser: usize, out: &mut dyn Write) -> io::Result<()> {
    let (before, after) = PAGE.split_once(PLACE).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    let mut packed = GzEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::new(6));
    document.write(coarser, &mut packed)?;
    packed.finish()?.finish()?;
    out.write_all(after.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::{About, Model};
    use crate::input::Input;
    use crate::page::Tables;
    use crate::plan::InputPlan;
    use base64::Engine as _;
    use engine::limit::Limits;
    use engine::report::Cpus;
    use recording::varint::take;
    use serde_json::Value;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;
    use std::io::Read as _;

    /// Numbers of a column.
    fn column(json: &Value, bytes: &[u8], name: &str) -> Vec<u64> {
        let place = |number: usize| json["columns"][name][number].as_u64().expect("a place") as usize;
        let mut left = &bytes[place(0)..place(0) + place(1)];
        std::iter::from_fn(|| take(&mut left)).collect()
    }

    /// Nanoseconds of each state by thread, and the number of samples; a shown sample counts as many as it stands for.
    fn sums(page: &[u8]) -> (BTreeMap<(usize, String), u64>, f64) {
        let (before, after) = PAGE.split_once(PLACE).expect("a place");
        let packed = STANDARD.decode(&page[before.len()..page.len() - after.len()]).expect("base64");
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("gzip");
        let (length, rest) = bytes.split_first_chunk::<4>().expect("a length");
        let (json, bytes) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let json: Value = serde_json::from_slice(json).expect("JSON");
        let column = |name: &str| column(&json, bytes, name);
        let mut items = column("measured.codes").into_iter().zip(column("measured.lengths"));
        let mut sums = BTreeMap::new();
        for (thread, count) in column("measured.counts").into_iter().enumerate() {
            for (code, ns) in items.by_ref().take(count as usize) {
                *sums.entry((thread, json["states"][(code >> 1) as usize].to_string())).or_insert(0) += ns;
            }
        }
        let per_shown = json["measured"]["samples_per_shown"].as_f64().expect("a number");
        (sums, per_shown * column("samples.times").len() as f64)
    }

    #[test]
    fn a_coarse_page_fits_and_keeps_the_sums_of_each_thread_and_state() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/recordings/store.lp");
        let parts = Input::open(&InputPlan::whole(path.into())).expect("a recording").into_parts();
        let cpus = Cpus::parse_list("2").expect("a list");
        let model = Model::new(parts.timeline.as_ref(), &parts.program, cpus, About::default());
        let model = model.expect("a valid program");
        let null = || RawValue::NULL.to_owned();
        let document = Document {
            model: &model,
            limits: Limits::default(),
            findings: Vec::new(),
            tables: Tables {
                report: null(),
                predict: null(),
                parallelism: null(),
                slack: null(),
                paths: null(),
            },
            stacks: model.stacks(),
            simulated: Vec::new(),
            curves: Vec::new(),
            has_sources: false,
            measured: Vec::new(),
        };
        let of_at_most = |most: u64| {
            let mut page = Vec::new();
            write(&document, most, &mut page).expect("written");
            page
        };
        let whole = of_at_most(MOST_BYTES);
        let (all, samples) = sums(&whole);
        for part in [2, 5] {
            let most = PAGE.len() + (whole.len() - PAGE.len()) / part;
            let page = of_at_most(most as u64);
            assert!(page.len() <= most, "{} of {most}", page.len());
            let (coarse, coarse_samples) = sums(&page);
            assert_eq!(coarse, all);
            assert!((coarse_samples - samples).abs() <= 0.2 * samples, "{coarse_samples} of {samples}");
        }
    }

    #[test]
    fn the_page_has_one_place_for_the_document_and_loads_nothing() {
        assert!(is_page(PAGE.as_bytes()));
        assert_eq!(PAGE.matches(PLACE).count(), 1);
        assert!(PAGE.contains("default-src 'none'") && PAGE.contains("script-src 'sha256-"));
        for outside in ["https://", "src=", "@import", "url(", "import("] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
        // The only address is the name of a namespace, which is never fetched.
        assert_eq!(PAGE.matches("http://").count(), PAGE.matches("http://www.w3.org/2000/svg").count());
    }
}
