//! Findings as JSON.

use crate::present::words::finding::sentence;
use engine::report::{Finding, Severity};
use serde::{Serialize, Serializer};

/// Findings as JSON: the kind, how much it can change the answer, the numbers, and a sentence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Findings<'a>(pub(crate) &'a [Finding]);

impl Findings<'_> {
    /// Whether the list is empty.
    pub(in crate::present) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Findings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(FindingJson::new))
    }
}

#[derive(Debug, Serialize)]
struct FindingJson<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    severity: &'static str,
    /// `None` if the finding's own numbers have the text: for a kind that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl<'a> FindingJson<'a> {
    fn new(finding: &'a Finding) -> FindingJson<'a> {
        let severity = match finding.severity() {
            Severity::Wrong => "wrong",
            Severity::MayBeOff(_) => "may_be_off",
            Severity::Information => "information",
        };
        let known = !matches!(finding, Finding::Other { .. });
        FindingJson { finding, severity, text: known.then(|| sentence(finding)) }
    }
}
