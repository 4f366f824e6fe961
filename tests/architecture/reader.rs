//! What a reader of a crate meets: how many fields a type has, how many of its functions live outside
//! of it, how many arguments functions have, and which arguments are tuples.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{FnArg, Item, Pat, ReturnType, Signature, Type};

use super::modules::{Sources, is_test};

/// What was counted in the sources of a crate.
#[derive(Default)]
pub(crate) struct Found {
    /// Fields, by type.
    pub(crate) fields: BTreeMap<String, usize>,
    /// Free functions whose first argument is of a type that has methods, by type.
    pub(crate) outside: BTreeMap<String, usize>,
    /// Arguments, by function.
    pub(crate) arguments: BTreeMap<String, usize>,
    /// Arguments that are tuples, by function.
    pub(crate) tuples: BTreeMap<String, usize>,
}

pub(crate) fn count(sources: &Sources) -> Found {
    let mut with_methods = Methods::default();
    for parsed in sources.values() {
        with_methods.visit_file(parsed);
    }
    let mut counter = Counter {
        with_methods: with_methods.0,
        own: None,
        found: Found::default(),
    };
    for parsed in sources.values() {
        counter.visit_file(parsed);
    }
    counter.found
}

/// The types that have methods of their own, not only those of a trait.
#[derive(Default)]
struct Methods(BTreeSet<String>);

impl<'a> Visit<'a> for Methods {
    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if item.trait_.is_none() {
            self.0.extend(named(&item.self_ty));
        }
    }
}

/// The type with its arguments, through references: `CObject<Qp>`.
fn named(of: &Type) -> Option<String> {
    match of {
        Type::Reference(inner) => named(&inner.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string();
            let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return Some(name);
            };
            let types = arguments.args.iter().filter_map(|argument| match argument {
                syn::GenericArgument::Type(of) => named(of),
                _ => None,
            });
            let types: Vec<_> = types.collect();
            if types.is_empty() {
                return Some(name);
            }
            Some(format!("{name}<{}>", types.join(", ")))
        }
        _ => None,
    }
}

struct Counter {
    with_methods: BTreeSet<String>,
    /// The type whose methods are read.
    own: Option<String>,
    found: Found,
}

impl Counter {
    fn function(&mut self, signature: &Signature) {
        // The arguments of functions that C calls are C's.
        if signature.abi.is_some() {
            return;
        }
        let name = match &self.own {
            Some(own) => format!("{own}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        let arguments = signature.inputs.len();
        let most = self.found.arguments.entry(name.clone()).or_default();
        *most = arguments.max(*most);
        let is_tuple = |input: &&FnArg| match input {
            FnArg::Typed(input) => {
                let is_unit = |of: &Type| matches!(of, Type::Tuple(of) if of.elems.is_empty());
                let is_tuple = matches!(peeled(&input.ty), Type::Tuple(_));
                (is_tuple && !is_unit(peeled(&input.ty))) || matches!(*input.pat, Pat::Tuple(_))
            }
            FnArg::Receiver(_) => false,
        };
        let tuples = signature.inputs.iter().filter(is_tuple).count();
        if tuples > 0 {
            *self.found.tuples.entry(name).or_default() += tuples;
        }
    }
}

fn peeled(of: &Type) -> &Type {
    match of {
        Type::Reference(inner) => peeled(&inner.elem),
        other => other,
    }
}

/// Whether a function makes a value of the type that it takes, as builders and conversions do.
fn returns(output: &ReturnType, of: &str) -> bool {
    match output {
        ReturnType::Type(_, output) => named(output).as_deref() == Some(of),
        ReturnType::Default => false,
    }
}

impl<'a> Visit<'a> for Counter {
    fn visit_item(&mut self, item: &'a Item) {
        let is_test = match item {
            Item::Mod(item) => is_test(&item.attrs),
            Item::Fn(item) => is_test(&item.attrs),
            Item::Impl(item) => is_test(&item.attrs),
            _ => false,
        };
        if !is_test {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        // Structures of C have its fields.
        let is_repr = item.attrs.iter().any(|attr| attr.path().is_ident("repr"));
        if !is_repr {
            let most = self.found.fields.entry(item.ident.to_string()).or_default();
            *most = item.fields.len().max(*most);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.function(&item.sig);
        if let Some(FnArg::Typed(first)) = item.sig.inputs.first()
            && let Some(of) = named(&first.ty)
            && self.with_methods.contains(&of)
            && !returns(&item.sig.output, &of)
        {
            *self.found.outside.entry(of).or_default() += 1;
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        // The arguments of a trait's methods are the trait's choice.
        if item.trait_.is_none() {
            self.own = named(&item.self_ty);
            visit::visit_item_impl(self, item);
            self.own = None;
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.function(&item.sig);
        }
    }
}
