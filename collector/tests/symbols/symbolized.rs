//! `longpole symbolize` and `longpole report --symbol-dir`: a recording gets better names later, from debug files in a
//! folder and from a debuginfod server.

use super::sources::{Built, CPP, build};
use engine::event::{AddressFact, Facts, FunctionFact, ModuleFact, WindowEnd};
use recording::{ClockAnchor, Meta, Overwrite, Writer};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use symbols::functions_of;

/// Paths of a stripped program, its debug file, and a session that has only places in the program.
struct Case {
    built: Built,
    session: PathBuf,
    debug: PathBuf,
    build_id: String,
}

fn case(test: &str) -> Option<Case> {
    let built = build(test, "c++", &["-O2", "-g", "-Wl,--build-id"], &[("main.cpp", CPP)])?;
    let folder = built.folder.path().to_owned();
    for arguments in
        [&["--only-keep-debug", "program", "full.debug"][..], &["--strip-all", "program", "stripped"]]
    {
        let done = Command::new("objcopy").args(arguments).current_dir(&folder).status();
        if !done.is_ok_and(|status| status.success()) {
            println!("SKIP {test}: no objcopy");
            return None;
        }
    }
    let full = functions_of(&built.binary).expect("readable");
    let build_id = full.build_id().expect("build-id").to_string();
    let mut functions = Vec::new();
    for (id, name) in [(1, "_ZN4shop5riskyEi"), (2, "main")] {
        let found = full.functions().iter().find(|f| full.raw_name(f) == name).expect("function");
        functions.push(FunctionFact {
            id,
            name: format!("stripped+{:#x}", found.file_offset),
            module: "stripped".into(),
            offset: found.file_offset,
            ..FunctionFact::default()
        });
    }
    let caught = full.functions().iter().find(|f| full.raw_name(f) == "_ZN4shop6caughtEi").expect("caught");
    let path = folder.join("stripped").display().to_string();
    let facts = Facts {
        start_ns: 1,
        functions,
        addresses: vec![AddressFact {
            pid: 5,
            address: 0x7000 + caught.address + 9,
            module: Some(path.clone()),
            build_id: Some(build_id.clone()),
            linked: Some(caught.address + 9),
            ..AddressFact::default()
        }],
        modules: vec![ModuleFact {
            name: "stripped".into(),
            path,
            build_id: Some(build_id.clone()),
            missing: Some("no debug info".into()),
            own_locks: None,
        }],
        ..Facts::default()
    };
    let session = folder.join("a.lp");
    let meta = Meta::of_this_machine(ClockAnchor::now(1));
    let mut writer = Writer::create(&session, Overwrite::AnyFile, &meta).expect("created");
    writer.facts(&facts).expect("facts");
    writer.finish(WindowEnd { end_ns: 9, ..WindowEnd::default() }).expect("finished");
    Some(Case { debug: folder.join("full.debug"), built, session, build_id })
}

impl Case {
    fn symbolize(&self, arguments: &[&str], server: Option<&str>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
        command.arg("symbolize").arg(&self.session).args(arguments);
        command.env_remove("DEBUGINFOD_URLS").env("DEBUGINFOD_TIMEOUT", "3");
        command.env("DEBUGINFOD_CACHE_PATH", self.built.folder.path().join("cache"));
        if let Some(server) = server {
            command.env("DEBUGINFOD_URLS", server);
        }
        command.output().expect("longpole")
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.session).expect("session")
    }

    fn check_names(&self) {
        let (recording, info) = recording::read(&self.session).expect("read");
        assert!(info.whole());
        let functions: Vec<_> = recording
            .facts
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.location.as_deref().unwrap_or_default().rsplit('/').next()))
            .collect();
        assert_eq!(functions, [("shop::risky(int)", Some("main.cpp:12")), ("main", Some("main.cpp:19"))]);
        let call = &recording.facts.addresses[0];
        assert!(
            call.name.is_some() && call.location.as_deref().is_some_and(|at| at.contains("main.cpp:")),
            "{call:?}"
        );
        assert_eq!(recording.facts.modules[0].missing, None);
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn symbolize_adds_names_from_a_folder_once() {
    let Some(case) = case("symbolize_adds_names_from_a_folder_once") else { return };
    let before = case.bytes();
    let without = case.symbolize(&[], None);
    assert!(without.status.success(), "{}", text(&without));
    assert!(text(&without).contains("no debug info"), "{}", text(&without));

    let symbols = case.built.folder.path().join("symbols/.build-id").join(&case.build_id[..2]);
    std::fs::create_dir_all(&symbols).expect("folder");
    std::fs::copy(&case.debug, symbols.join(format!("{}.debug", &case.build_id[2..]))).expect("copied");
    let folder = case.built.folder.path().join("symbols").display().to_string();
    let output = case.symbolize(&["--symbol-dir", &folder], None);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("2 functions and 1 calls"), "{}", text(&output));
    case.check_names();
    let after = case.bytes();
    assert_ne!(before, after);
    let again = case.symbolize(&["--symbol-dir", &folder], None);
    assert!(text(&again).contains("nothing new"), "{}", text(&again));
    assert_eq!(case.bytes(), after, "the second time changes nothing");
}

/// Serves the answer of `answer` to each path, and counts requests.
fn serve(answer: impl Fn(&str, &mut dyn Write) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = format!("http://{}", listener.local_addr().expect("address"));
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            counted.fetch_add(1, Ordering::SeqCst);
            let mut reader = BufReader::new(stream.try_clone().expect("clone"));
            let mut first = String::new();
            let _ = reader.read_line(&mut first);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            answer(first.split(' ').nth(1).unwrap_or_default(), &mut stream);
        }
    });
    (address, count)
}

fn send(bytes: &[u8], out: &mut dyn Write) {
    let _ = write!(out, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
    let _ = out.write_all(bytes);
}

fn not_found(out: &mut dyn Write) {
    let _ = out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

#[test]
fn symbolize_takes_names_from_a_server_and_then_from_the_cache() {
    let Some(case) = case("symbolize_takes_names_from_a_server_and_then_from_the_cache") else { return };
    let (debug, wanted) = (case.debug.clone(), format!("/buildid/{}/debuginfo", case.build_id));
    let (server, count) = serve(move |path, out| match path == wanted {
        true => send(&std::fs::read(&debug).expect("debug file"), out),
        false => not_found(out),
    });
    let fresh = case.bytes();
    assert!(case.symbolize(&[], Some(&server)).status.success());
    assert_eq!(count.load(Ordering::SeqCst), 0, "nobody is asked unless --debuginfod says so");
    let output = case.symbolize(&["--debuginfod"], Some(&server));
    assert!(output.status.success(), "{}", text(&output));
    case.check_names();
    let asked = count.load(Ordering::SeqCst);
    assert!(asked >= 1);
    std::fs::write(&case.session, &fresh).expect("as it was");
    assert!(case.symbolize(&["--debuginfod"], Some(&server)).status.success());
    case.check_names();
    assert_eq!(count.load(Ordering::SeqCst), asked, "the second time it comes from the cache");
    let cached = case.built.folder.path().join("cache").join(&case.build_id).join("debuginfo");
    assert!(cached.is_file());
}

#[test]
fn symbolize_reports_a_failing_server_and_changes_nothing() {
    let Some(case) = case("symbolize_reports_a_failing_server_and_changes_nothing") else { return };
    let before = case.bytes();
    // The file is small: it has to arrive within the time limit even on a busy machine.
    let other = PathBuf::from("/bin/true");
    type Answer = Box<dyn Fn(&str, &mut dyn Write) + Send>;
    let answers: Vec<(&str, Answer, &str)> = vec![
        ("has nothing", Box::new(|_, out| not_found(out)), "no debuginfod server has the file"),
        (
            "cuts its answer short",
            Box::new(|_, out| {
                let _ = out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nELF");
            }),
            "debuginfod:",
        ),
        ("is broken", Box::new(|_, out| drop(out.write_all(b"nonsense"))), "debuginfod:"),
        (
            "never answers",
            Box::new(|_, _| std::thread::sleep(std::time::Duration::from_secs(30))),
            "debuginfod:",
        ),
        (
            "sends another program",
            Box::new(move |_, out| send(&std::fs::read(&other).expect("binary"), out)),
            "refused",
        ),
    ];
    for (what, answer, wanted) in answers {
        let (server, _) = serve(answer);
        let output = case.symbolize(&["--debuginfod"], Some(&server));
        assert!(output.status.success(), "{what}: {}", text(&output));
        assert!(text(&output).contains(wanted), "{what}: {}", text(&output));
        let (recording, _) = recording::read(&case.session).expect("read");
        assert!(recording.facts.functions.iter().all(|f| f.location.is_none()), "{what}");
        std::fs::write(&case.session, &before).expect("as it was");
        let _ = std::fs::remove_dir_all(case.built.folder.path().join("cache"));
    }
    let output = case.symbolize(&["--debuginfod"], None);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("hint: "), "{}", text(&output));
}
