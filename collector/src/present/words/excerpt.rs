//! Says which part of a recording was analysed.

use crate::cell::{duration, grouped};
use engine::report::Finding;

/// Length of the analysed part and of the whole recording, `1.24 s of 60.0 s`, if a finding is about a part of a
/// recording.
pub(crate) fn lengths(finding: &Finding) -> Option<String> {
    match finding {
        Finding::Excerpt { length_ns, whole_ns, .. } => {
            Some(format!("{} of {}", duration(*length_ns as f64), duration(*whole_ns as f64)))
        }
        _ => None,
    }
}

/// The note about that part, without a full stop.
pub(crate) fn sentence(finding: &Finding) -> Option<String> {
    let Finding::Excerpt { from_ns, length_ns, whole_ns, records, of, apart, sampled } = finding else {
        return None;
    };
    let [from, length, whole] = [from_ns, length_ns, whole_ns].map(|ns| duration(*ns as f64));
    let part = format!("this is {length} of the {whole} recorded, from {from} after the start on");
    Some(match apart {
        None => part,
        Some(apart) => format!(
            "{part}: of {} with {} of {} records, the one most like the whole recording; {}{:.0} % of its records are \
             different. --whole takes the whole recording, --from and --to another part",
            if *sampled { "some parts" } else { "the parts" },
            grouped(*records),
            grouped(*of),
            if *sampled { "about " } else { "" },
            (apart * 100.0).ceil()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_part_chosen_by_longpole_says_how_unlike_the_rest_it_is() {
        let part = |apart| Finding::Excerpt {
            from_ns: 2_500_000_000,
            length_ns: 1_500_000_000,
            whole_ns: 60_000_000_000,
            records: 400_000,
            of: 16_000_000,
            apart,
            sampled: false,
        };
        let chosen = sentence(&part(Some(0.021))).expect("a sentence");
        assert!(chosen.starts_with("this is 1.50 s of the 60.0 s recorded, from 2.50 s"), "{chosen}");
        assert!(
            chosen.contains("400,000 of 16,000,000 records") && chosen.contains("; 3 % of its"),
            "{chosen}"
        );
        let asked = sentence(&part(None)).expect("a sentence");
        assert!(chosen.starts_with(&asked) && !asked.contains("--whole"), "{asked}");
        assert_eq!(lengths(&part(None)).as_deref(), Some("1.50 s of 60.0 s"));
    }
}
