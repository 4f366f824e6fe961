//! The shape of the code: the order of its parts, circles of files, numbers that a reader notices,
//! and no tracked build output.
//!
//! The numbers are warning lights, not aims: a file of 800 lines with one idea is fine, and so is a
//! type that needs its fields. An item beyond a limit is either changed or listed in
//! `exceptions.rs`. A row there that is no longer needed fails the test, so the list only shrinks.

mod built;
mod calls;
mod circles;
mod exceptions;
mod modules;
mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use circles::{Graph, circles, within};
use exceptions::{EXCEPTIONS, Number};
use modules::{Modules, Sources};
use reader::Found;

/// Files that refer to each other must be understood together. Three files may be a type, its table
/// and its errors; more are a knot.
const LARGEST_CIRCLE: usize = 3;

/// Crates in which names of files count as well as calls. In other crates the files of a folder and
/// its `mod.rs` name each other.
const UNTIED: [&str; 2] = ["hw-backend", "libibverbs"];

/// The parts of crates, from the lowest to the highest, as prefixes of paths in `src`. A part names
/// itself and those before it. Other files may name all parts.
const FLOORS: [(&str, &[&str]); 2] = [
    (
        "libibverbs",
        &[
            "base/",
            "engine.rs",
            "c/",
            "verbs/",
            "cm/",
            "process/",
            "export.rs",
        ],
    ),
    (
        "sim",
        &[
            "storage/",
            "time/",
            "memory/",
            "packet/",
            "device/",
            "descriptor/",
            "qp/",
            "node/",
            "direct/",
            "cm/",
            "fabric/",
            "runtime/",
            "verbs/",
        ],
    ),
];

/// The source files of all crates, by the folder of the crate and the path from `src`. The folder
/// of the program is empty.
fn sources() -> BTreeMap<String, Sources> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    collect(root, root, &mut files);
    assert!(files.len() > 300, "only {} files were found", files.len());
    let mut crates: BTreeMap<String, Sources> = BTreeMap::new();
    for (file, text) in files {
        let (of, path) = match file.split_once("/src/") {
            Some((of, path)) => (of, path),
            None => match file.strip_prefix("src/") {
                Some(path) => ("", path),
                None => continue,
            },
        };
        let parsed = syn::parse_file(&text).unwrap();
        let files = crates.entry(of.to_owned()).or_default();
        files.insert(path.to_owned(), parsed);
    }
    crates.retain(|of, _| root.join(of).join("Cargo.toml").exists());
    assert!(crates.len() > 10, "only {} crates were found", crates.len());
    crates
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(root, &path, files);
            }
        } else if name.ends_with(".rs") {
            let from_root = path.strip_prefix(root).unwrap().to_string_lossy();
            files.insert(from_root.into_owned(), fs::read_to_string(&path).unwrap());
        }
    }
}

/// Sources for a test.
fn made_up<const N: usize>(files: [(&str, &str); N]) -> Sources {
    let parsed = files.map(|(file, text)| (file.to_owned(), syn::parse_file(text).unwrap()));
    parsed.into()
}

/// The files that each file calls or names.
fn graph(sources: &Sources) -> Graph {
    let modules = Modules::of(sources);
    let mut graph = modules.named(sources);
    for (from, called) in calls::calls(sources, &modules) {
        graph.entry(from).or_default().extend(called);
    }
    graph
}

/// The names of higher parts, with the files that use them.
fn upward(sources: &Sources, floors: &[&str]) -> Vec<String> {
    let floor = |file: &str| floors.iter().position(|floor| file.starts_with(floor));
    let mut found = Vec::new();
    for (from, named) in Modules::of(sources).named(sources) {
        let Some(own) = floor(&from) else { continue };
        for (to, path) in named {
            if floor(&to).is_some_and(|other| other > own) {
                found.push(format!("{from} names {path} of {to}"));
            }
        }
    }
    found
}

/// The items of a crate beyond a limit, with their numbers.
fn beyond(counted: &BTreeMap<String, usize>, limit: usize) -> BTreeMap<&str, usize> {
    let beyond = counted.iter().filter(|(_, number)| **number > limit);
    beyond
        .map(|(name, number)| (name.as_str(), *number))
        .collect()
}

/// The differences between the items of a crate beyond a limit and the list of exceptions.
fn differences(number: Number, of: &str, beyond: &BTreeMap<&str, usize>) -> Vec<String> {
    let rows = EXCEPTIONS
        .iter()
        .filter(|row| (row.0, row.1) == (number, of));
    let listed: BTreeSet<&str> = rows.flat_map(|row| row.2.iter().copied()).collect();
    let missing = beyond.iter().filter(|(item, _)| !listed.contains(**item));
    let missing = missing
        .map(|(item, found)| format!("(Number::{number:?}, {of:?}, {item:?}) is missing: {found}"));
    let spare = listed.iter().filter(|item| !beyond.contains_key(**item));
    let spare =
        spare.map(|item| format!("(Number::{number:?}, {of:?}, {item:?}) is to be removed"));
    missing.chain(spare).collect()
}

/// Counts in each crate.
fn check(number: Number, limit: usize, of: impl Fn(&Found) -> &BTreeMap<String, usize>) {
    static COUNTED: OnceLock<BTreeMap<String, Found>> = OnceLock::new();
    let counted = COUNTED.get_or_init(|| {
        let crates = sources().into_iter();
        crates
            .map(|(name, sources)| (name, reader::count(&sources)))
            .collect()
    });
    let wrong = counted
        .iter()
        .flat_map(|(name, counted)| differences(number, name, &beyond(of(counted), limit)));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "limit {limit}:\n{}", wrong.join("\n"));
}

/// The folder that has all files of a circle.
fn folder<'f>(circle: &[&'f str]) -> &'f str {
    let [first, others @ ..] = circle else {
        return "";
    };
    let folders = first.match_indices('/').map(|(at, _)| &first[..at]);
    let has_all = |folder: &&str| {
        let mut rest = others.iter().map(|file| file.strip_prefix(*folder));
        rest.all(|rest| rest.is_some_and(|rest| rest.starts_with('/')))
    };
    folders.rev().find(has_all).unwrap_or("")
}

#[test]
fn no_part_of_a_crate_names_a_higher_one() {
    let sources = sources();
    for (name, floors) in FLOORS {
        let sources = &sources[name];
        for floor in floors {
            let is_of = |file: &&String| file.starts_with(floor);
            assert!(sources.keys().any(|file| is_of(&file)), "{name} {floor}");
        }
        let found = upward(sources, floors);
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
    }
}

#[test]
fn a_name_of_a_higher_part_is_found_however_it_is_written() {
    let sources = made_up([
        ("lib.rs", "pub use high::Thing as Other;"),
        ("low/mod.rs", "mod a; mod b; mod c; mod d;"),
        ("low/a.rs", "use crate::high::Thing;"),
        ("low/b.rs", "use crate::Other;"),
        ("low/c.rs", "fn c() { super::super::high::f() }"),
        (
            "low/d.rs",
            "use super::a; #[cfg(test)] mod tests { use crate::high::f; }",
        ),
        (
            "high.rs",
            "pub struct Thing; pub fn f() { crate::low::a::a() }",
        ),
    ]);
    let found = upward(&sources, &["low/", "high.rs"]);
    assert_eq!(
        found,
        [
            "low/a.rs names crate::high::Thing of high.rs",
            "low/b.rs names crate::Other of high.rs",
            "low/c.rs names super::super::high::f of high.rs",
        ]
    );
}

#[test]
fn files_refer_to_each_other_in_small_circles_only() {
    let (mut wrong, mut lines) = (Vec::new(), Vec::new());
    for (name, sources) in sources() {
        let graph = if UNTIED.contains(&&*name) {
            graph(&sources)
        } else {
            calls::calls(&sources, &Modules::of(&sources))
        };
        let large = circles(&graph).into_iter();
        let large: Vec<_> = large.filter(|of| of.len() > LARGEST_CIRCLE).collect();
        let beyond = large.iter().map(|circle| (folder(circle), circle.len()));
        wrong.extend(differences(Number::Circle, &name, &beyond.collect()));
        lines.extend(large.iter().flat_map(|circle| within(&graph, circle)));
    }
    let (wrong, lines) = (wrong.join("\n"), lines.join("\n"));
    assert!(
        wrong.is_empty(),
        "more than {LARGEST_CIRCLE}:\n{wrong}\n{lines}"
    );
}

/// Without calls between files, the reader of calls has understood nothing.
#[test]
fn calls_that_there_are_in_the_simulator_are_found() {
    let sources = &sources()["sim"];
    let calls = calls::calls(sources, &Modules::of(sources));
    let files = sources.len();
    let pairs: usize = calls.values().map(BTreeMap::len).sum();
    assert!(pairs > 2 * files, "{pairs} pairs of {files} files");
}

#[test]
fn a_circle_of_calls_is_found_however_it_is_made() {
    let sources = made_up([
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e; mod f;"),
        (
            "a.rs",
            "struct A { b: B } impl A { fn a(&self) { self.b.b(&C) } }",
        ),
        ("b.rs", "struct B; impl B { fn b(&self, c: &C) { c.c() } }"),
        (
            "c.rs",
            "use super::d; struct C; impl C { fn c(&self) { d::d() } }",
        ),
        (
            "d.rs",
            "fn d() { let found = find(); found.a() } fn find() -> Option<A> { None }",
        ),
        ("e.rs", "use crate::d::d; fn e() { d(); f() } fn f() {}"),
        ("f.rs", "fn f() { other::e() }"),
    ]);
    let calls = calls::calls(&sources, &Modules::of(&sources));
    let found = circles(&calls);
    assert_eq!(found, [vec!["a.rs", "b.rs", "c.rs", "d.rs"]].into());
    assert_eq!(within(&calls, &["a.rs", "b.rs"]), ["a.rs -> b.rs: b"]);
    assert_eq!(calls["e.rs"].keys().collect::<Vec<_>>(), ["d.rs"]);
    assert!(calls["f.rs"].is_empty());
}

#[test]
fn a_circle_of_names_is_found_however_it_is_made() {
    let sources = made_up([
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::{self, B};"),
        ("b.rs", "pub use super::c::B; struct Own;"),
        ("c.rs", "struct B(crate::d::D);"),
        ("d.rs", "use crate::{a, b::Own};"),
        ("e.rs", "use crate::a; use std::fs;"),
    ]);
    let graph = graph(&sources);
    assert_eq!(
        circles(&graph),
        [vec!["a.rs", "b.rs", "c.rs", "d.rs"]].into()
    );
}

/// A type with more fields than this usually has parts that are types themselves. Types that only
/// hold settings are exceptions.
#[test]
fn no_type_has_more_fields_than_one_remembers() {
    check(Number::Fields, 20, |found| &found.fields);
}

/// A reader looks for a function of a type among its methods. Files above the type may have some,
/// which use more than the type knows. With many of them the type has more than one job.
#[test]
fn few_functions_of_a_type_live_outside_of_it() {
    check(Number::Outside, 8, |found| &found.outside);
}

/// The limit of clippy, `too_many_arguments`.
#[test]
fn no_function_has_more_arguments_than_one_can_tell_apart() {
    check(Number::Arguments, 7, |found| &found.arguments);
}

/// The parts of a tuple have no names at the call, unlike the fields of a type.
#[test]
fn arguments_are_no_tuples() {
    check(Number::Tuples, 0, |found| &found.tuples);
}

#[test]
fn an_exception_that_is_missing_or_not_needed_is_found() {
    let (number, of, names) = EXCEPTIONS[0];
    let mut beyond: BTreeMap<&str, usize> = names.iter().map(|name| (*name, 100)).collect();
    assert!(differences(number, of, &beyond).is_empty());
    beyond.remove(names[0]);
    beyond.insert("New", 7);
    let found = differences(number, of, &beyond);
    assert!(found[0].ends_with("\"New\") is missing: 7"), "{found:?}");
    assert!(found[1].ends_with("is to be removed"), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn the_folder_of_a_circle_has_all_its_files() {
    assert_eq!(folder(&["a/b/c.rs", "a/b/d/e.rs"]), "a/b");
    assert_eq!(folder(&["a/b.rs", "ab/c.rs"]), "");
}

#[test]
fn what_a_reader_meets_is_counted() {
    let sources = made_up([(
        "a.rs",
        "struct A { a: u8, b: u8 }
        #[repr(C)] struct Raw { a: u8, b: u8, c: u8 }
        struct Held<T>(T, T, T);
        impl A {
            fn method(&self, (x, y): (u8, u8), z: &(u8, u8)) {}
        }
        impl Trait for A { fn given(&self, a: (u8, u8)) {} }
        impl Held<A> { fn held(&self) {} }
        fn first(a: &A) {}
        fn second(a: &mut A, b: u8, c: u8) {}
        fn held(a: &Held<A>) {}
        fn other(a: &Held<u8>) {}
        fn converted(a: A) -> A { a }
        fn without(a: u8, unit: ()) {}
        extern \"C\" fn of_c(a: u8, b: u8, c: u8, d: u8) {}
        #[cfg(test)] mod tests { fn of_tests(a: (u8, u8), b: u8) {} }",
    )]);
    let found = reader::count(&sources);
    let map = |all: &[(&str, usize)]| -> BTreeMap<String, usize> {
        let all = all
            .iter()
            .map(|(name, number)| ((*name).to_owned(), *number));
        all.collect()
    };
    assert_eq!(found.fields, map(&[("A", 2), ("Held", 3)]));
    assert_eq!(found.outside, map(&[("A", 2), ("Held<A>", 1)]));
    assert_eq!(found.tuples, map(&[("A::method", 2)]));
    assert_eq!(found.arguments["second"], 3);
    assert_eq!(found.arguments["A::method"], 3);
    assert!(!found.arguments.contains_key("of_c"));
    assert_eq!(
        beyond(&found.arguments, 2),
        [("A::method", 3), ("second", 3)].into()
    );
}
