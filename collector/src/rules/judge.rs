//! Compares rules with a report.

use super::measure::{Limit, Measure, Rule};
use super::parse::{Rules, RulesError};
use crate::cpu_words;
use engine::program::{Endpoint, bare_name};
use engine::report::{CpuResult, Cpus, FunctionRow, Report};
use std::collections::BTreeSet;
use symbols::{NameMatch, listed, match_name};

/// The outcome of a rule on one of its CPU counts.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleOutcome {
    /// The rule's name, with the CPU count if the rule has several.
    pub name: String,
    /// The measure in words.
    pub measure: String,
    /// Kept or broken.
    pub verdict: Verdict,
    /// One sentence with the number and its limits.
    pub text: String,
}

/// Kept or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The number is within the rule's limits.
    Kept,
    /// The number is outside the rule's limits, or there is no number.
    Broken,
}

impl Rules {
    /// The outcome of every rule on each of its CPU counts. `report` must contain [`Rules::cpus`]; `traffic`: requests of the
    /// recording, those with most requests first.
    ///
    /// # Errors
    /// A rule's name may mean several functions or locks.
    pub fn outcomes(&self, report: &Report, traffic: &[Endpoint]) -> Result<Vec<RuleOutcome>, RulesError> {
        let mut all = Vec::new();
        for (number, rule) in self.rules.iter().enumerate() {
            let of_rule = outcomes(rule, report, traffic);
            all.extend(of_rule.map_err(|(problem, hint)| RulesError::of_rule(number + 1, problem, hint))?);
        }
        Ok(all)
    }
}

fn outcomes(
    rule: &Rule,
    report: &Report,
    traffic: &[Endpoint],
) -> Result<Vec<RuleOutcome>, (String, String)> {
    if !rule.measure.depends_on_cpus() {
        if rule.measure == Measure::Lost && report.trust.lost.is_none() {
            let text = "lost records are not known: the recording lacks its end, which has their number";
            let (name, measure) = (rule.name.clone(), rule.measure.text());
            return Ok(vec![RuleOutcome { name, measure, verdict: Verdict::Broken, text: text.to_owned() }]);
        }
        let number = everywhere(&rule.measure, report, traffic);
        return Ok(vec![judged(rule, &rule.measure, rule.name.clone(), String::new(), number)]);
    }
    let names = named(&rule.measure, report)?;
    let measure = &told(&rule.measure, &names);
    let several = rule.cpus.len() > 1;
    let outcome = |cpus: &Cpus| {
        let on = format!(" {}", cpu_words::on(*cpus));
        let name = if several { format!("{}{on}", rule.name) } else { rule.name.clone() };
        let result = report.results.iter().find(|result| result.cpus == *cpus);
        let number = result.and_then(|result| on_cpus(measure, &names, report, result));
        judged(rule, measure, name, on, number)
    };
    Ok(rule.cpus.iter().map(outcome).collect())
}

/// The names, as in the report, of the functions or locks that a measure is about.
fn named(measure: &Measure, report: &Report) -> Result<BTreeSet<String>, (String, String)> {
    let (name, all): (_, BTreeSet<&str>) = match measure {
        Measure::Own(name) | Measure::Total(name) | Measure::Calls(name) => {
            let rows = report.results.iter().flat_map(|result| &result.functions);
            (name, rows.map(|row| row.function.as_str()).collect())
        }
        Measure::Held(name) => (name, report.locks.iter().map(|lock| lock.lock.as_str()).collect()),
        _ => return Ok(BTreeSet::new()),
    };
    let is_lock = matches!(measure, Measure::Held(_));
    let all: Vec<&str> = all.into_iter().collect();
    let chosen = |places: Vec<usize>| places.into_iter().filter_map(|place| all.get(place).copied());
    // A lock may be named without its kind: `cache` for `mutex cache`.
    let found = match match_name(name, all.iter()) {
        NameMatch::Nothing | NameMatch::Several(_) if is_lock => {
            match_name(name, all.iter().map(|lock| bare_name(lock)))
        }
        found => found,
    };
    match found {
        NameMatch::Nothing => Ok(BTreeSet::new()),
        NameMatch::These(places) => Ok(chosen(places).map(str::to_owned).collect()),
        NameMatch::Several(places) => {
            let what = if is_lock { "locks" } else { "functions" };
            let problem = format!("\"{name}\" matches {} {what}", places.len());
            Err((problem, format!("choose one: {}", listed(&chosen(places).collect::<Vec<_>>()))))
        }
    }
}

/// The measure with the function's name in the report, if it is about a single function.
fn told(measure: &Measure, names: &BTreeSet<String>) -> Measure {
    let Some(name) = names.first().filter(|_| names.len() == 1) else { return measure.clone() };
    match measure {
        Measure::Own(_) => Measure::Own(name.clone()),
        Measure::Total(_) => Measure::Total(name.clone()),
        Measure::Calls(_) => Measure::Calls(name.clone()),
        other => other.clone(),
    }
}

fn judged(rule: &Rule, measure: &Measure, name: String, on: String, number: Option<f64>) -> RuleOutcome {
    let unit = measure.unit();
    let measure = measure.text();
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
        // A number that is missing is not too large.
        None if rule.min.is_none() => (Verdict::Kept, "nothing".to_owned()),
        None => (Verdict::Broken, "nothing".to_owned()),
    };
    RuleOutcome { name, verdict, text: format!("{measure}{on} is {is}, allowed {limits}"), measure }
}

fn everywhere(measure: &Measure, report: &Report, traffic: &[Endpoint]) -> Option<f64> {
    let served = traffic.iter().find(|end| end.served);
    let count = |kind: &Option<String>| {
        let findings = report.findings.iter();
        findings.filter(|finding| kind.as_ref().is_none_or(|kind| finding.kind() == kind.as_str())).count()
    };
    match measure {
        Measure::Requests => served.map(|end| end.per_second),
        Measure::Latency(50) => served.map(|end| end.median_ns as f64),
        Measure::Latency(_) => served.map(|end| end.p99_ns as f64),
        Measure::Lost => report.trust.lost.map(|lost| lost as f64),
        Measure::Unmatched => Some(report.trust.unmatched as f64),
        Measure::Unknown => Some(report.trust.unknown_ns as f64),
        Measure::Findings(kind) => Some(count(kind) as f64),
        _ => None,
    }
}

fn on_cpus(measure: &Measure, names: &BTreeSet<String>, report: &Report, result: &CpuResult) -> Option<f64> {
    let share = |ns: f64| result.share(ns);
    let rows = || result.functions.iter().filter(|row| names.contains(&row.function));
    let sum = |number: &dyn Fn(&FunctionRow) -> f64| {
        let mut rows = rows().peekable();
        rows.peek()?;
        Some(rows.map(number).sum::<f64>())
    };
    match measure {
        Measure::Time => Some(result.time_ns),
        Measure::Speedup => Some(result.speedup),
        Measure::Own(_) => report.own_ns(result, names).map(share),
        // The largest, not the sum: functions may call each other.
        Measure::Total(_) => rows().map(|row| row.tetid_ns).reduce(f64::max).map(share),
        Measure::Calls(_) => sum(&|row| row.calls as f64),
        Measure::Held(_) => {
            let locks = report.locks.iter().zip(&result.locks_held_ns);
            let held = locks.filter(|(lock, _)| names.contains(&lock.lock));
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
        rules
            .outcomes(&report, &[])
            .expect("names")
            .into_iter()
            .map(|outcome| (outcome.verdict, outcome.text))
            .collect()
    }

    #[test]
    fn each_measure_of_a_rule_is_compared_with_its_limits() {
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

    /// Each row counts once, even if a pattern matches both a standard function and its caller: the sum must not exceed
    /// 100 %.
    #[test]
    fn a_rule_counts_a_standard_function_once_for_its_caller() {
        let text = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T","ops":[["exec",1000]]}],
            "samples":{"rate_hz":499,"places":[{"function":"<u64>::lt","inlined":true},{"function":"hash"}],
            "stacks":[[0,1],[1]],"threads":[[[0,0],[0,0],[0,1],[0,1],[0,1]]]}}"#;
        let program = engine::program::json::read(text).expect("a program");
        let self_of = |function: &str| {
            let rule = format!("[[rule]]\nmeasure=\"self\"\nfunction=\"{function}\"\nmax=\"1%\"");
            let rules = Rules::parse(&rule).expect("rules");
            let report = engine::report::report(&program, &rules.cpus(), Detail::Functions);
            rules.outcomes(&report, &[]).expect("names").remove(0).text
        };
        assert!(self_of("*").contains("is 100.0 %"), "{}", self_of("*"));
        assert!(self_of("hash").contains("is 100.0 %"), "{}", self_of("hash"));
        assert!(self_of("<u64>::lt").contains("is 40.0 %"), "{}", self_of("<u64>::lt"));
    }

    /// If the recorder was killed, the number of lost records is unknown.
    #[test]
    fn a_rule_about_lost_records_is_broken_if_their_number_is_unknown() {
        let report = |lost| Report {
            trust: engine::report::Trust { lost, ..engine::report::Trust::default() },
            ..Report::default()
        };
        let rules = Rules::parse("[[rule]]\nmeasure=\"lost\"\nmax=9").expect("rules");
        let outcome = |lost| rules.outcomes(&report(lost), &[]).expect("outcomes").remove(0);
        assert_eq!(outcome(Some(9)).verdict, Verdict::Kept);
        let RuleOutcome { verdict, text, .. } = outcome(None);
        assert_eq!(verdict, Verdict::Broken);
        assert!(text.contains("not known: the recording lacks its end"), "{text}");
    }

    #[test]
    fn a_rule_s_function_is_found_by_the_unique_beginning_of_its_name() {
        let one = |rule: &str| outcomes_of(&format!("[[rule]]\n{rule}")).remove(0);
        let (verdict, text) = one("measure=\"self\"\nfunction=\"par\"\nmax=\"10%\"");
        assert_eq!(verdict, Verdict::Broken);
        assert!(text.starts_with("self of parse on unlimited CPUs"), "{text}");
        let program = r#"{"format":"longpole-program","version":1,"threads":[
            {"name":"T1","ops":[["exec","hash_a",50],["exec","hash_b",50]]}]}"#;
        let program = engine::program::json::read(program).expect("a program");
        let rules = Rules::parse("[[rule]]\nmeasure=\"self\"\nfunction=\"hash\"\nmax=\"1%\"").expect("rules");
        let report = engine::report::report(&program, &rules.cpus(), Detail::Functions);
        let error = rules.outcomes(&report, &[]).expect_err("one of two");
        assert_eq!(error.to_string(), "rule 1: \"hash\" matches 2 functions");
        assert_eq!(error.hint(), "choose one: hash_a, hash_b");
    }

    #[test]
    fn a_rule_for_several_cpu_counts_has_an_outcome_for_each() {
        let outcomes = outcomes_of("[[rule]]\nmeasure=\"time\"\ncpus=[1,2]\nmax=\"500ns\"");
        let verdicts: Vec<Verdict> = outcomes.iter().map(|outcome| outcome.0).collect();
        assert_eq!(verdicts, [Verdict::Broken, Verdict::Kept]);
    }

    #[test]
    fn requests_have_rules() {
        let rules = Rules::parse(
            "[[rule]]\nmeasure='p99'\nmax='20ms'\n[[rule]]\nmeasure='p50'\nmax='1ms'\n[[rule]]\nmeasure='requests'\nmin=500",
        );
        let rules = rules.expect("rules");
        let served = Endpoint {
            served: true,
            per_second: 480.2,
            median_ns: 900_000,
            p99_ns: 25_000_000,
            ..Endpoint::default()
        };
        let asked = Endpoint { served: false, p99_ns: 1, ..Endpoint::default() };
        let verdicts = |traffic: &[Endpoint]| -> Vec<(Verdict, String)> {
            let outcomes = rules.outcomes(&Report::default(), traffic).expect("no names");
            outcomes.into_iter().map(|outcome| (outcome.verdict, outcome.text)).collect()
        };
        let told = verdicts(&[asked.clone(), served]);
        assert_eq!(
            told[0],
            (Verdict::Broken, "time of 99 % of requests is 25.0 ms, allowed at most 20.0 ms".to_owned())
        );
        assert_eq!((told[1].0, told[2].0), (Verdict::Kept, Verdict::Broken), "{told:?}");
        assert_eq!(
            verdicts(&[asked]).iter().map(|(verdict, _)| *verdict).collect::<Vec<_>>(),
            [Verdict::Kept, Verdict::Kept, Verdict::Broken]
        );
    }
}
