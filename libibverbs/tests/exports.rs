//! The drop-in has the whole ABI of the newest rdma-core, whose names are in
//! `verbs-abi/rdma-core/facts.txt`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::collections::BTreeSet;
use std::fs;

use object::elf::STB_GLOBAL;
use object::read::elf::{ElfFile64, Sym};

const FACTS: &str = include_str!("../../verbs-abi/rdma-core/facts.txt");

/// What a library exports, as linkers write it: `name@@version` where programs are linked with this
/// version, and `name@version` where only older programs ask for it.
fn exports(file: &[u8]) -> BTreeSet<String> {
    let file = ElfFile64::<object::Endianness>::parse(file).unwrap();
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let symbols = file.elf_dynamic_symbol_table();
    let versions = sections.versions(endian, file.data()).unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut found = BTreeSet::new();
    for (index, symbol) in symbols.enumerate() {
        let is_defined = !symbol.is_undefined(endian) && symbol.st_bind() == STB_GLOBAL;
        let version = versions.version_index(endian, index);
        if let (true, Some(of)) = (is_defined, versions.version(version.into()).unwrap()) {
            let name = text(symbols.symbol_name(endian, symbol).unwrap());
            let at = if version.is_hidden() { "@" } else { "@@" };
            found.insert(format!("{name}{at}{}", text(of.name())));
        }
    }
    found
}

/// The names that the drop-in is to have: all but those of the ABI of libibverbs 1.0 (2006), which
/// programs of today do not ask for.
fn expected() -> BTreeSet<String> {
    let is_old = |name: &&str| name.ends_with("@IBVERBS_1.0") && !name.contains("@@");
    FACTS
        .lines()
        .filter_map(|line| line.strip_prefix("export "))
        .filter_map(|export| Some(export.split_once(' ')?.1))
        .filter(|name| !is_old(name))
        .map(str::to_owned)
        .collect()
}

/// Versions of the private names that earlier releases had, for drivers' libraries that were linked
/// with one of them.
const EARLIER: [&str; 3] = [
    "@IBVERBS_PRIVATE_34",
    "@IBVERBS_PRIVATE_57",
    "@IBVERBS_PRIVATE_59",
];

/// The version of what `verbsim.h` looks for.
const OWN: &str = "@@VERBSIM_1.0";

/// The names that `verbsim.h` or the Python module looks for: texts that begin with `verbsim_`.
fn looked_for(source: &str) -> BTreeSet<&str> {
    let texts = source.split('"');
    texts
        .filter(|text| text.strip_prefix("verbsim_").is_some_and(is_name))
        .collect()
}

fn is_name(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[test]
#[ignore = "VERBSIM_LIBRARY names the drop-in"]
fn the_drop_in_exports_what_its_header_and_its_python_module_look_for() {
    let library = std::env::var_os("VERBSIM_LIBRARY").expect("VERBSIM_LIBRARY names the drop-in");
    let ours = exports(&fs::read(library).unwrap());
    let ours = ours.iter().filter_map(|name| name.strip_suffix(OWN));
    let ours: BTreeSet<_> = ours.collect();
    let header = include_str!("../../include/verbsim.h");
    // Python counts by itself.
    let module = include_str!("../../python/verbsim/__init__.py");
    let mut in_python = looked_for(module);
    in_python.insert("verbsim_count_findings");
    assert_eq!((looked_for(header), in_python), (ours.clone(), ours));
}

#[test]
#[ignore = "VERBSIM_LIBRARY names the drop-in"]
fn the_drop_in_exports_what_the_newest_release_exports() {
    let library = std::env::var_os("VERBSIM_LIBRARY").expect("VERBSIM_LIBRARY names the drop-in");
    let ours = exports(&fs::read(library).unwrap());
    let theirs = expected();
    assert!(theirs.len() > 250, "{} names were read", theirs.len());
    let missing: Vec<_> = theirs.difference(&ours).collect();
    let is_expected =
        |name: &str| EARLIER.iter().any(|of| name.ends_with(of)) || name.ends_with(OWN);
    let more: Vec<_> = ours
        .difference(&theirs)
        .filter(|name| !is_expected(name))
        .collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing: {missing:#?}, more: {more:#?}"
    );
}
