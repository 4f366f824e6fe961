//! The tables of `docs/sanitizer.md` are true: which mistakes are found, by which program that
//! makes them, and which classes there are.
//!
//! `VERBSIM_BLESS=1` writes them again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use verbs_sim::{Certainty, Class};

/// One of `tests/sanitizer/mistakes.toml`.
struct Mistake {
    what: String,
    classes: Vec<Class>,
    programs: Vec<String>,
    unseen: Option<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sanitizer(file: &str) -> PathBuf {
    root().join("tests/sanitizer").join(file)
}

fn mistakes() -> Vec<Mistake> {
    let file: toml::Table = fs::read_to_string(sanitizer("mistakes.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let of_entry = |entry: &toml::Value| {
        let texts = |key: &str| {
            let all = entry.get(key).and_then(toml::Value::as_array);
            let all = all.into_iter().flatten();
            all.map(|text| text.as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let mistake = Mistake {
            what: entry["what"].as_str().unwrap().to_owned(),
            classes: texts("classes")
                .iter()
                .map(|name| name.parse().unwrap())
                .collect(),
            programs: texts("programs"),
            unseen: entry
                .get("unseen")
                .map(|why| why.as_str().unwrap().to_owned()),
        };
        let is_seen = !mistake.classes.is_empty();
        assert_ne!(is_seen, mistake.unseen.is_some(), "{}", mistake.what);
        mistake
    };
    let all = file["mistake"].as_array().unwrap();
    all.iter().map(of_entry).collect()
}

impl Mistake {
    fn names(&self) -> Vec<&'static str> {
        self.classes.iter().map(|class| class.name()).collect()
    }

    /// The findings about a program that are of one of its classes.
    fn said(&self, program: &str) -> Vec<String> {
        let text = fs::read_to_string(sanitizer(&format!("expected/{program}.txt")));
        let text = text.unwrap_or_default();
        let is_of = |line: &&str| self.names().iter().any(|name| line.contains(name));
        text.lines()
            .filter(|line| !line.starts_with("help: "))
            .filter(is_of)
            .map(str::to_owned)
            .collect()
    }

    fn row(&self, cases: &str) -> String {
        let what = &self.what;
        if let Some(why) = &self.unseen {
            return format!("| {what} | cannot be seen here: {why} | | | | |\n");
        }
        let (certain, hint) = (Certainty::Certain, Certainty::Hint);
        let level = |of| self.classes.iter().any(|class| class.certainty() == of);
        let level = match (level(certain), level(hint)) {
            (true, true) => "certain, hint",
            (true, false) => "certain",
            _ => "hint",
        };
        let found = |program: &&String| !self.said(program).is_empty();
        let programs: Vec<_> = self.programs.iter().filter(found).collect();
        let has_place = |program: &&String| {
            let place = format!("{program}.c:");
            let said = self.said(program);
            let mut places = said.iter().filter_map(|line| line.rsplit_once('('));
            places.any(|(_, places)| places.contains(&place))
        };
        let yes = |is_so: bool| if is_so { "yes" } else { "no" };
        let in_c = listed(programs.iter().map(|program| format!("`{program}.c`")));
        let in_rust = self.names().iter().any(|name| cases.contains(name));
        let site = self.programs.iter().any(|program| has_place(&program));
        let classes = listed(self.names().iter().map(|name| format!("`{name}`")));
        let in_c = if in_c.is_empty() { "no" } else { &in_c };
        format!(
            "| {what} | {classes} | {level} | {in_c} | {} | {} |\n",
            yes(in_rust),
            yes(site)
        )
    }
}

fn listed(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}

fn table() -> String {
    let cases = ["cases", "events"].map(|name| {
        let file = format!("tests/diagnosis/{name}.rs");
        fs::read_to_string(root().join(file)).unwrap()
    });
    let cases = cases.concat();
    let rows = mistakes()
        .into_iter()
        .map(|mistake| mistake.row(&cases))
        .collect::<String>();
    format!(
        "| mistake: a program ... | class | level | found in C | found in Rust | place |\n|---|---|---|---|---|---|\n{rows}"
    )
}

/// The text of the page between two comments, which must be this one.
fn assert_has(made_by: &str, expected: &str) {
    let path = root().join("docs/sanitizer.md");
    let page = fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- made by {made_by} -->\n");
    let (before, rest) = page.split_once(&begin).unwrap();
    let (seen, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("VERBSIM_BLESS").is_some() {
        let page = format!("{before}{begin}{expected}<!-- end -->{after}");
        fs::write(&path, page).unwrap();
    } else {
        assert_eq!(
            seen, expected,
            "docs/sanitizer.md is not as {made_by} has it: VERBSIM_BLESS=1 writes it again"
        );
    }
}

/// Both in one test, since both may write the page.
#[test]
fn the_tables_of_the_page_are_true() {
    assert_has("tests/mistakes.rs", &table());
    let classes = Command::new(env!("CARGO_BIN_EXE_verbsim"))
        .args(["classes", "--markdown"])
        .output()
        .unwrap();
    let classes = String::from_utf8(classes.stdout).unwrap();
    assert_has("verbsim classes --markdown", &classes);
}

#[test]
fn each_program_that_makes_a_mistake_is_in_the_table() {
    let files = fs::read_dir(sanitizer(".")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let programs: BTreeSet<_> = names
        .filter_map(|name| name.strip_suffix(".c").map(str::to_owned))
        .filter(|name| !name.starts_with("right_"))
        .collect();
    let all = mistakes();
    let named: BTreeSet<_> = all
        .iter()
        .flat_map(|mistake| mistake.programs.iter().cloned())
        .collect();
    assert_eq!(
        named, programs,
        "left: in mistakes.toml, right: in tests/sanitizer"
    );
}
