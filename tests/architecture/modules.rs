//! The modules of a crate, and the file of each path.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// Sources of a crate, by their paths from its `src`.
pub(crate) type Sources = BTreeMap<String, syn::File>;

/// A module, by its path from the root of the crate.
type Module = Vec<String>;

/// The modules of a crate.
pub(crate) struct Modules {
    files: BTreeMap<Module, String>,
    /// What `use` brings into a module: a name, and the path that it stands for.
    used: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

/// The module of a file.
fn module_of(file: &str) -> Module {
    let mut path: Module = file
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(
        path.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        path.pop();
    }
    path
}

/// The names that a `use` brings, with their paths. All names of a module (`*`) are one, `*`.
fn names(tree: &UseTree, before: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let with = |name: &syn::Ident| {
        let mut path = before.to_vec();
        path.push(name.to_string());
        path
    };
    match tree {
        UseTree::Path(path) => names(&path.tree, &with(&path.ident), found),
        UseTree::Name(name) if name.ident == "self" => {
            let last = before.last().cloned().unwrap_or_default();
            found.push((last, before.to_vec()));
        }
        UseTree::Name(name) => found.push((name.ident.to_string(), with(&name.ident))),
        UseTree::Rename(name) => found.push((name.rename.to_string(), with(&name.ident))),
        UseTree::Glob(_) => found.push(("*".to_owned(), before.to_vec())),
        UseTree::Group(group) => {
            for tree in &group.items {
                names(tree, before, found);
            }
        }
    }
}

/// A test sees everything, so its paths do not count.
pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    };
    attributes.iter().any(is_test)
}

impl Modules {
    pub(crate) fn of(sources: &Sources) -> Self {
        let files = sources.keys().map(|file| (module_of(file), file.clone()));
        let mut modules = Self {
            files: files.collect(),
            used: BTreeMap::new(),
        };
        for (file, parsed) in sources {
            let mut found = Vec::new();
            for item in &parsed.items {
                if let Item::Use(item) = item
                    && !is_test(&item.attrs)
                {
                    names(&item.tree, &[], &mut found);
                }
            }
            modules
                .used
                .insert(module_of(file), found.into_iter().collect());
        }
        modules
    }

    /// The file that defines what a path in a file names, and its name there. `None` for what is of
    /// another crate.
    pub(crate) fn resolve(&self, file: &str, path: &[String]) -> Option<(&str, Vec<String>)> {
        self.resolve_in(&module_of(file), path, 0)
    }

    fn resolve_in(
        &self,
        module: &[String],
        path: &[String],
        depth: usize,
    ) -> Option<(&str, Vec<String>)> {
        const DEEPEST: usize = 8;
        if depth > DEEPEST {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => return self.walk(&[], rest, depth),
            "self" => return self.walk(module, rest, depth),
            "super" => {
                let (_, parent) = module.split_last()?;
                // `super::super` goes on from there.
                if rest.first().is_some_and(|next| next == "super") {
                    return self.resolve_in(parent, rest, depth);
                }
                return self.walk(parent, rest, depth);
            }
            _ => {}
        }
        let used = self.used.get(module)?.get(first);
        let mut child = module.to_vec();
        child.push(first.clone());
        match used {
            // `use a::b::{self}` names a child of its own, too.
            Some(used) if used != path => {
                let mut whole = used.clone();
                whole.extend_from_slice(rest);
                self.resolve_in(module, &whole, depth + 1)
            }
            _ if self.files.contains_key(&child) => self.walk(module, path, depth),
            _ => None,
        }
    }

    /// Goes down from a module as far as the path names modules, and follows what these `use`.
    fn walk(
        &self,
        module: &[String],
        path: &[String],
        depth: usize,
    ) -> Option<(&str, Vec<String>)> {
        let mut at = module.to_vec();
        let mut rest = path;
        while let Some((next, after)) = rest.split_first() {
            let mut child = at.clone();
            child.push(next.clone());
            if !self.files.contains_key(&child) {
                break;
            }
            (at, rest) = (child, after);
        }
        if let Some(next) = rest.first()
            && let Some(used) = self.used.get(&at).and_then(|used| used.get(next))
        {
            let mut whole = used.clone();
            whole.extend_from_slice(&rest[1..]);
            if let Some(found) = self.resolve_in(&at, &whole, depth + 1) {
                return Some(found);
            }
        }
        Some((self.files.get(&at)?, rest.to_vec()))
    }

    /// The files that each file names, in `use` and in paths, outside of tests.
    pub(crate) fn named(&self, sources: &Sources) -> BTreeMap<String, BTreeMap<String, String>> {
        let of = |(file, parsed): (&String, &syn::File)| {
            let mut paths = Paths::default();
            paths.visit_file(parsed);
            let found = paths.0.iter().filter_map(|path| {
                let (to, _) = self.resolve(file, path)?;
                (to != file).then(|| (to.to_owned(), path.join("::")))
            });
            (file.clone(), found.collect())
        };
        sources.iter().map(of).collect()
    }
}

/// Paths of a file that may name a module: those of `use`, and others of two and more names.
#[derive(Default)]
struct Paths(BTreeSet<Vec<String>>);

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes: &[syn::Attribute] = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => &[],
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let mut found = Vec::new();
        names(&item.tree, &[], &mut found);
        self.0.extend(found.into_iter().map(|(_, path)| path));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 {
            let names = path
                .segments
                .iter()
                .map(|segment| segment.ident.to_string());
            self.0.insert(names.collect());
        }
        visit::visit_path(self, path);
    }
}
