//! Shares of functions in longpole's reports, compared with those that the programs measure themselves. Shows whether
//! numbers without ± are exact, and whether intervals with ± contain the truth.

use anyhow::{Result, ensure};
use longpole_tests::known_shares::{self, Compared};
use longpole_tests::{take_binary, workload};
use serde_json::{Value, json};

use crate::measure::{Measurement, Need, Setting, Side};

/// Number of recordings. Half of them are launched, and half are attached.
const RECORDINGS: usize = 200;
/// Number of wrong shares that are shown. Further ones are only counted.
const SHOWN: usize = 5;

pub const SHARES: Measurement = Measurement {
    name: "shares",
    about: "Shares of functions, compared with those that programs know of themselves",
    title: "Shares of functions",
    needs: &[Need::Recorder],
    sides: |setting| Ok(vec![Side::new("shares.c", |_| compared(setting)).once(true)]),
    says: "200 recordings of 1.2 s, as a user makes them, of programs that know the shares of their functions \
           (`shares.c`: long\nand short calls, nested, recursive, open from end to end, phases; one and two \
           threads). A number without ± is right\nwithin 0.5 points of the CPU time; of those with ±, 95 % are to \
           hold the truth.",
    heads: "  | recordings | without ± | right | with ± | hold the truth | deviations ÷ expected",
    rows: Some(|results| {
        let rows = results.values().flat_map(|(_, value)| value["rows"].as_array()).flatten();
        Ok(rows.filter_map(Value::as_str).map(str::to_owned).collect())
    }),
    ends: |results| {
        let wrong = results.values().flat_map(|(_, value)| value["wrong"].as_array()).flatten();
        let wrong: Vec<String> = wrong.filter_map(Value::as_str).map(|line| format!("- {line}")).collect();
        if wrong.is_empty() {
            return Ok(String::new());
        }
        let shown = &wrong[..wrong.len().min(SHOWN)];
        Ok(format!("Wrong without ± ({}):\n\n{}", wrong.len(), shown.join("\n")))
    },
    ..Measurement::NEW
};

/// Makes this number of recordings, and compares them.
fn compared(setting: &Setting) -> Result<Value> {
    let is_taken = take_binary(setting.longpole.to_owned());
    ensure!(is_taken, "another longpole than {} is in use", setting.longpole.display());
    let program = workload::build("shares.c")?;
    let (mut launched, mut attached) = (Compared::default(), Compared::default());
    for seed in 0.. {
        if launched.recordings < RECORDINGS / 2 {
            known_shares::launched(&program, seed, &mut launched);
        }
        if attached.recordings < RECORDINGS / 2 {
            known_shares::attached(&program, seed, &mut attached)?;
        }
        if launched.recordings + attached.recordings >= RECORDINGS {
            break;
        }
    }
    for line in launched.outside.iter().chain(&attached.outside) {
        eprintln!("outside: {line}");
    }
    let rows = [("launched", &launched), ("attached", &attached)].map(|(name, compared)| {
        let Compared { exact, wrong, sampled, recordings, .. } = compared;
        let (right, inside) = (exact - wrong.len(), compared.inside() as f64 / *sampled as f64 * 100.0);
        format!(
            "{name} | {recordings} | {exact} | {right} | {sampled} | {inside:.1} % | {:.2}",
            compared.spread()
        )
    });
    let wrong: Vec<&String> = launched.wrong.iter().chain(&attached.wrong).collect();
    Ok(json!({ "rows": rows, "wrong": wrong }))
}
