//! The shape of the code: who calls whom, how long files are, how much one type does, and that
//! nothing built is kept.

mod built;
mod calls;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use calls::Calls;
use syn::{ImplItem, Item};

/// Every source file of the workspace, by its path from the root.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    collect(root, root, &mut files);
    assert!(files.len() > 300, "only {} files were found", files.len());
    files
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

#[test]
fn no_file_is_longer_than_one_reads() {
    const MOST: usize = 700;
    let lengths = sources().into_iter();
    let lengths = lengths.map(|(file, text)| (file, text.lines().count()));
    let long: Vec<_> = lengths.filter(|(_, lines)| *lines > MOST).collect();
    assert!(long.is_empty(), "more than {MOST} lines: {long:?}");
}

/// Methods of a trait are the trait's choice, and are not counted.
#[test]
fn no_type_has_more_methods_than_one_remembers() {
    const MOST: usize = 60;
    let mut methods: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (file, text) in sources() {
        // Sources of a package are one; each test is a crate of its own.
        let of = file.find("src/").map_or(&*file, |at| &file[..at]);
        for item in syn::parse_file(&text).unwrap().items {
            if let Item::Impl(item) = item
                && item.trait_.is_none()
                && let Some(name) = calls::type_name(&item.self_ty)
            {
                let own = item.items.iter();
                let count = own.filter(|item| matches!(item, ImplItem::Fn(_))).count();
                *methods.entry((of.to_owned(), name)).or_default() += count;
            }
        }
    }
    assert!(methods.len() > 300, "{} types were found", methods.len());
    methods.retain(|_, count| *count > MOST);
    assert!(methods.is_empty(), "more than {MOST} methods: {methods:?}");
}

/// The folders of the simulator that stand on each other, from the bottom up.
const FLOORS: [&str; 6] = ["device", "qp", "node", "fabric", "runtime", "verbs"];

#[test]
fn no_floor_of_the_simulator_names_a_higher_one() {
    for (at, floor) in FLOORS[..3].iter().enumerate() {
        let higher = FLOORS[at + 1..].iter().chain(&["direct", "network"]);
        let higher: Vec<_> = higher.map(|floor| format!("crate::{floor}::")).collect();
        let folder = format!("sim/src/{floor}/");
        let files = sources().into_iter();
        let files: Vec<_> = files
            .filter(|(file, _)| file.starts_with(&folder))
            .collect();
        assert!(files.len() > 10, "{folder} has {} files", files.len());
        for (file, text) in files {
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                let named = higher.iter().find(|name| line.contains(&***name));
                assert_eq!(named, None, "{file}: {line}");
            }
        }
    }
}

#[test]
fn a_circle_of_calls_is_found_however_it_is_made() {
    let files = [
        (
            "a.rs",
            "struct A { b: B } impl A { fn a(&self) { self.b.b(&C) } }",
        ),
        ("b.rs", "struct B; impl B { fn b(&self, c: &C) { c.c() } }"),
        ("c.rs", "struct C; impl C { fn c(&self) { d() } }"),
        (
            "d.rs",
            "fn d() { let found = find(); found.a() } fn find() -> Option<A> { None }",
        ),
        ("e.rs", "fn e() { d() }"),
    ];
    let sources = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
    let calls = Calls::of(&sources.into_iter().collect());
    let circles = calls.circles();
    assert_eq!(circles, [vec!["a.rs", "b.rs", "c.rs", "d.rs"]].into());
    assert_eq!(calls.within(&["a.rs", "b.rs"]), [r#"a.rs -> b.rs: {"b"}"#]);
}

#[test]
fn files_of_the_simulator_call_each_other_in_small_circles_only() {
    const MOST: usize = 3;
    let sources = sources().into_iter();
    let of_simulator = sources.filter(|(file, _)| file.starts_with("sim/src/"));
    let calls = Calls::of(&of_simulator.collect());
    // Calls that there are in the code: without them nothing was understood.
    for (from, to) in [
        ("node/door.rs", "qp/receive.rs"),
        ("qp/receive.rs", "qp/responder.rs"),
        ("qp/responder.rs", "device/access.rs"),
        ("device/deliver.rs", "device/cq.rs"),
        ("device/cq.rs", "device/contexts.rs"),
    ] {
        let (from, to) = (format!("sim/src/{from}"), format!("sim/src/{to}"));
        assert!(calls.are_made(&from, &to), "{from} calls {to}");
    }
    let circles = calls.circles();
    let large: Vec<_> = circles
        .iter()
        .filter(|circle| circle.len() > MOST)
        .collect();
    let said: Vec<_> = large
        .iter()
        .flat_map(|circle| calls.within(circle))
        .collect();
    assert!(
        large.is_empty(),
        "circles of more than {MOST}:\n{}",
        said.join("\n")
    );
}
