//! Files that cannot be analysed: exit code 1, one line that says what is wrong and one that says what to do.

use super::{FIGURE_4, Folder, longpole, longpole_with, run};
use std::process::{Command, Stdio};

/// Every command that reads says the same about a file.
#[track_caller]
fn all_refuse(path: &str, message: &str, hint: &str) {
    longpole(&["report", path]).fails(1, message, hint);
    longpole(&["report", path, "--json"]).fails(1, message, hint);
    longpole(&["export", path, "--format", "program"]).fails(1, message, hint);
    longpole(&["info", path]).fails(1, message, hint);
}

#[test]
fn a_missing_file_is_refused_by_every_command() {
    all_refuse("/no/such/file.lp", "there is no file /no/such/file.lp", "check the name");
}

#[test]
fn an_empty_file_is_refused_by_every_command() {
    let folder = Folder::new();
    all_refuse(&folder.file("empty.lp", ""), "empty.lp is empty", "record again");
    all_refuse(&folder.file("blank.json", " \n\t\n"), "only blanks", "longpole record");
}

#[test]
fn a_file_of_another_tool_is_refused_with_a_hint() {
    let folder = Folder::new();
    all_refuse(&folder.file("a.txt", "hello"), "neither a longpole session nor a program", "longpole record");
    all_refuse(&folder.file("a.data", "PERFILE2 and so on"), "recording of perf", "longpole record");
    all_refuse(&folder.file("a.gz", b"\x1f\x8b\x08rest"), "compressed by gzip", "unpack");
    all_refuse(env!("CARGO_BIN_EXE_longpole"), "binary, not a recording", "longpole record -o FILE --");
}

#[test]
fn a_directory_is_refused_by_every_command() {
    all_refuse("/", "/ is a directory", "give a file");
}

/// Opening the pipe would wait forever for a writer.
#[test]
fn a_pipe_without_a_writer_is_refused_instead_of_waited_for() {
    let folder = Folder::new();
    let path = folder.path("pipe");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    for words in [&["report", &path][..], &["info", &path], &["export", "-f", "program", &path]] {
        let mut command = Command::new("timeout");
        command.args(["20", env!("CARGO_BIN_EXE_longpole")]).args(words);
        run(command, b"").fails(
            1,
            "pipe is not a regular file",
            "give - and connect the pipe to standard input",
        );
    }
    longpole(&["report", "/dev/zero"]).fails(1, "/dev/zero is not a regular file", "standard input");
}

#[test]
fn a_pipe_made_by_the_shell_is_read() {
    let mut command = Command::new("bash");
    let script = r#""$0" info <(printf '{"format":')"#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_longpole")]);
    let run = run(command, b"");
    assert!(!run.stderr.contains("regular"), "{}", run.stderr);
    assert!(run.stderr.contains("/dev/fd/"), "{}", run.stderr);
}

#[test]
fn an_unreadable_file_is_refused_with_the_hint_sudo() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};
    let folder = Folder::new();
    let path = folder.file("private.lp", FIGURE_4);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).expect("set");
    let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
    command.args(["report", &path]);
    if std::fs::read(&path).is_ok() {
        // Root may read everything, so the command runs as user nobody.
        command.uid(65_534).gid(65_534);
        if Command::new(env!("CARGO_BIN_EXE_longpole")).arg("--version").uid(65_534).output().is_err() {
            println!(
                "SKIP an_unreadable_file_is_refused_with_the_hint_sudo: another user cannot run the binary"
            );
            return;
        }
    }
    run(command, b"").fails(1, "you may not read ", "sudo");
}

#[test]
fn a_ret_without_a_call_is_refused_with_its_place() {
    let folder = Folder::new();
    let program = r#"{"format":"longpole-program","version":1,"threads":[{"name":"T1","ops":[["call","f"],["ret"],["ret"]]}]}"#;
    let path = folder.file("unbalanced.json", program);
    longpole(&["report", &path]).fails(1, "thread \"T1\", operation 2: \"ret\"", "call");
}

#[test]
fn json_that_is_no_valid_program_is_refused_with_the_file_s_name() {
    let folder = Folder::new();
    for (name, text) in [
        ("cut.json", &FIGURE_4[..200]),
        ("other.json", r#"{"format":"something-else","version":1,"threads":[]}"#),
        ("newer.json", r#"{"format":"longpole-program","version":99,"threads":[]}"#),
        ("object.json", "{}"),
        (
            "unknown.json",
            r#"{"format":"longpole-program","version":1,"threads":[{"name":"T","ops":[["fly","x"]]}]}"#,
        ),
    ] {
        let run = longpole(&["report", &folder.file(name, text)]);
        assert_eq!(run.code, 1, "{name}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 2, "{name}: {}", run.stderr);
        assert!(run.stderr.contains(name), "{name}: {}", run.stderr);
    }
    let mut bytes = FIGURE_4.as_bytes().to_vec();
    bytes[60] = 0xff;
    longpole(&["report", &folder.file("latin.json", bytes)]).fails(1, "not UTF-8 text: see byte 60", "UTF-8");
}

#[test]
fn endless_nesting_in_a_program_is_refused() {
    let text = format!(r#"{{"format":"longpole-program","version":1,"threads":{}"#, "[".repeat(100_000));
    assert_eq!(longpole_with(&["report", "-"], text.as_bytes()).code, 1);
}

#[test]
fn control_characters_of_names_do_not_reach_the_terminal() {
    let program =
        FIGURE_4.replace(r#"["exec","a",1000]"#, r#"["exec","evil\u001b[2J\u0007name\nnext",1000]"#);
    let run = longpole_with(&["report", "-"], program.as_bytes());
    let text = run.works();
    assert!(text.contains("evil"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    assert!(!text.contains("name\nnext"), "{text:?}");
}

#[test]
fn control_characters_of_file_names_do_not_reach_messages() {
    let run = longpole(&["report", "/no/such/\u{1b}[2Jfile\nname"]);
    assert_eq!(run.code, 1);
    assert_eq!(run.stderr.lines().count(), 2);
    assert!(!run.stderr.contains('\u{1b}'));
}

#[test]
fn empty_standard_input_is_refused() {
    longpole_with(&["report", "-"], b"").fails(1, "standard input is empty", "record");
}

#[test]
fn a_full_disk_at_standard_output_is_an_error() {
    let folder = Folder::new();
    let path = folder.file("figure.json", FIGURE_4);
    let full = std::fs::File::options().write(true).open("/dev/full").expect("opened");
    let output = Command::new(env!("CARGO_BIN_EXE_longpole"))
        .args(["report", &path])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("ran");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("longpole: standard output cannot be written")
    );
}

#[test]
fn a_closed_pipe_at_standard_output_is_no_error() {
    let folder = Folder::new();
    // More output than a pipe can hold.
    let threads: Vec<String> =
        (0..20_000).map(|i| format!(r#"{{"name":"T{i}","ops":[["exec","f{i}",1]]}}"#)).collect();
    let program = format!(r#"{{"format":"longpole-program","version":1,"threads":[{}]}}"#, threads.join(","));
    let path = folder.file("large.json", program);
    let mut child = Command::new(env!("CARGO_BIN_EXE_longpole"))
        .args(["report", &path, "--json", "--segments", "--cpus", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
