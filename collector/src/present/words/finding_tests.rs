//! Sentences of findings.

use super::*;
use engine::program::json;
use engine::report::{Cpus, Detail, report};

fn sentences(threads: &str) -> Vec<String> {
    let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#);
    let program = json::read(&text).expect("a program");
    let report = report(&program, &[Cpus::Infinite], Detail::Functions);
    report.findings.iter().map(sentence).collect()
}

#[test]
fn the_deadlock_sentence_names_each_waiting_thread_and_the_holder() {
    let said = sentences(
        r#"{"name":"T1","ops":[["lock","left"],["exec","a",2],["lock","right"],["exec","never",1]]},
           {"name":"T2","ops":[["lock","right"],["exec","b",3],["lock","left"],["exec","never",1]]}"#,
    );
    assert_eq!(
        said,
        [
            "nothing more happens after 3 ns (results are up to there): T1 waits for lock \"right\", held by T2; T2 waits \
             for lock \"left\", held by T1"
        ]
    );
}

#[test]
fn each_kind_of_wait_that_never_ends_has_its_words() {
    let stuck = |operations: &str| {
        let said = sentences(&format!(
            r#"{{"name":"T1","ops":[{operations}]}},
               {{"name":"T2","ops":[["lock","m"],["rdlock","r"],["spin_lock","s"],["exec","f",1]]}}"#
        ));
        let [said] = &said[..] else { panic!("{said:?}") };
        said.split_once("(results are up to there): ").expect("the usual start").1.to_owned()
    };
    assert_eq!(stuck(r#"["wait","x"]"#), "T1 waits for a signal \"x\"");
    assert_eq!(stuck(r#"["sem_wait","x"]"#), "T1 waits for semaphore \"x\"");
    assert_eq!(stuck(r#"["sleep",2],["lock","m"]"#), "T1 waits for lock \"m\", held by T2, which has ended");
    assert_eq!(stuck(r#"["lock","n"],["lock","n"]"#), "T1 waits for lock \"n\", held by itself");
    assert_eq!(
        stuck(r#"["sleep",2],["wrlock","r"]"#),
        "T1 waits for writing under \"r\", held by T2, which has ended"
    );
    assert_eq!(
        stuck(r#"["sleep",2],["spin_lock","s"]"#),
        "T1 waits for spin lock \"s\", held by T2, which has ended"
    );
    assert_eq!(
        stuck(r#"["barrier","b",3]"#),
        "T1 waits for barrier \"b\", which 1 of 3 threads have reached"
    );
    assert_eq!(stuck(r#"["lock","n"],["cond_wait","c","n"]"#), "T1 waits for condition \"c\"");
    assert_eq!(stuck(r#"["join","T1"]"#), "T1 waits for its own end");
    assert_eq!(stuck(r#"["await","e"]"#), "T1 waits for wake-up \"e\"");
    assert_eq!(stuck(r#"["wait","x"],["create","T2"]"#), "T1 waits for a signal \"x\"; T2 is never created");
    assert_eq!(stuck(r#"["wrlock","q"],["rdlock","q"]"#), "T1 waits for reading under \"q\", held by itself");
}

#[test]
fn more_than_eight_waiting_threads_of_a_deadlock_are_counted() {
    let threads: Vec<String> =
        (0..20).map(|thread| format!(r#"{{"name":"T{thread}","ops":[["wait","x"]]}}"#)).collect();
    let said = sentences(&threads.join(","));
    assert!(said[0].ends_with("T7 waits for a signal \"x\"; 12 more threads wait"), "{said:?}");
}

#[test]
fn the_records_a_file_had_no_room_for_are_listed_by_kind() {
    assert_eq!(missing(&LeftOut::default()), "");
    let one = LeftOut { notes: 1, ..LeftOut::default() };
    assert_eq!(missing(&one), "1 note about gaps and probes");
    assert_eq!(
        missing(&LeftOut { stacks: 3, end: 2, ..one }),
        "1 note about gaps and probes, 3 stacks of samples and 2 threads and lock operations at the end"
    );
}

#[test]
fn sentences_of_notes_contain_their_numbers() {
    let said = |finding: Finding| sentence(&finding);
    let contradiction =
        Finding::Contradiction { places: 1, unseen_switches: 0, unknown_ns: 4_980_000, recorded_ns: 0 };
    assert!(said(contradiction).ends_with("one is missing: 4.98 ms of thread time is unknown"));
    assert!(said(Finding::NotProbed { processes: 4 }).starts_with("4 processes got no function probes"));
    assert!(said(Finding::RecordedAgain { lost_share: 0.65 }).starts_with("65 % of the records were lost"));
    let both = said(Finding::Uncontended { objects: 1, all_locks: false, rust: false, go: true });
    assert!(both.starts_with("uncontended acquisitions of 1 object are not visible; "), "{both}");
    assert!(both.contains("goroutines"), "{both}");
    let yielded = Yielded { times: 5001, ns: 30_000_000, most: "worker/7".to_owned() };
    let busy =
        Finding::BusyWait { yielded: Some(yielded), seen: None, most_ns: 30_000_000, ran_ns: 200_000_000 };
    let busy = said(busy);
    assert!(busy.contains("5001 times") && busy.contains("30.0 ms of CPU time (15 %"), "{busy}");
}
