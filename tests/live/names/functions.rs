//! Names in answers, and how much of a name the user has to type.

use longpole_tests::{Longpole, Recorded, skip_unless_live};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

const ROUNDS: u64 = 101;

/// The first member of a variable is at the variable's own address. Its lock must be named `work.first`, and not
/// `work`.
#[test]
fn a_lock_in_the_first_member_of_a_variable_has_the_member_s_name() {
    let program = skip_unless_live!("names.cpp");
    let recorded = Recorded::good(&["--interpose", "always"], &program, &[&ROUNDS.to_string()]);
    let expected = ["mutex work.first", "mutex work.second", "mutex shop::carts[1].lock"];
    let expected = expected.map(|name| (name.to_owned(), 2 * ROUNDS));
    assert_eq!(recorded.report("1").acquisitions(), BTreeMap::from(expected));
}

/// A part of a function's name is enough if only one function has it.
#[test]
fn a_unique_part_of_a_function_s_name_is_enough_for_every_command() {
    let program = skip_unless_live!("names.cpp");
    let options = ["--functions", "update_table", "--functions", "update_i", "--functions", "totals"];
    let options = [&options[..], &["--overhead", "none", "--freq", "0"]].concat();
    let recorded = Recorded::good(&options, &program, &[&ROUNDS.to_string()]);
    let report = recorded.report("1");
    let mut names: Vec<String> = report.0["results"][0]["functions"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .map(|row| row["function"].as_str().unwrap_or_default().to_owned())
        .collect();
    names.sort();
    let wanted = [
        "long shop::totals<long>(long volatile*)",
        "shop::update_index(long volatile*)",
        "shop::update_table(long volatile*)",
    ];
    assert_eq!(names, wanted);

    let what_if = |name: &str| {
        let call = Longpole::with(["what-if", "--cpus", "1", "--scale", &format!("{name}=0.5")]);
        call.and(&recorded.file).ok().stdout
    };
    for name in ["update_table", "shop::update_table", "update_t"] {
        let said = what_if(name);
        assert!(said.contains("shop::update_table(long volatile*) 2x faster: "), "{said}");
    }
    let either = Longpole::with(["what-if", "--headroom", "update"]).and(&recorded.file);
    let said = either.fails(2, "'update' matches 2 functions").stderr;
    assert!(
        said.contains("shop::update_index(long volatile*), shop::update_table(long volatile*)"),
        "{said}"
    );

    let rules = recorded.beside("rules.toml");
    let rule = "[[rule]]\nmeasure = \"calls\"\nfunction = \"totals\"\ncpus = 1\nmin = 202\nmax = 202\n";
    std::fs::write(&rules, rule).expect("written");
    let said = Longpole::with(["check", "--rules"]).and(&rules).and(&recorded.file).ok().stdout;
    assert!(said.contains("calls of long shop::totals<long>(long volatile*)"), "{said}");

    let unclear = Recorded::launch(&["--functions", "update"], &program, &["1"]).ended;
    let said = unclear.stderr;
    assert_eq!(unclear.code, Some(2), "{said}");
    assert!(said.contains("'update' matches 2 functions") && !unclear.stdout.contains("1"), "{said}");
}

/// A program must have the name of the link that started it (`redis-server`, not `redis-check-rdb`). longpole's library
/// must be in no profile.
#[test]
fn a_program_is_named_by_the_link_that_started_it() {
    let program = skip_unless_live!("names.cpp");
    let folder = tempfile::tempdir().expect("folder");
    let (file, typed) = (folder.path().join("check-tool"), folder.path().join("server"));
    std::fs::copy(&program, &file).expect("copied");
    symlink(&file, &typed).expect("linked");
    let recorded = Recorded::good(&["--interpose", "always"], &typed, &["60000"]);
    let report = |by: &str| Longpole::with(["report", "--by", by]).and(&recorded.file).ok().stdout;
    let (modules, functions) = (report("module"), report("function"));
    assert!(modules.lines().any(|line| line.starts_with("server")), "{modules}");
    for text in [&modules, &functions, &recorded.ended.stderr] {
        assert!(!text.contains("longpole-preload") && !text.contains("check-tool"), "{text}");
    }
}

/// Advice must not name functions of the standard library, as in "Make <u64>::wrapping_mul faster first".
#[test]
fn advice_names_the_user_s_own_functions_only() {
    let program = skip_unless_live!("standard.rs");
    let recorded = Recorded::good(&["--overhead", "none"], &program, &[]);
    let said = Longpole::with(["report", "--cpus", "1", "--top", "100"]).and(&recorded.file).ok().stdout;
    let advice: String = said.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    // The closure in `mix` is the user's own code, too.
    assert!(advice.contains("mix") && !advice.contains("wrapping_mul"), "{said}");
}
