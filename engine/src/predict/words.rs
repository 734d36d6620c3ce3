//! A prediction in sentences.

use super::result::{Limit, Prediction};
use crate::report::Cpus;

/// What limits, in a few words.
pub fn limit_text(limit: &Limit) -> String {
    match limit {
        Limit::Processors => "CPUs".to_owned(),
        Limit::Quota => "the quota".to_owned(),
        Limit::Lock(lock, share) => format!("{lock}, held {} of the time", percent(*share)),
        Limit::Device(device, share) => format!("{device}, busy {} of the time", percent(*share)),
        Limit::Function(function, share) => {
            format!("{function}, {} of the critical path", percent(*share))
        }
        Limit::Threads(threads) if *threads == 1 => "only one thread computes at a time".to_owned(),
        Limit::Threads(threads) => format!("only {threads} threads compute at once"),
        Limit::Waiting(share) => format!("waiting, {} of the critical path", percent(*share)),
        Limit::Deadlock => "deadlock".to_owned(),
        Limit::NotKnown => "not known".to_owned(),
        Limit::Nothing => "nothing takes any time".to_owned(),
    }
}

/// What is to be said about the prediction as a whole: where more CPUs stop helping and why, what more threads could bring,
/// which function comes first from which CPU count on, and what is not modelled. Names are as they are in the program: they
/// may hold anything.
pub fn sentences(prediction: &Prediction) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(saturation) = &prediction.saturation {
        let limit = limit_text(&saturation.limit);
        let most = saturation.most_speedup;
        sentences.push(match (&saturation.limit, saturation.cpus) {
            (Limit::Nothing, _) => {
                "No thread computes anything here: there is nothing that CPUs could make faster.".to_owned()
            }
            (_, Cpus::Infinite) => {
                format!("On any number of CPUs the speed-up ends at {most:.2} ({limit}).")
            }
            (_, cpus) => format!(
                "More than {} hardly {}: the speed-up ends at {most:.2} on any number ({limit}).",
                cpus_text(cpus),
                if cpus == Cpus::ONE { "helps" } else { "help" },
            ),
        });
        if let Limit::Threads(threads) = saturation.limit {
            let widest = prediction.results.iter().filter(|result| result.cpus != Cpus::Infinite);
            let widest = widest.max_by_key(|result| result.cpus);
            // How much faster it could be is not said: what keeps other threads waiting would keep more of them waiting.
            if widest.is_some_and(|result| result.more_threads_ns * 1.05 < result.time_ns) {
                sentences.push(format!(
                    "The program has too few threads for more CPUs: {}.",
                    if threads == 1 {
                        "only one computes at a time".to_owned()
                    } else {
                        format!("at most {threads} compute at once")
                    },
                ));
            }
        }
    }
    for crossover in &prediction.crossovers {
        let from = match crossover.cpus {
            Cpus::Infinite => "On unlimited CPUs".to_owned(),
            cpus => format!("From {} on", cpus_text(cpus)),
        };
        sentences.push(format!("{from}, {} outweighs {}.", crossover.function, crossover.over));
    }
    sentences
}

/// `1 CPU`, `4 CPUs`, `unlimited CPUs`.
pub(super) fn cpus_text(cpus: Cpus) -> String {
    match cpus {
        Cpus::Count(count) if count.get() == 1 => "1 CPU".to_owned(),
        Cpus::Count(count) => format!("{count} CPUs"),
        Cpus::Infinite => "unlimited CPUs".to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
