//! Reads JSON reports and JSON programs, as any other reader would.

use serde_json::Value;
use std::collections::BTreeMap;

/// A report: JSON in the form `longpole-report/1`.
#[derive(Clone, Debug)]
pub struct Report(pub Value);

/// The part of a report for one CPU count.
pub struct Answer<'a>(&'a Value);

/// A program: JSON in the form `longpole-program`, version 1.
#[derive(Clone, Debug)]
pub struct Program(pub Value);

impl Report {
    /// Parses JSON text. Text of another form fails the test.
    pub fn parse(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in:\n{text}"));
        assert_eq!(value["schema"], "longpole-report/1", "{text}");
        Self(value)
    }

    /// The name of each lock, and how often the lock was acquired.
    pub fn acquisitions(&self) -> BTreeMap<String, u64> {
        let rows = self.0["locks"].as_array().map_or(&[][..], Vec::as_slice);
        let row = |row: &Value| {
            (row["lock"].as_str().unwrap_or_default().to_owned(), row["acquisitions"].as_u64().unwrap_or(0))
        };
        rows.iter().map(row).collect()
    }

    /// The answer for a number of CPUs, or for `"inf"`.
    pub fn at(&self, cpus: impl Into<Value>) -> Answer<'_> {
        let cpus = cpus.into();
        let results = self.0["results"].as_array().map_or(&[][..], Vec::as_slice);
        let found = results.iter().find(|result| result["cpus"] == cpus);
        Answer(found.unwrap_or_else(|| panic!("no answer for {cpus} in {}", self.0)))
    }

    /// A number of the report's `trust` object.
    pub fn trust(&self, name: &str) -> f64 {
        number(&self.0["trust"][name], name, &self.0["trust"])
    }

    /// The texts of all findings of a kind.
    pub fn findings(&self, kind: &str) -> Vec<String> {
        let findings = self.0["findings"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |finding: &Value| finding["text"].as_str().unwrap_or_default().to_owned();
        findings.iter().filter(|finding| finding["kind"] == kind).map(text).collect()
    }
}

impl Answer<'_> {
    /// Predicted time, in nanoseconds.
    pub fn time_ns(&self) -> f64 {
        number(&self.0["time_ns"], "time_ns", self.0)
    }

    /// Predicted speed-up relative to one CPU.
    pub fn speedup(&self) -> f64 {
        number(&self.0["speedup"], "speedup", self.0)
    }

    /// Names of the functions, in the order of the report.
    pub fn functions(&self) -> Vec<String> {
        let rows = self.0["functions"].as_array().map_or(&[][..], Vec::as_slice);
        rows.iter().map(|row| row["function"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The field `calls`, `tet_ns` or `tetid_ns` of a function; `None` if the function is not in the table.
    pub fn function(&self, name: &str, field: &str) -> Option<f64> {
        let rows = self.0["functions"].as_array()?;
        let row = rows.iter().find(|row| row["function"] == name)?;
        Some(number(&row[field], field, row))
    }

    /// Thread, operation, start, end and weight of each segment, in the order of the report.
    pub fn segments(&self) -> Vec<(String, u64, f64, f64, f64)> {
        let segments = self.0["segments"].as_array().map_or(&[][..], Vec::as_slice);
        let read = |segment: &Value| {
            (
                segment["thread"].as_str().unwrap_or_default().to_owned(),
                segment["op"].as_u64().unwrap_or(u64::MAX),
                number(&segment["start_ns"], "start_ns", segment),
                number(&segment["end_ns"], "end_ns", segment),
                number(&segment["weight"], "weight", segment),
            )
        };
        segments.iter().map(read).collect()
    }
}

impl Program {
    /// Parses JSON text. Text of another form fails the test.
    pub fn parse(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in:\n{text}"));
        assert_eq!((&value["format"], &value["version"]), (&"longpole-program".into(), &1.into()));
        Self(value)
    }

    /// The name and the operations of each thread.
    pub fn operations(&self) -> impl Iterator<Item = (&str, &[Value])> {
        let threads = self.0["threads"].as_array().map_or(&[][..], Vec::as_slice);
        threads.iter().flat_map(|thread| {
            let name = thread["name"].as_str().unwrap_or_default();
            let operations = thread["ops"].as_array().map_or(&[][..], Vec::as_slice);
            operations.iter().map(move |op| (name, op.as_array().map_or(&[][..], Vec::as_slice)))
        })
    }

    /// How often all threads enter a function: the number of `call` and `exec` operations with its name.
    pub fn entries(&self, function: &str) -> usize {
        let enters = |op: &[Value]| match op {
            [kind, name, ..] => (kind == "call" || kind == "exec") && name == function,
            _ => false,
        };
        self.operations().filter(|(_, op)| enters(op)).count()
    }

    /// Number of operations of a kind.
    pub fn count(&self, kind: &str) -> usize {
        self.operations().filter(|(_, op)| op.first().is_some_and(|first| first == kind)).count()
    }

    /// Number of operations of a kind in all threads that enter this function at least once.
    pub fn count_where(&self, kind: &str, function: &str) -> usize {
        let names = |op: &[Value]| op.get(1).is_some_and(|name| name == function);
        let enters =
            |op: &[Value]| op.first().is_some_and(|kind| kind == "call" || kind == "exec") && names(op);
        let threads: std::collections::BTreeSet<&str> =
            self.operations().filter(|(_, op)| enters(op)).map(|(thread, _)| thread).collect();
        let counts = |op: &[Value]| op.first().is_some_and(|first| first == kind);
        self.operations().filter(|(thread, op)| threads.contains(thread) && counts(op)).count()
    }

    /// The part of all computing that threads do while they hold a mutex or spin lock.
    pub fn held_share(&self, lock: &str) -> f64 {
        let (mut held, mut all, mut has) = (0.0, 0.0, false);
        for (_, op) in self.operations() {
            match op {
                [kind, .., ns] if kind == "exec" => {
                    let ns = number(ns, "exec", &self.0["format"]);
                    all += ns;
                    held += if has { ns } else { 0.0 };
                }
                [kind, name] if kind == "lock" || kind == "spin_lock" => has |= name == lock,
                [kind, name] if kind == "unlock" || kind == "spin_unlock" => has &= name != lock,
                _ => {}
            }
        }
        held / f64::max(all, 1.0)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.0["threads"].as_array().map_or(0, Vec::len)
    }
}

fn number(value: &Value, name: &str, whole: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number '{name}' in {whole}"))
}
