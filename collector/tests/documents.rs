//! README.md and docs/ are true: each screen is what its command prints, and each command works. `LONGPOLE_BLESS=1` writes
//! the screens again.

use std::time::Duration;

use longpole_tests::documents::{Desk, documents};
use longpole_tests::{check_golden, must_run};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn screens_in_documents_are_what_their_commands_print() {
    let desk = Desk::new();
    let mut count = 0;
    for document in documents() {
        let current = document.with_screens(|command| {
            count += 1;
            let ended = must_run(&mut desk.command(command), LIMIT);
            assert!(matches!(ended.code, Some(0 | 3)), "{command}\n{}", ended.stderr);
            let wide = ended.stdout.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{command}: wider than 80 columns");
            ended.stdout
        });
        check_golden(&document.path, &current);
    }
    assert!(count >= 8, "{count} screens");
}

#[test]
fn documented_commands_that_need_no_root_work() {
    let mut count = 0;
    for document in documents() {
        let desk = Desk::new();
        if let Some((_, rules)) = document.text.split_once("```toml\n") {
            let rules = rules.split("```").next().unwrap_or_default();
            std::fs::write(desk.path().join("rules.toml"), rules).expect("written");
        } else {
            std::fs::write(desk.path().join("rules.toml"), "[[rule]]\nmeasure = \"lost\"\nmax = 0\n")
                .expect("written");
        }
        for line in document.commands("longpole ") {
            count += 1;
            let ended = must_run(&mut desk.command(&line), LIMIT);
            // Exit code 3: the example breaks a rule. 77: doctor misses rights that tests do not have.
            assert!(
                matches!(ended.code, Some(0 | 3 | 77)),
                "{}: {line}\n{}",
                document.path.display(),
                ended.stderr
            );
        }
    }
    assert!(count >= 20, "{count} commands");
}

/// The README has few lines, so that it is read.
#[test]
fn the_readme_has_at_most_1200_words() {
    let words = documents()[0].text.split_whitespace().count();
    assert!(words <= 1_200, "{words} words");
}
