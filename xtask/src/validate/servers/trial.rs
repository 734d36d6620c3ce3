//! Tries one fault of a server: what its cure gains, and what longpole says about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::kinds::{Fault, Server};
use super::run::{Place, Running};
use super::said::Screen;
use crate::command;
use crate::measure::{Setting, in_turns};
use crate::validate::programs::LIMIT;

/// Number of recordings of each fault. There are never more recordings than runs.
pub const RECORDINGS: usize = 3;
/// Length of the load for one measurement of the rate.
const TURN: Duration = Duration::from_secs(2);
/// Length of the load before the first measurement, in which caches are filled and code is compiled.
const WARM: Duration = Duration::from_secs(2);
/// Time from the beginning of the load until longpole attaches.
const BEFORE: Duration = Duration::from_millis(1500);
/// Length of the recording.
const WINDOW: Duration = Duration::from_secs(3);
/// Length of the load, which is longer than the two together and includes the time for attaching.
const LOAD: Duration = Duration::from_secs(7);
/// First ports of the server with the fault and of the server with the cure. Each also uses the next port.
const PORTS: [u16; 2] = [17_810, 17_820];

/// `fault` and `cure` have all measured rates. `limit` and `promised` come from the first recording, and `named` from
/// all. The rates and recordings stay in target/servers. A run that resumes only makes longpole analyse the recordings
/// again.
pub fn measured(server: &'static Server, fault: &'static Fault, setting: &Setting) -> Result<Value> {
    let folder = setting.workspace.target.join("servers");
    std::fs::create_dir_all(&folder)?;
    let name = name(server, fault);
    let files: Vec<PathBuf> =
        (0..RECORDINGS.min(setting.runs)).map(|turn| folder.join(format!("{name}-{turn}.lp"))).collect();
    let kept = folder.join(format!("{name}.json"));
    let is_there = kept.exists() && files.iter().all(|file| file.exists());
    if !(setting.wishes.resume && is_there) {
        let rates = rates_and_recordings(server, fault, setting, &files)?;
        std::fs::write(&kept, rates.to_string())?;
    }
    let mut figures: Value = serde_json::from_str(&std::fs::read_to_string(&kept)?)?;
    let screens: Vec<Screen> = files.iter().map(|file| screen(setting, file)).collect::<Result<_>>()?;
    let named: Vec<String> = screens.iter().map(|screen| screen.place_of(fault.words)).collect();
    figures["limit"] = json!(screens[0].limit);
    figures["words"] = json!(fault.words.join(", "));
    figures["named"] = json!(named);
    figures["others"] = screens.iter().map(|screen| screen.others).collect();
    figures["promised"] = json!(screens[0].promise(fault.promise));
    Ok(figures)
}

/// Measures the rates with the fault and with the cure in turns, then records the server with the fault.
fn rates_and_recordings(
    server: &'static Server,
    fault: &'static Fault,
    setting: &Setting,
    files: &[PathBuf],
) -> Result<Value> {
    let place =
        |at: usize| Place { server, setting, variables: [fault.wrong, fault.right][at], port: PORTS[at] };
    let places = [place(0), place(1)];
    places[0].prepare()?;
    let running = [places[0].start()?, places[1].start()?];
    for place in &places {
        place.load(WARM)?;
    }
    let rates = in_turns(setting.runs, 2, true, |at| places[at].load(TURN))?;
    for file in files {
        record(&places[0], &running[0], file)?;
    }
    Ok(json!({ "fault": rates[0].values(), "cure": rates[1].values() }))
}

/// A name for the files of this fault.
fn name(server: &Server, fault: &Fault) -> String {
    let words = format!("{} {}", server.name, fault.told);
    words.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// Records the server under load.
fn record(place: &Place<'_>, server: &Running, file: &Path) -> Result<()> {
    place.under_load(LOAD, || {
        std::thread::sleep(BEFORE);
        let words = format!("record --force --children -d {}s -p {} -o", WINDOW.as_secs(), server.pid());
        command::good(place.setting.call(&words).arg(file), LIMIT).map(drop)
    })
}

/// longpole's first screen for a recording. The screen is also stored as text.
fn screen(setting: &Setting, file: &Path) -> Result<Screen> {
    let said = command::good(setting.call("report").arg(file), LIMIT)?.stdout;
    std::fs::write(file.with_extension("txt"), &said)?;
    Screen::parse(&said)
}
