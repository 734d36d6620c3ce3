//! USDT probes of a compiled program, whole and damaged.

use super::sources::{Built, build};
use std::path::Path;
use symbols::{Choice, Selection, choose, functions_of, usdt_probes};

const ORDERS: &str = "usdt:shop:order__start,order__done|order__failed";
const PAGES: &str = "usdt:shop:page__start,page__done";

/// The workload of the live tests, with its header in it.
fn program(test: &str) -> Option<Built> {
    let header = include_str!("../../tests/workloads/common.h");
    let text = include_str!("../../tests/workloads/usdt.c").replace("#include \"common.h\"", header);
    build(test, "cc", &["-O2", "-pthread", "-w"], &[("usdt.c", &text)])
}

fn chosen(path: &Path, include: &[&str]) -> Option<Choice> {
    let include = include.iter().map(|name| (*name).to_owned()).collect();
    Some(choose(&functions_of(path).ok()?, &Selection { include, first_id: 5, ..Selection::default() }))
}

#[test]
fn a_pair_has_the_places_and_counters_of_its_probes_beside_functions() {
    let Some(built) = program("a_pair_has_the_places_and_counters_of_its_probes_beside_functions") else {
        return;
    };
    let bytes = std::fs::read(&built.binary).expect("binary");
    let choice =
        chosen(&built.binary, &[ORDERS, "render", PAGES, "usdt:shop:page__strt,x"]).expect("a program");
    let names: Vec<(u32, &str)> =
        choice.chosen.iter().map(|chosen| (chosen.fact.id, chosen.fact.name.as_str())).collect();
    assert_eq!(names, [(5, ORDERS), (6, PAGES), (7, "render")]);
    let [orders, pages, render] = &choice.chosen[..] else { panic!("{choice:?}") };
    assert_eq!((orders.places().count(), orders.exit_offsets.len(), pages.places().count()), (4, 2, 2));
    let counted = |pair: &symbols::ChosenFunction| {
        let places = pair.pair.as_ref().expect("a pair");
        pair.places().filter(|place| places.semaphore(*place) != 0).count()
    };
    assert_eq!((counted(orders), counted(pages), render.pair.is_none()), (4, 0, true));
    assert!(orders.places().chain(pages.places()).all(|place| bytes[place as usize] == 0x90));
    let [missing] = &choice.missing[..] else { panic!("{:?}", choice.missing) };
    assert!(missing.has_provider && missing.why.contains("the nearest are page__start"), "{missing:?}");
    let only = chosen(&built.binary, &[PAGES]).expect("a program");
    assert_eq!(only.sentence(), format!("{PAGES} at 2 places"));
}

/// Each byte of the notes in turn, and of the section that gives their base.
#[test]
fn damaged_notes_give_places_of_nops_or_none() {
    let Some(built) = program("damaged_notes_give_places_of_nops_or_none") else { return };
    let good = std::fs::read(&built.binary).expect("binary");
    let module = functions_of(&built.binary).expect("a program");
    let section = module.elf().section(b".note.stapsdt").expect("notes").clone();
    let path = built.folder.path().join("damaged");
    let mut found = 0;
    for at in section.offset..section.offset + section.size {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = good.clone();
            bytes[at as usize] = value;
            std::fs::write(&path, &bytes).expect("written");
            let module = functions_of(&path).expect("a program");
            assert!(usdt_probes(module.elf()).expect("notes").len() <= 6);
            let choice = chosen(&path, &[ORDERS, PAGES]).expect("a program");
            found += choice.chosen.len();
            for place in choice.chosen.iter().flat_map(|chosen| chosen.places()) {
                assert!(matches!(bytes[place as usize], 0x90 | 0x0f | 0x66), "{at}: {place:#x}");
            }
        }
    }
    assert!(found > section.size as usize, "most damage concerns one probe");
}
