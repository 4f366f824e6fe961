//! `verbsim classes`: the kinds of mistakes that a diagnosis knows. `verbsim explain` says more of
//! each.

use std::fmt::Write;

use serde::Serialize;
use verbs_scenarios::rule;
use verbs_sim::{Certainty, Class};

use crate::explain::{fields_of, title};
use crate::output::{Format, Stop, json, print};
use crate::style::{Look, Style};
use crate::table::Plain;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to show them
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// As a table of Markdown
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    print(&match args.format {
        _ if args.markdown => markdown(),
        Format::Json => json(&listed(Class::ALL)),
        Format::Table => table(Style::of_stdout()),
    })
}

/// A class in JSON.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    level: &'static str,
    rule: &'static str,
    remedy: &'static str,
}

#[derive(Serialize)]
struct Explained {
    kind: &'static str,
    #[serde(flatten)]
    class: Listed,
    /// The rule as a sentence.
    says: &'static str,
    unseen: &'static str,
}

#[derive(Serialize)]
struct Group {
    kind: &'static str,
    classes: Vec<Listed>,
}

impl Listed {
    fn new(class: Class) -> Self {
        Self {
            name: class.name(),
            level: level(class),
            rule: class.rule(),
            remedy: class.remedy(),
        }
    }
}

fn listed(classes: &[Class]) -> Vec<Listed> {
    classes.iter().map(|class| Listed::new(*class)).collect()
}

/// As `--fail-on` has it.
fn level(class: Class) -> &'static str {
    match class.certainty() {
        Certainty::Certain => "error",
        _ => "warning",
    }
}

/// The names of classes and of their groups, for who has misspelt one.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let groups = UNSEEN.iter().map(|(group, _)| *group);
    Class::ALL.iter().map(|class| class.name()).chain(groups)
}

/// The text about a class, such as `VS-ARM-01`, of a group, such as `VS-ARM`, or of all classes
/// (`VS`).
pub(crate) fn explain(id: &str, format: Format, style: Style) -> Option<String> {
    let id = id.to_uppercase();
    if let Ok(class) = id.parse() {
        return Some(match format {
            Format::Json => json(&Explained {
                kind: "class",
                class: Listed::new(class),
                says: says(class),
                unseen: unseen(class),
            }),
            Format::Table => explain_class(class, style),
        });
    }
    let of_group = |class: &Class| id == "VS" || group(*class) == id;
    let classes: Vec<_> = Class::ALL.iter().copied().filter(of_group).collect();
    let kind = "classes";
    (!classes.is_empty()).then(|| match format {
        Format::Json => json(&Group {
            kind,
            classes: listed(&classes),
        }),
        Format::Table => explain_group(&classes, style),
    })
}

fn explain_class(class: Class, style: Style) -> String {
    let level = match class.certainty() {
        Certainty::Certain => "error: a definite mistake",
        _ => "warning: the program may be right",
    };
    let fields = [
        ("level", level.to_owned()),
        ("rule", format!("{} {}", class.rule(), says(class))),
        ("remedy", class.remedy().to_owned()),
        ("unseen", unseen(class).to_owned()),
    ];
    title(class.name(), "", style) + &fields_of(fields, style)
}

/// Each class in a paragraph.
fn explain_group(classes: &[Class], style: Style) -> String {
    let mut text = String::new();
    for class in classes {
        let sentence = format!("{}: {}", level(*class), class.remedy());
        text += &title(class.name(), &sentence, style);
    }
    text + "\n`verbsim explain CLASS` says which rule it breaks and what is not seen.\n"
}

fn table(style: Style) -> String {
    let mut table = Plain::narrow(style);
    for class in Class::ALL {
        let look = match class.certainty() {
            Certainty::Certain => Look::Red,
            _ => Look::Yellow,
        };
        table.row([
            style.cell(Look::Bold, class.name()),
            style.cell(look, level(*class)),
            style.cell(Look::Dim, class.rule()),
            style.cell(Look::Plain, class.remedy()),
        ]);
    }
    table.text()
}

fn markdown() -> String {
    let mut text = String::from("| class | level | rule | what to do |\n|---|---|---|---|\n");
    for class in Class::ALL {
        let (name, level) = (class.name(), level(*class));
        let (rule, remedy) = (class.rule(), class.remedy());
        writeln!(text, "| `{name}` | {level} | `{rule}` | {remedy} |").expect("a string");
    }
    text
}

/// The rule that a class breaks, as a sentence.
fn says(class: Class) -> &'static str {
    rule(class.rule()).map_or("", |rule| &rule.rule)
}

/// `VS-ARM` of `VS-ARM-01`.
fn group(class: Class) -> &'static str {
    let name = class.name();
    name.rsplit_once('-').map_or(name, |(group, _)| group)
}

fn unseen(class: Class) -> &'static str {
    let found = UNSEEN.iter().find(|(of, _)| *of == group(class));
    found.map_or("", |(_, unseen)| unseen)
}

/// What a diagnosis does not see, by the group.
const UNSEEN: &[(&str, &str)] = &[
    (
        "VS-ARM",
        "a wake-up that could be lost, and was not in this run: a model checker tries every order \
         (`verbsim help model-checking`)",
    ),
    (
        "VS-EVT",
        "what the program does with an event that it has read, unless completions stay behind it",
    ),
    (
        "VS-CQ",
        "a CQ that is large enough for this run, and not for more work at once",
    ),
    (
        "VS-SQ",
        "a queue that is long enough for this run, and not with a slower peer",
    ),
    ("VS-RQ", "messages that are longer than those of this run"),
    (
        "VS-RNR",
        "that the receiver has only just won: its peer could have sent before",
    ),
    (
        "VS-MR",
        "work that has not come to the region when it is deregistered, and never does",
    ),
    (
        "VS-KEY",
        "a wrong address or key that names memory which may be used: the work succeeds there",
    ),
    (
        "VS-ATOM",
        "a wrong address that is aligned and may be used: the atomic succeeds there",
    ),
    (
        "VS-QP",
        "why a peer in another process refuses something or does not answer; attributes that fit by chance",
    ),
    (
        "VS-OBJ",
        "that the program reads the structure of an object that is destroyed, without a call",
    ),
    (
        "VS-WAIT",
        "threads that wait for something else than RDMA; where `poll`, `select` or epoll is called",
    ),
    (
        "VS-FORK",
        "children of `clone` or `_Fork`, which a library does not notice; memory that parent and child share",
    ),
    ("VS-THREAD", "calls that did not overlap in this run"),
    (
        "VS-CM",
        "events of rdma_cm that were not acknowledged, as long as no destroy waits for that; those that were not read, if nothing failed or hung",
    ),
    ("VS-CALL", "what the program does with the error"),
    (
        "VS-LAB",
        "whether the program would have gone on correctly; this is not a mistake of its own",
    ),
    ("VS-NET", "who has sent the datagrams"),
    (
        "VS-WC",
        "what the program reads of `struct ibv_wc`: fields that are not valid are filled with garbage there",
    ),
    (
        "VS-MEM",
        "reads of a receive buffer before its completion; changes that are undone before the poll",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_says_what_is_not_seen() {
        for class in Class::ALL {
            assert_ne!(unseen(*class), "", "{class}");
            assert_ne!(says(*class), "", "{class}");
        }
        for (of, _) in UNSEEN {
            assert!(Class::ALL.iter().any(|class| group(*class) == *of), "{of}");
        }
    }
}
