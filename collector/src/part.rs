//! Takes a part of a recording: the part asked for or, if the recording is large, the part that is most like all of it.

use crate::exit::UserError;
use crate::plan::part::{Moment, RecordingPart};
use engine::event::Recording;
use engine::report::Finding;
use engine::timeline::{Pauses, excerpt, extent, typical};
use jiff::{Timestamp, ToSpan, civil::Time, tz::TimeZone};
use recording::ClockAnchor;
use std::ops::RangeInclusive;

/// A part of a recording with at most `most` records, unless all of it is asked for, and a finding about the part.
/// `None`: the part is the complete recording.
///
/// # Errors
/// The recording has no such part.
pub fn part_of(
    recording: Recording,
    clock: ClockAnchor,
    part: RecordingPart,
    most: usize,
) -> Result<(Recording, Option<Finding>), UserError> {
    let (begin_ns, end_ns) = extent(&recording);
    let of = recording.events.len() as u64;
    let is_asked = part.from.is_some() || part.to.is_some();
    let mut cut = recording;
    if is_asked {
        let asked = asked(part, begin_ns..=end_ns, clock)?;
        cut = excerpt(cut, *asked.start(), *asked.end(), of);
    }
    let mut apart = None;
    if let Some((from_ns, to_ns, unlike)) = chosen(&cut, part, most) {
        apart = Some(unlike);
        cut = excerpt(cut, from_ns, to_ns, of);
    }
    let (from_ns, to_ns) = extent(&cut);
    let finding = (is_asked || apart.is_some()).then(|| Finding::Excerpt {
        from_ns: from_ns.saturating_sub(begin_ns),
        length_ns: to_ns.saturating_sub(from_ns),
        whole_ns: end_ns.saturating_sub(begin_ns),
        records: cut.events.len() as u64,
        of,
        apart,
        sampled: false,
    });
    Ok((cut, finding))
}

/// The part that stands for a recording in memory, unless all of it is to be analysed: the part's start and end, and
/// how much it differs from all ([`engine::timeline::Typical::apart`]).
pub fn chosen(recording: &Recording, part: RecordingPart, most: usize) -> Option<(u64, u64, f64)> {
    let found = if part.whole { None } else { typical(recording, most) };
    let has_pauses = || !Pauses::to_avoid(recording).is_empty();
    found.filter(|(.., unlike)| stands_for_all(*unlike, recording.events.len() as u64) || has_pauses())
}

/// Whether a part of a file is chosen before the file is read. `records`: the number of records asked for. If these are
/// most of the file, choosing a part would save little.
pub fn is_chosen(part: RecordingPart, records: u64, most: usize) -> bool {
    !part.whole && records > (most as u64).saturating_mul(2)
}

/// Whether a part that differs this much ([`engine::timeline::Typical::apart`]) may stand for this many records. A start
/// with many records and a long computation with few have nothing in common: no part shows what limits both.
pub fn stands_for_all(apart: f64, records: u64) -> bool {
    const UNLIKE: f64 = 0.25;
    // Analysing more records takes too long in any case.
    const MOST_WHOLE: u64 = 1_000_000;
    apart <= UNLIKE || records > MOST_WHOLE
}

/// Start and end of the part asked for, on the records' clock; `recorded`: those of the recording.
///
/// # Errors
/// The recording has no such part.
pub fn asked(
    part: RecordingPart,
    recorded: RangeInclusive<u64>,
    clock: ClockAnchor,
) -> Result<RangeInclusive<u64>, UserError> {
    let (begin_ns, end_ns) = (*recorded.start(), *recorded.end());
    let instant = |moment: Option<Moment>, else_ns| {
        moment.map_or(Some(else_ns), |moment| instant(moment, begin_ns, clock))
    };
    let asked = instant(part.from, begin_ns).zip(instant(part.to, end_ns));
    let within = asked.filter(|(from_ns, to_ns)| from_ns < to_ns && *from_ns < end_ns && *to_ns > begin_ns);
    let (from_ns, to_ns) = within.ok_or_else(|| outside(begin_ns, end_ns, clock))?;
    Ok(from_ns.max(begin_ns)..=to_ns.min(end_ns))
}

/// A moment on the records' clock, nanoseconds; `None`: the recording has no such time of day, not even nearby.
fn instant(moment: Moment, begin_ns: u64, clock: ClockAnchor) -> Option<u64> {
    let time = match moment {
        Moment::After(after) => return begin_ns.checked_add(u64::try_from(after.as_nanos()).ok()?),
        Moment::Clock(time) => time,
    };
    let zone = TimeZone::system();
    let begin = wall(begin_ns, clock)?.to_zoned_datetime(zone);
    let time = Time::midnight().checked_add(time).ok()?;
    let mut asked = begin.with().time(time).build().ok()?;
    // A time of day before the start is on the next day.
    if asked.timestamp() < begin.timestamp() {
        let next = asked.checked_add(1.day()).ok()?;
        let is_near = |asked: &jiff::ZonedDateTime| {
            asked.timestamp().as_second() - begin.timestamp().as_second() < DAY_S / 2
        };
        asked = if is_near(&next) { next } else { asked };
    }
    let after_ns = asked.timestamp().as_nanosecond() - begin.timestamp().as_nanosecond();
    u64::try_from(i128::from(begin_ns).checked_add(after_ns)?.max(0)).ok()
}

const DAY_S: i64 = 86_400;

/// The calendar time of an instant of the records' clock.
fn wall(ns: u64, clock: ClockAnchor) -> Option<Timestamp> {
    let realtime = i128::from(clock.realtime_ns) + i128::from(ns) - i128::from(clock.monotonic_ns);
    Timestamp::from_nanosecond(realtime).ok()
}

fn outside(begin_ns: u64, end_ns: u64, clock: ClockAnchor) -> UserError {
    let length = crate::cell::duration(end_ns.saturating_sub(begin_ns) as f64);
    let times =
        [begin_ns, end_ns].map(|ns| wall(ns, clock).map(|at| at.to_zoned_datetime(TimeZone::system())));
    let hint = match times {
        [Some(begin), Some(end)] if clock.realtime_ns > 0 => {
            format!(
                "the recording is {length} long, from {} to {}",
                begin.strftime("%H:%M:%S"),
                end.strftime("%H:%M:%S")
            )
        }
        _ => format!("the recording is {length} long"),
    };
    UserError::usage("the recording has nothing between --from and --to", hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const SECOND_NS: u64 = 1_000_000_000;

    fn record(time_ns: u64) -> probe_abi::Record {
        let kind = probe_abi::Kind::Exit as u8;
        let header = probe_abi::Header { time_ns, sequence: 0, cpu: 0, kind, context: 0, tid: 1, pid: 1 };
        probe_abi::Record::Exit(probe_abi::Exit { header, last_of_process: 0, placement: 0 })
    }

    #[test]
    fn a_time_of_day_is_found_within_the_recording_across_midnight() {
        let zone = TimeZone::system();
        // The recording starts five minutes before midnight, after two hours of uptime.
        let begin = "2026-11-28T23:55:00".parse::<jiff::civil::DateTime>().expect("a date");
        let begin = begin.to_zoned_datetime(zone).expect("a time");
        let realtime_ns = u64::try_from(begin.timestamp().as_nanosecond()).expect("after 1970");
        let begin_ns = 7200 * SECOND_NS;
        let clock = ClockAnchor { monotonic_ns: begin_ns, realtime_ns };
        let at = |hours: u64, minutes: u64| {
            let moment = Moment::Clock(Duration::from_secs(hours * 3600 + minutes * 60));
            instant(moment, begin_ns, clock).map(|ns| ns as i64 - begin_ns as i64)
        };
        assert_eq!(at(23, 56), Some(60 * SECOND_NS as i64));
        assert_eq!(at(0, 5), Some(600 * SECOND_NS as i64), "after midnight");
        assert_eq!(at(23, 50), Some(-300 * SECOND_NS as i64), "before the start");
        let after = instant(Moment::After(Duration::from_millis(1500)), begin_ns, clock);
        assert_eq!(after, Some(begin_ns + 1_500_000_000));
    }

    #[test]
    fn a_part_is_chosen_only_from_more_than_twice_the_record_limit() {
        let of = |records, whole| {
            let recording = Recording { events: (0..records).map(record).collect(), ..Recording::default() };
            let part = RecordingPart { whole, ..RecordingPart::default() };
            part_of(recording, ClockAnchor::default(), part, 100).expect("a part")
        };
        assert_eq!(of(200, false).1, None);
        assert_eq!(of(2_000, true).1, None);
        let (cut, finding) = of(2_000, false);
        let Some(Finding::Excerpt { records, of: 2_000, apart: Some(apart), .. }) = finding else {
            panic!("{finding:?}")
        };
        assert!(
            records as usize == cut.events.len() && (90..=100).contains(&records) && apart < 0.05,
            "{records}, {apart}"
        );
    }

    /// A start of node with 600,000 lock records in 0.1 s must not stand for a computation of 2 s.
    #[test]
    fn a_busy_start_is_not_chosen_as_the_part_of_a_long_recording() {
        let events = (0..2_000).chain([SECOND_NS]).map(record).collect();
        let mut recording = Recording { events, ..Recording::default() };
        recording.facts.end =
            Some(engine::event::WindowEnd { end_ns: SECOND_NS, ..engine::event::WindowEnd::default() });
        let (cut, finding) =
            part_of(recording, ClockAnchor::default(), RecordingPart::default(), 100).expect("a part");
        let Some(Finding::Excerpt { length_ns, apart: Some(apart), .. }) = finding else {
            panic!("{finding:?}")
        };
        assert!(length_ns > SECOND_NS - 2_000 && apart < 0.1 && cut.events.len() <= 100, "{apart}");
        assert!(!stands_for_all(0.5, 1_000), "a part unlike all the rest");
        assert!(stands_for_all(0.9, 1_000_001), "there is no other way");
    }

    #[test]
    fn a_part_outside_the_recording_is_an_error_with_its_length() {
        let mut recording = Recording::default();
        recording.facts.start_ns = SECOND_NS;
        recording.facts.end =
            Some(engine::event::WindowEnd { end_ns: 3 * SECOND_NS, ..engine::event::WindowEnd::default() });
        let after = |seconds| Some(Moment::After(Duration::from_secs(seconds)));
        let part = RecordingPart { from: after(5), to: None, whole: false };
        let error = part_of(recording.clone(), ClockAnchor::default(), part, 10).expect_err("after its end");
        assert_eq!(error.hint, "the recording is 2.00 s long");
        let part = RecordingPart { from: after(1), to: after(1), whole: false };
        assert!(part_of(recording.clone(), ClockAnchor::default(), part, 10).is_err(), "nothing");
        let part = RecordingPart { from: after(1), to: after(9), whole: false };
        let (cut, finding) = part_of(recording, ClockAnchor::default(), part, 10).expect("its second half");
        assert_eq!(
            (cut.facts.start_ns, cut.facts.end.map(|end| end.end_ns)),
            (2 * SECOND_NS, Some(3 * SECOND_NS))
        );
        assert!(
            matches!(finding, Some(Finding::Excerpt { length_ns: SECOND_NS, apart: None, .. })),
            "{finding:?}"
        );
    }
}
