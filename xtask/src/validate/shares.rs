//! Compares shares of functions in longpole's reports with those that programs measure themselves: whether numbers
//! without ± are exact, and whether the true value lies in the interval of numbers with ±.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use longpole_tests::known_shares::{self, Compared};
use longpole_tests::{take_binary, workload};

/// Number of recordings: half of them launched, half attached.
const RECORDINGS: usize = 200;
/// Number of wrong shares that are shown; all other wrong shares are only counted.
const SHOWN: usize = 5;

/// Makes this number of recordings, and compares them.
///
/// # Errors
/// The program does not compile or cannot be started.
pub fn compare(longpole: &Path) -> Result<String> {
    if !take_binary(longpole.to_owned()) {
        bail!("another longpole than {} is in use", longpole.display());
    }
    let program = workload::build("shares.c")?;
    let mut launched = Compared::default();
    let mut attached = Compared::default();
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
    let mut text = format!(
        "## Shares of functions\n\n{RECORDINGS} recordings of 1.2 s, as a user makes them, of programs that know the shares of their \
         functions (`shares.c`: long\nand short calls, nested, recursive, open from end to end, phases; one and two threads). A number \
         without ± is right\nwithin 0.5 points of the CPU time; of those with ±, 95 % are to hold the truth.\n\n| | recordings | without ± | \
         right | with ± | hold the truth | deviations ÷ expected |\n|---|---|---|---|---|---|---|\n"
    );
    for (name, compared) in [("launched", &launched), ("attached", &attached)] {
        let Compared { exact, wrong, sampled, recordings, .. } = compared;
        writeln!(
            text,
            "| {name} | {recordings} | {exact} | {} | {sampled} | {:.1} % | {:.2} |",
            exact - wrong.len(),
            compared.inside() as f64 / *sampled as f64 * 100.0,
            compared.spread()
        )?;
    }
    let wrong: Vec<&String> = launched.wrong.iter().chain(&attached.wrong).collect();
    if !wrong.is_empty() {
        writeln!(text, "\nWrong without ± ({}):\n", wrong.len())?;
        wrong.iter().take(SHOWN).try_for_each(|line| writeln!(text, "- {line}"))?;
    }
    for line in launched.outside.iter().chain(&attached.outside) {
        eprintln!("outside: {line}");
    }
    Ok(text)
}
