//! Rules set against a report.

use super::measure::{Limit, Measure, Rule};
use super::parse::Rules;
use crate::symbols::matches;
use engine::program::bare_name;
use engine::report::{CpuResult, Cpus, FunctionRow, Report};

/// What came of a rule, or of one CPU count of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The rule's name, and the CPU count if it has several.
    pub name: String,
    /// What was measured, in words.
    pub measure: String,
    /// Kept or broken.
    pub verdict: Verdict,
    /// One sentence: what was measured and what the limits are.
    pub text: String,
}

/// Kept or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The number is within its limits.
    Kept,
    /// It is not, or there is no number.
    Broken,
}

impl Rules {
    /// The outcome of every rule on each of its CPU counts. The report is one for [`Rules::cpus`].
    pub fn outcomes(&self, report: &Report) -> Vec<Outcome> {
        self.rules.iter().flat_map(|rule| outcomes(rule, report)).collect()
    }
}

fn outcomes(rule: &Rule, report: &Report) -> Vec<Outcome> {
    if !rule.measure.depends_on_cpus() {
        return vec![judged(rule, rule.name.clone(), String::new(), everywhere(&rule.measure, report))];
    }
    let several = rule.cpus.len() > 1;
    let outcome = |cpus: &Cpus| {
        let on = match cpus {
            Cpus::Count(count) if count.get() == 1 => " on 1 CPU".to_owned(),
            Cpus::Count(count) => format!(" on {count} CPUs"),
            Cpus::Infinite => " on unlimited CPUs".to_owned(),
        };
        let name = if several { format!("{}{on}", rule.name) } else { rule.name.clone() };
        let result = report.results.iter().find(|result| result.cpus == *cpus);
        let number = result.and_then(|result| on_cpus(&rule.measure, report, result));
        judged(rule, name, on, number)
    };
    rule.cpus.iter().map(outcome).collect()
}

fn judged(rule: &Rule, name: String, on: String, number: Option<f64>) -> Outcome {
    let unit = rule.measure.unit();
    let measure = rule.measure.text();
    let limits = [("at least", rule.min), ("at most", rule.max)];
    let limits = limits.iter().filter_map(|(word, limit)| Some(format!("{word} {}", unit.text((*limit)?.0))));
    let limits = limits.collect::<Vec<_>>().join(" and ");
    let (verdict, is) = match number {
        Some(number) => {
            let low = rule.min.is_some_and(|Limit(min)| number < min);
            let high = rule.max.is_some_and(|Limit(max)| number > max);
            let verdict = if low || high { Verdict::Broken } else { Verdict::Kept };
            (verdict, unit.text(number))
        }
        // What is not there is not too much.
        None if rule.min.is_none() => (Verdict::Kept, "nothing".to_owned()),
        None => (Verdict::Broken, "nothing".to_owned()),
    };
    Outcome { name, verdict, text: format!("{measure}{on} is {is}, allowed {limits}"), measure }
}

fn everywhere(measure: &Measure, report: &Report) -> Option<f64> {
    let count = |kind: &Option<String>| {
        let findings = report.findings.iter();
        findings.filter(|finding| kind.as_ref().is_none_or(|kind| finding.kind == *kind)).count()
    };
    match measure {
        Measure::Lost => Some(report.trust.lost as f64),
        Measure::Unmatched => Some(report.trust.unmatched as f64),
        Measure::Unknown => Some(report.trust.unknown_ns as f64),
        Measure::Findings(kind) => Some(count(kind) as f64),
        _ => None,
    }
}

fn on_cpus(measure: &Measure, report: &Report, result: &CpuResult) -> Option<f64> {
    let share = |ns: f64| if result.time_ns > 0.0 { ns / result.time_ns } else { 0.0 };
    let sum = |name: &str, number: &dyn Fn(&FunctionRow) -> f64| {
        let exact = result.functions.iter().any(|row| row.function == *name);
        let rows = result.functions.iter();
        let mut rows = rows
            .filter(|row| if exact { row.function == *name } else { matches(name, &row.function) })
            .peekable();
        rows.peek()?;
        Some(rows.map(number).sum::<f64>())
    };
    match measure {
        Measure::Time => Some(result.time_ns),
        Measure::Speedup => Some(result.speedup),
        Measure::Own(name) => sum(name, &|row| row.tet_ns).map(share),
        // Functions may call each other: the largest, not the sum.
        Measure::Total(name) => {
            let rows =
                result.functions.iter().filter(|row| row.function == *name || matches(name, &row.function));
            rows.map(|row| row.tetid_ns).reduce(f64::max).map(share)
        }
        Measure::Calls(name) => sum(name, &|row| row.calls as f64),
        Measure::Held(name) => {
            let locks = report.locks.iter().zip(&result.locks_held_ns);
            let held = locks.filter(|(lock, _)| {
                lock.lock == *name || matches(name, &lock.lock) || matches(name, bare_name(&lock.lock))
            });
            held.map(|(_, held)| *held).reduce(f64::max).map(share)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::report::Detail;

    fn outcomes_of(rules: &str) -> Vec<(Verdict, String)> {
        let text = r#"{"format":"longpole-program","version":1,"threads":[
            {"name":"T1","ops":[["exec","parse",300],["lock","m"],["exec","hash_a",50],["exec","hash_b",50],["unlock","m"]]},
            {"name":"T2","ops":[["exec","parse",200]]}]}"#;
        let program = engine::program::json::read(text).expect("a program");
        let rules = Rules::parse(rules).expect("rules");
        let report = engine::report::report(&program, &rules.cpus(), Detail::Functions);
        rules.outcomes(&report).into_iter().map(|outcome| (outcome.verdict, outcome.text)).collect()
    }

    #[test]
    fn every_measure_is_set_against_its_limits() {
        let one = |rule: &str| outcomes_of(&format!("[[rule]]\n{rule}")).remove(0);
        assert_eq!(
            one("measure=\"time\"\nmax=\"350ns\""),
            (Verdict::Broken, "time on unlimited CPUs is 400 ns, allowed at most 350 ns".into())
        );
        assert_eq!(
            one("measure=\"speedup\"\ncpus=2\nmin=1.2\nmax=2"),
            (Verdict::Kept, "speed-up on 2 CPUs is 1.50×, allowed at least 1.20× and at most 2.00×".into())
        );
        assert_eq!(one("measure=\"self\"\nfunction=\"hash*\"\nmax=\"25%\"").0, Verdict::Kept);
        assert_eq!(one("measure=\"self\"\nfunction=\"hash*\"\nmax=\"24%\"").0, Verdict::Broken);
        assert_eq!(one("measure=\"held\"\nlock=\"m\"\nmax=\"10%\"").0, Verdict::Broken);
        assert_eq!(one("measure=\"calls\"\nfunction=\"parse\"\nmax=1").0, Verdict::Kept);
        assert_eq!(one("measure=\"self\"\nfunction=\"gone\"\nmax=\"1%\"").0, Verdict::Kept);
        assert_eq!(one("measure=\"self\"\nfunction=\"gone\"\nmin=\"1%\"").0, Verdict::Broken);
        assert_eq!(one("measure=\"findings\"\nmax=0").0, Verdict::Kept);
        assert_eq!(one("measure=\"lost\"\nmax=0").0, Verdict::Kept);
    }

    #[test]
    fn a_rule_for_several_cpu_counts_has_several_outcomes() {
        let outcomes = outcomes_of("[[rule]]\nmeasure=\"time\"\ncpus=[1,2]\nmax=\"500ns\"");
        let verdicts: Vec<Verdict> = outcomes.iter().map(|outcome| outcome.0).collect();
        assert_eq!(verdicts, [Verdict::Broken, Verdict::Kept]);
    }
}
