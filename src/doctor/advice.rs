//! One sentence for each fact that was checked, and a remedy for each problem.

use std::path::Path;

use super::Facts;
use super::program::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Good,
    /// It does not stop the program, and explains an effect on it.
    Note,
    /// The program would not get simulated devices, or could not use them.
    Problem,
}

#[derive(Clone, Debug)]
pub(super) struct Advice {
    pub(super) level: Level,
    /// The fact that was checked.
    pub(super) about: &'static str,
    pub(super) text: String,
}

impl Advice {
    pub(super) fn line(&self) -> String {
        let level = match self.level {
            Level::Good => "ok",
            Level::Note => "note",
            Level::Problem => "problem",
        };
        format!("{level:8} {:10} {}\n", self.about, self.text)
    }
}

/// The oldest kernel release that the drop-in supports (`membarrier`, memfd with seals).
const LEAST_KERNEL: (u32, u32) = (4, 14);

/// The least number of threads of a process with a device: its own, and two of the drop-in.
const FEW_TASKS: u64 = 16;

/// What the tree of a device needs.
const SMALL_FILE: u64 = 4096;

pub(super) fn all(facts: &Facts) -> Vec<Advice> {
    let mut all = of_program(facts);
    all.extend(of_machine(facts));
    all
}

fn good(about: &'static str, text: impl Into<String>) -> Advice {
    advice(Level::Good, about, text)
}

fn note(about: &'static str, text: impl Into<String>) -> Advice {
    advice(Level::Note, about, text)
}

fn problem(about: &'static str, text: impl Into<String>) -> Advice {
    advice(Level::Problem, about, text)
}

fn advice(level: Level, about: &'static str, text: impl Into<String>) -> Advice {
    let text = text.into();
    Advice { level, about, text }
}

fn of_program(facts: &Facts) -> Vec<Advice> {
    let program = &facts.program;
    let path = program.path.display();
    if program.is_privileged {
        return vec![problem(
            "program",
            format!(
                "{path} is setuid, setgid or has capabilities, so the loader ignores LD_PRELOAD and LD_LIBRARY_PATH: run a \
                 copy without these rights"
            ),
        )];
    }
    let libraries = match &program.kind {
        Kind::Missing(why) => return vec![problem("program", format!("{path}: {why}"))],
        Kind::Foreign => {
            return vec![problem(
                "program",
                format!(
                    "{path} is not a program of 64 bits for this machine: compile it for this machine"
                ),
            )];
        }
        Kind::Static => {
            return vec![problem(
                "program",
                format!(
                    "{path} is statically linked, so no library can take the place of its own: link it dynamically"
                ),
            )];
        }
        Kind::OtherLoader(loader) => {
            return vec![problem(
                "program",
                format!(
                    "{path} is loaded by {}, and the drop-in needs glibc: compile it for glibc",
                    loader.display()
                ),
            )];
        }
        Kind::Dynamic(libraries) => libraries,
    };
    let mut all = vec![good("program", format!("{path} is dynamically linked"))];
    let is_ours = |path: &Path| path.starts_with(&facts.library);
    let own = libraries.verbs.iter().find(|path| !is_ours(path));
    all.push(match (own, libraries.verbs.first()) {
        (Some(own), _) => note(
            "library",
            format!(
                "the program brings {}; the preloaded drop-in comes first, so nothing has to be done (without \
                 --no-preload)",
                own.display()
            ),
        ),
        (None, Some(ours)) => good("library", format!("it gets {}", ours.display())),
        (None, None) => note(
            "library",
            "it is not linked with libibverbs or librdmacm: if it opens them when it runs, it gets the drop-in",
        ),
    });
    if libraries.missing.is_empty() {
        all.push(good(
            "symbols",
            "the loader finds each symbol that the program is linked with",
        ));
    } else {
        all.push(problem(
            "symbols",
            format!(
                "the loader does not find {}: the program is linked with a newer rdma-core than the drop-in knows; take a \
                 newer verbsim",
                libraries.missing.join("; ")
            ),
        ));
    }
    if libraries.has_asan {
        all.push(note(
            "sanitizer",
            "it is linked with the shared runtime of the address sanitizer: exec sets verify_asan_link_order=0 in \
             ASAN_OPTIONS, so nothing has to be done",
        ));
    }
    all
}

fn of_machine(facts: &Facts) -> Vec<Advice> {
    let machine = &facts.machine;
    let mut all = Vec::new();
    all.push(if machine.has_proc {
        good("proc", "/proc is mounted")
    } else {
        note(
            "proc",
            "/proc is not mounted, so a process whose parent closed its descriptors cannot be diagnosed, and places have no \
             names: mount it",
        )
    });
    all.push(if machine.has_loopback {
        good("network", "sockets can have addresses of the loopback interface")
    } else {
        problem(
            "network",
            "the loopback interface is down, so processes do not reach each other: `ip link set lo up`, or --fabric private \
             for programs of one process",
        )
    });
    all.push(match machine.memlock {
        Some(limit) if limit < 64 << 20 => note(
            "memlock",
            format!(
                "a process may lock {} KiB; the drop-in locks no memory, but a program may look at the limit and refuse to \
                 start: `ulimit -l unlimited`",
                limit >> 10
            ),
        ),
        _ => good("memlock", "a process may lock as much memory as it wants"),
    });
    all.push(match machine.yama {
        0 => good("yama", "a process may trace others of its user"),
        scope => note(
            "yama",
            format!(
                "kernel.yama.ptrace_scope is {scope}: `gdb -p` and copies between processes (CMA of UCX, NIXL and MPI) are \
                 refused; the drop-in needs neither: `sysctl kernel.yama.ptrace_scope=0` if the program does"
            ),
        ),
    });
    all.push(if machine.has_user_namespaces {
        good("namespaces", "a user may make namespaces")
    } else {
        note(
            "namespaces",
            "a user may not make user namespaces; exec needs none: only tests that put processes into networks of their own \
             need root here",
        )
    });
    all.push(match machine.most_tasks {
        Some(most) if most < FEW_TASKS => problem(
            "container",
            format!(
                "the container may have {most} processes and threads, and each process with devices has three: raise pids.max"
            ),
        ),
        _ => good("container", "there is room for the threads of the drop-in"),
    });
    let has_room = machine.file_size.is_none_or(|limit| limit >= SMALL_FILE);
    all.push(if machine.has_temporary && has_room {
        good("sysfs", "the files of the devices have room in the directory for temporary files")
    } else {
        note(
            "sysfs",
            "the files of the devices cannot be written, so a program that reads /sys finds none: let TMPDIR name a \
             directory that it can write, without a limit on the size of files",
        )
    });
    all.push(match release(&machine.kernel) {
        Some(release) if release < LEAST_KERNEL => problem(
            "kernel",
            format!(
                "Linux {} is too old: 4.14 or newer has membarrier",
                machine.kernel
            ),
        ),
        _ => good("kernel", format!("Linux {}", machine.kernel)),
    });
    if let Some(release) = machine.rdma_core {
        all.push(if release < 65 {
            note(
                "rdma-core",
                format!(
                    "the machine's rdma-core is {release}, and the drop-in has the names of 65: what is compiled here cannot \
                     use newer verbs unless newer headers are installed"
                ),
            )
        } else {
            good("rdma-core", format!("the machine's rdma-core is {release}"))
        });
    }
    all.push(match &machine.no_schedule {
        None => good("schedule", "`exec --schedule` can run programs"),
        Some(why) => note(
            "schedule",
            format!("only for `exec --schedule`: {why}: see `verbsim help schedule`"),
        ),
    });
    all
}

/// The first two numbers of a release.
fn release(kernel: &str) -> Option<(u32, u32)> {
    let mut numbers = kernel.split(['.', '-']).map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::machine::Machine;
    use super::super::program::{Libraries, Program};
    use super::*;

    /// A system without any obstacle.
    fn facts() -> Facts {
        let verbs = vec![PathBuf::from("/d/libibverbs.so.1")];
        Facts {
            library: PathBuf::from("/d"),
            program: Program {
                path: PathBuf::from("/bin/program"),
                kind: Kind::Dynamic(Libraries {
                    verbs,
                    ..Libraries::default()
                }),
                is_privileged: false,
            },
            machine: Machine {
                has_proc: true,
                memlock: None,
                file_size: None,
                yama: 0,
                has_loopback: true,
                has_user_namespaces: true,
                most_tasks: None,
                has_temporary: true,
                kernel: "6.1.0-18-amd64".to_owned(),
                rdma_core: Some(65),
                no_schedule: None,
            },
        }
    }

    fn with(change: impl FnOnce(&mut Facts)) -> Facts {
        let mut facts = facts();
        change(&mut facts);
        facts
    }

    fn libraries(facts: &mut Facts) -> &mut Libraries {
        match &mut facts.program.kind {
            Kind::Dynamic(libraries) => libraries,
            _ => unreachable!("it is dynamic"),
        }
    }

    #[test]
    fn nothing_is_said_of_a_machine_on_which_all_is_well() {
        let all = super::all(&facts());
        assert!(
            all.iter().all(|advice| advice.level == Level::Good),
            "{all:?}"
        );
    }

    /// The table of the guide has each set-up with its sentence.
    #[test]
    fn each_set_up_has_a_sentence_and_a_remedy() {
        let own = PathBuf::from("/opt/wheel.libs/libibverbs-1de1263b.so.1");
        let set_ups = [
            ("no `/proc`", with(|facts| facts.machine.has_proc = false)),
            ("memlock 0", with(|facts| facts.machine.memlock = Some(0))),
            (
                "a static program",
                with(|facts| facts.program.kind = Kind::Static),
            ),
            (
                "a setuid program",
                with(|facts| facts.program.is_privileged = true),
            ),
            (
                "its own libibverbs",
                with(|facts| libraries(facts).verbs = vec![own]),
            ),
            (
                "the address sanitizer",
                with(|facts| libraries(facts).has_asan = true),
            ),
            ("Yama 1", with(|facts| facts.machine.yama = 1)),
            (
                "no loopback",
                with(|facts| facts.machine.has_loopback = false),
            ),
            (
                "no user namespaces",
                with(|facts| facts.machine.has_user_namespaces = false),
            ),
            (
                "an old rdma-core",
                with(|facts| facts.machine.rdma_core = Some(44)),
            ),
            (
                "a newer rdma-core than the drop-in",
                with(|facts| {
                    libraries(facts).missing = vec!["ibv_new, version IBVERBS_1.99".to_owned()]
                }),
            ),
            (
                "a program for musl",
                with(|facts| {
                    facts.program.kind = Kind::OtherLoader("/lib/ld-musl-x86_64.so.1".into())
                }),
            ),
            (
                "few processes in a container",
                with(|facts| facts.machine.most_tasks = Some(8)),
            ),
            (
                "no room for files",
                with(|facts| facts.machine.has_temporary = false),
            ),
            (
                "an old kernel",
                with(|facts| facts.machine.kernel = "3.10.0-1160.el7.x86_64".to_owned()),
            ),
            (
                "Docker's rules for system calls",
                with(|facts| {
                    let why = "the kernel or the container refuses pidfd_getfd";
                    facts.machine.no_schedule = Some(why.to_owned());
                }),
            ),
        ];
        let mut table = String::from("| set-up | `verbsim doctor` says |\n|---|---|\n");
        for (name, facts) in set_ups {
            let all = super::all(&facts);
            let mut said = all.iter().filter(|advice| advice.level != Level::Good);
            let advice = said
                .next()
                .unwrap_or_else(|| panic!("there is no advice about {name}"));
            assert_eq!(said.count(), 0, "{name}: {all:?}");
            let line = advice.line();
            let mut words = line.trim_end().splitn(2, ' ');
            let level = words.next().unwrap_or_default();
            table += &format!("| {name} | {level}: {} |\n", advice.text);
        }
        let guide = include_str!("../../docs/drop-in.md");
        assert!(
            guide.contains(&table),
            "docs/drop-in.md wants this table:\n{table}"
        );
    }
}
