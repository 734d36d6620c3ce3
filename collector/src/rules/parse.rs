//! Parses rules from TOML.

use super::measure::{Limit, Measure, Rule, Unit};
use engine::report::Cpus;
use serde::Deserialize;
use std::fmt;

/// A rules file.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The rules in the order of the file; not empty.
    pub rules: Vec<Rule>,
}

/// Why a text is not a rules file. `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesError {
    /// The rule's number, from 1; `None` if the text is not TOML.
    rule: Option<usize>,
    problem: String,
    hint: String,
}

impl RulesError {
    /// An error in the rule with this number, from 1.
    pub(super) fn of_rule(number: usize, problem: String, hint: String) -> RulesError {
        RulesError { rule: Some(number), problem, hint }
    }

    /// How the user can correct the file, in one line.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Some(rule) => write!(out, "rule {rule}: {}", self.problem),
            None => out.write_str(&self.problem),
        }
    }
}

impl std::error::Error for RulesError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileToml {
    #[serde(default, rename = "rule")]
    rules: Vec<RuleToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleToml {
    name: Option<String>,
    measure: String,
    function: Option<String>,
    lock: Option<String>,
    kind: Option<String>,
    cpus: Option<CpusToml>,
    min: Option<NumberToml>,
    max: Option<NumberToml>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CpusToml {
    Count(u32),
    List(String),
    Several(Vec<CpusToml>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberToml {
    Whole(i64),
    Fraction(f64),
    Text(String),
}

const MEASURES: &str = "measures are time, speedup, self, total, calls, held, requests, p50, p99, lost, unmatched, unknown and findings";

/// CPU counts of rules that name none, as in a report.
const CPUS: [Cpus; 1] = [Cpus::Infinite];

impl Rules {
    /// Reads a rules file.
    ///
    /// # Errors
    /// The text is not TOML, or a rule makes no sense.
    pub fn parse(text: &str) -> Result<Rules, RulesError> {
        let file: FileToml = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1);
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            RulesError {
                rule: None,
                problem: format!("{place}{}", error.message()),
                hint: "a rule is [[rule]] with measure, min or max, and a function or lock; docs/guide.md has the grammar".into(),
            }
        })?;
        if file.rules.is_empty() {
            return Err(RulesError {
                rule: None,
                problem: "the file has no rule".into(),
                hint: "begin each rule with [[rule]]".into(),
            });
        }
        let rules = file.rules.into_iter().enumerate().map(|(number, rule)| {
            rule.checked().map_err(|(problem, hint)| RulesError { rule: Some(number + 1), problem, hint })
        });
        Ok(Rules { rules: rules.collect::<Result<_, _>>()? })
    }

    /// The CPU counts of all rules, each once; the default one if there are none.
    pub fn cpus(&self) -> Vec<Cpus> {
        let mut all: Vec<Cpus> = self.rules.iter().flat_map(|rule| rule.cpus.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        if all.is_empty() { CPUS.to_vec() } else { all }
    }
}

/// What is wrong, and how the user can correct it.
type Problem = (String, String);

impl RuleToml {
    fn checked(self) -> Result<Rule, Problem> {
        let named = |name: &Option<String>, what: &str| {
            name.clone().filter(|name| !name.is_empty()).ok_or_else(|| {
                (
                    format!("{} needs {what}", self.measure),
                    format!("add {what} = \"NAME\" (or a pattern such as \"hash*\")"),
                )
            })
        };
        let measure = match self.measure.as_str() {
            "time" => Measure::Time,
            "speedup" => Measure::Speedup,
            "self" => Measure::Own(named(&self.function, "function")?),
            "total" => Measure::Total(named(&self.function, "function")?),
            "calls" => Measure::Calls(named(&self.function, "function")?),
            "held" => Measure::Held(named(&self.lock, "lock")?),
            "requests" => Measure::Requests,
            "p50" => Measure::Latency(50),
            "p99" => Measure::Latency(99),
            "lost" => Measure::Lost,
            "unmatched" => Measure::Unmatched,
            "unknown" => Measure::Unknown,
            "findings" => Measure::Findings(self.kind.clone()),
            other => return Err((format!("there is no measure \"{other}\""), MEASURES.into())),
        };
        let about = [
            (
                "function",
                self.function.is_some(),
                matches!(measure, Measure::Own(_) | Measure::Total(_) | Measure::Calls(_)),
            ),
            ("lock", self.lock.is_some(), matches!(measure, Measure::Held(_))),
            ("kind", self.kind.is_some(), matches!(measure, Measure::Findings(_))),
            ("cpus", self.cpus.is_some(), measure.depends_on_cpus()),
        ];
        if let Some((key, ..)) = about.iter().find(|(_, given, meant)| *given && !meant) {
            return Err((
                format!("{} has nothing to do with {key}", self.measure),
                format!("leave out {key}"),
            ));
        }
        let limit =
            |number: Option<NumberToml>| number.map(|number| number.limit(measure.unit())).transpose();
        let (min, max) = (limit(self.min)?, limit(self.max)?);
        if min.is_none() && max.is_none() {
            return Err((format!("{} has no limit", self.measure), "add min or max, or both".into()));
        }
        let cpus = match self.cpus {
            Some(cpus) => cpus.list()?,
            None if measure.depends_on_cpus() => CPUS.to_vec(),
            None => Vec::new(),
        };
        let name = self.name.unwrap_or_else(|| measure.text());
        Ok(Rule { name, measure, cpus, min, max })
    }
}

impl CpusToml {
    /// CPU counts from a value such as `8` or `"1,2,4-8,inf"`, or from a list of such values.
    fn list(self) -> Result<Vec<Cpus>, Problem> {
        let problem = |text: &str, hint: &str| (format!("cpus: {text}"), hint.to_owned());
        match self {
            CpusToml::Count(count) => match Cpus::count(count) {
                Some(cpus) => Ok(vec![cpus]),
                None => Err(problem("a CPU count of 0", "give counts from 1 up, or \"inf\"")),
            },
            CpusToml::List(text) => {
                Cpus::parse_list(&text).map_err(|error| problem(&error.to_string(), error.hint()))
            }
            CpusToml::Several(several) => {
                let lists: Result<Vec<Vec<Cpus>>, Problem> =
                    several.into_iter().map(CpusToml::list).collect();
                let all = lists?.concat();
                if all.is_empty() {
                    return Err(problem("an empty list", "give counts from 1 up, or \"inf\""));
                }
                Ok(all)
            }
        }
    }
}

impl NumberToml {
    fn limit(self, unit: Unit) -> Result<Limit, Problem> {
        let number = match (&self, unit) {
            (NumberToml::Text(text), Unit::Nanoseconds) => {
                humantime::parse_duration(text.trim()).ok().map(|duration| duration.as_nanos() as f64)
            }
            (NumberToml::Text(text), Unit::Share) => text
                .trim()
                .strip_suffix('%')
                .and_then(|text| text.trim().parse::<f64>().ok())
                .map(|percent| percent / 100.0),
            (NumberToml::Text(text), Unit::Times | Unit::Count) => text.trim().parse().ok(),
            // Whether a bare number would be seconds or percent is not clear.
            (_, Unit::Nanoseconds | Unit::Share) => None,
            (NumberToml::Whole(number), _) => Some(*number as f64),
            (NumberToml::Fraction(number), _) => Some(*number),
        };
        let hint = match unit {
            Unit::Nanoseconds => "give a time in quotes, such as \"2s\" or \"350ms\"",
            Unit::Share => "give a percentage in quotes, such as \"20%\"",
            Unit::Count | Unit::Times => "give a number of at least 0",
        };
        match number.filter(|number| number.is_finite() && *number >= 0.0) {
            Some(number) => Ok(Limit(number)),
            None => Err(("not a limit".to_owned(), hint.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Rules::parse(text).expect_err("no rules").to_string()
    }

    #[test]
    fn rules_of_every_measure_are_parsed() {
        let text = r#"
            [[rule]]
            name = "fast enough"
            measure = "time"
            cpus = [4, "8-9", "inf"]
            max = "1.5s"
            [[rule]]
            measure = "self"
            function = "hash*"
            max = "20%"
            min = "1 %"
            [[rule]]
            measure = "speedup"
            cpus = 8
            min = 4.5
            [[rule]]
            measure = "findings"
            kind = "deadlock"
            max = 0
            [[rule]]
            measure = "lost"
            max = 10"#;
        let rules = Rules::parse(text).expect("rules").rules;
        assert_eq!(
            (rules[0].name.as_str(), rules[0].cpus.len(), rules[0].max),
            ("fast enough", 4, Some(Limit(1.5e9)))
        );
        assert_eq!(
            (rules[1].min, rules[1].max, &rules[1].cpus[..]),
            (Some(Limit(0.01)), Some(Limit(0.2)), &CPUS[..])
        );
        assert_eq!(rules[2].min, Some(Limit(4.5)));
        assert_eq!(rules[3].measure, Measure::Findings(Some("deadlock".into())));
        assert_eq!(rules[4].cpus, []);
    }

    #[test]
    fn an_invalid_rule_is_an_error_that_says_why() {
        assert_eq!(error(""), "the file has no rule");
        assert!(error("[[rule]]\nmeasure = 3").starts_with("line 2: "), "{}", error("[[rule]]\nmeasure = 3"));
        assert!(error("[[rule]]\nmeasure=\"time\"\nlimit=3").contains("limit"));
        assert!(error("rule = ").starts_with("line 1: "));
        let rule = |rest: &str| error(&format!("[[rule]]\n{rest}"));
        assert_eq!(rule("measure=\"speed\"\nmin=1"), "rule 1: there is no measure \"speed\"");
        assert_eq!(rule("measure=\"self\"\nmax=\"1%\""), "rule 1: self needs function");
        assert_eq!(rule("measure=\"time\""), "rule 1: time has no limit");
        assert_eq!(rule("measure=\"time\"\nmax=3"), "rule 1: not a limit");
        assert_eq!(rule("measure=\"lost\"\ncpus=1\nmax=3"), "rule 1: lost has nothing to do with cpus");
        assert_eq!(rule("measure=\"speedup\"\ncpus=0\nmin=3"), "rule 1: cpus: a CPU count of 0");
        assert_eq!(rule("measure=\"speedup\"\nmin=-3"), "rule 1: not a limit");
    }
}
