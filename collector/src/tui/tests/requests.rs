//! The page about single requests.

use super::*;

#[test]
fn requests_are_shown_in_place_of_the_table() {
    let server = engine::synth::server_recording(&engine::synth::Service::default()).expect("a server");
    let of = |per: &str| {
        let per = Some(per.parse().expect("valid"));
        let found = snapshot(&server, &Asked { per, ..asked() }, false);
        let mut state = showing(Snapshot { took: Duration::ZERO, ..found });
        state.show_requests();
        state
    };
    let mut state = of("socket");
    check("requests", &mut state);
    let page = text(&mut state, 80, 24);
    for part in ["a second", "Latency: 50 % ", ", 99 % ", "A REQUEST SPENDS ON", "slowest 1", "Esc back"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    press(&mut state, KeyCode::Char('r'));
    let table = text(&mut state, 80, 24);
    assert!(table.contains("1 functions") && table.contains("r requests"), "{table}");
    press(&mut state, KeyCode::Char('r'));
    assert_eq!(text(&mut state, 80, 24), page);
    let left = last_picture(&mut state, &PLAIN, 24).join("\n");
    assert!(left.contains("A REQUEST SPENDS ON"), "{left}");
    let other = text(&mut of("answer_all"), 80, 24);
    assert!(other.contains("answer_all: is not recorded yet."), "{other}");
    let other = text(&mut of("socket:9"), 80, 24);
    assert!(other.contains("port 9: no message to the program was answered in this stretch."), "{other}");
    // Without --per no request is followed, and the key says how.
    let mut state = showing(recorded("store"));
    assert!(!text(&mut state, 80, 24).contains("r requests"));
    press(&mut state, KeyCode::Char('r'));
    assert!(text(&mut state, 80, 24).contains("Start `top` with --per socket"));
}
