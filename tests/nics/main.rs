//! NICs that we do not have: the suite judges devices of other drivers, with other limits and
//! capabilities, around a simulator that keeps the rules. Nothing fails, whatever a device lacks.

#[path = "../common/interpose.rs"]
mod interpose;
mod nic;
#[cfg(target_os = "linux")]
mod shim;
mod table;

use std::ops::ControlFlow;

use verbs_api::{Capabilities, GidEntry, GidType, Verbs};
use verbs_scenarios::asked::{ASKED_FOR, ask};
use verbs_scenarios::report::{BackendInfo, Entry, Outcome};
use verbs_scenarios::{Backend, Fixture, Place, Scenario};
use verbs_sim::Mode;

use nic::Nic;
use table::Table;

/// A NIC as a device of this machine, but in virtual time: none of its waits is long.
struct OfMachine {
    table: &'static Table,
}

impl Backend for OfMachine {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            version: String::new(),
            backend: "hw".to_owned(),
            device: "sim0".to_owned(),
            driver: self.table.driver.clone(),
            kernel: None,
            rdma_core: None,
            link_layer: "ethernet".to_owned(),
            profile: self.table.driver.clone(),
            seed: 0,
        }
    }

    fn start(&self, threads: bool) -> verbs_api::Result<Fixture> {
        let mode = if threads { Mode::Inline } else { Mode::Stepped };
        Ok(verbsim::backend::checked(Box::new(Nic::new(
            self.table, mode,
        ))))
    }

    fn place(&self) -> Place {
        let sgid_index = first_gid(self.table).expect("the NIC can be asked");
        Place {
            sgid_index: sgid_index.expect("a GID of RoCE version 2"),
            ..Place::default()
        }
    }

    fn replay(&self, scenario: &Scenario) -> String {
        format!("NIC={} SCENARIO={}", self.table.driver, scenario.id)
    }
}

/// The index of the first GID of RoCE version 2.
fn first_gid(table: &'static Table) -> verbs_api::Result<Option<u8>> {
    let nic = Nic::new(table, Mode::Stepped);
    let context = nic.open_device("sim0")?;
    let mut entries = vec![GidEntry::default(); 8];
    let count = nic.query_gid_table(context, &mut entries)?;
    let mut set = entries[..count].iter();
    let first = set.find(|entry| entry.gid_type == GidType::RoceV2);
    Ok(first.and_then(|entry| u8::try_from(entry.gid_index).ok()))
}

/// How a scenario ended that did not pass and was not skipped.
fn in_words(entry: &Entry) -> String {
    let failure = entry.failure.as_ref();
    let failure = failure.map(|of| format!("expected {}, seen {}", of.expected, of.seen));
    let failure = failure.unwrap_or_default();
    format!("{}: {:?}: {failure}", entry.id, entry.outcome)
}

/// Asks a NIC, and runs the suite on it. It lacks what its table says, and scenarios pass, or are
/// skipped with a reason.
fn judge(text: &str) {
    let table = Table::read(text).unwrap_or_else(|error| panic!("{error}"));
    let table: &Table = Box::leak(Box::new(table));
    let asked = ask(&Nic::new(table, Mode::Stepped), "sim0", 1, &|_| false).unwrap();
    // Without RC the rest of what needs it is not asked.
    let lacks = table.lacks() & ASKED_FOR;
    let expected = if lacks.contains(Capabilities::RC) {
        lacks & asked.lacks
    } else {
        lacks
    };
    assert_eq!(asked.lacks & ASKED_FOR, expected, "{}", table.driver);
    assert!(
        !asked.has.intersects(expected),
        "{}: {asked:?}",
        table.driver
    );
    let scenarios: Vec<_> = verbs_scenarios::all().collect();
    let backend = OfMachine { table };
    let run = verbs_scenarios::run(&backend, &scenarios, |_| ControlFlow::Continue(())).unwrap();
    let is_good = |entry: &&Entry| match entry.outcome {
        Outcome::Passed => true,
        Outcome::Skipped => entry.reason.is_some(),
        _ => false,
    };
    let bad = run.scenarios.iter().filter(|entry| !is_good(entry));
    let bad: Vec<_> = bad.map(in_words).collect();
    assert!(
        bad.is_empty(),
        "{}: {:?}:\n{}",
        table.driver,
        run.summary,
        bad.join("\n")
    );
    assert!(
        run.summary.passed > 0,
        "{}: {:?}",
        table.driver,
        run.summary
    );
}

macro_rules! nics {
    ($($folder:ident: $($name:ident),+;)+) => { $(
        mod $folder {
            $( #[test]
            fn $name() {
                const TEXT: &str =
                    include_str!(concat!(stringify!($folder), "/", stringify!($name), ".toml"));
                super::judge(TEXT);
            } )+
        }
    )+ };
}

nics! {
    drivers: bnxt_re, efa, erdma, hns, irdma, mlx4;
    others: adversarial, first_gid_empty, huge, no_inline, noisy, rounded, small, tiny;
}

/// A table has no row that nothing reads, and none without a source.
#[test]
fn wrong_tables_are_refused() {
    let row = |what: &str, verb: &str, errno: &str, at: &str| {
        format!(
            "driver = \"x\"\nlacks = \
             [{{ what = \"{what}\", verb = \"{verb}\", errno = \"{errno}\", at = \"{at}\" }}]"
        )
    };
    let right = row("uc", "ibv_create_qp", "EINVAL", "a.c:1");
    assert!(Table::read(&right).is_ok(), "{right}");
    for (text, expected) in [
        (
            row("uq", "ibv_create_qp", "EINVAL", "a.c:1"),
            "nothing is called uq",
        ),
        (
            row("uc", "ibv_make_qp", "EINVAL", "a.c:1"),
            "no verb is called ibv_make_qp",
        ),
        (
            row("uc", "ibv_create_qp", "EODD", "a.c:1"),
            "no errno is called EODD",
        ),
        (
            row("uc", "ibv_create_qp", "EINVAL", ""),
            "uc is from nowhere",
        ),
        (
            "driver = \"x\"\ncolour = 1".to_owned(),
            "unknown field `colour`",
        ),
        ("driver = \"x\"\n[knobs]\nodd = \"1\"".to_owned(), "odd"),
    ] {
        let refused = Table::read(&text).unwrap_err();
        assert!(refused.contains(expected), "{text}: {refused}");
    }
}
