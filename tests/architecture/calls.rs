//! Calls between files, as far as types are known without a compiler: those of `self`, of arguments, of
//! fields, and of results. Containers count as their elements. Functions are found by their paths;
//! methods and fields by the name of their type, if only one type has it.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use super::circles::Graph;
use super::modules::{Modules, Sources, is_test};
use syn::{Expr, FnArg, GenericArgument, ImplItem, Item, Pat, PathArguments, ReturnType, Type};

/// Types that stand for their elements.
const CONTAINERS: [&str; 12] = [
    "Option",
    "Result",
    "Box",
    "Arc",
    "Vec",
    "Table",
    "BTreeMap",
    "VecDeque",
    "SmallVec",
    "Ring",
    "Mutex",
    "MutexGuard",
];

/// The file of a method, and the type of its result.
type Method = (String, Option<String>);

/// The definitions of all files.
#[derive(Default)]
struct Defined {
    /// By type and name. `None` if several types of one name have it.
    methods: BTreeMap<(String, String), Option<Method>>,
    /// By file and name: the type of the result.
    functions: BTreeMap<(String, String), Option<String>>,
    /// By type and name: the type. `None` if several types of one name have it.
    fields: BTreeMap<(String, String), Option<String>>,
}

/// The name of a type. For a container, that of its elements.
pub(crate) fn type_name(of: &Type) -> Option<String> {
    match of {
        Type::Reference(inner) => type_name(&inner.elem),
        Type::Paren(inner) => type_name(&inner.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string();
            if !CONTAINERS.contains(&&*name) {
                return Some(name);
            }
            let PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return Some(name);
            };
            let mut types = arguments.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(of) => Some(of),
                _ => None,
            });
            match &*name {
                "BTreeMap" => type_name(types.nth(1)?),
                _ => type_name(types.next()?),
            }
        }
        _ => None,
    }
}

fn returned(output: &ReturnType, own: Option<&str>) -> Option<String> {
    let ReturnType::Type(_, of) = output else {
        return None;
    };
    match type_name(of)? {
        name if name == "Self" => own.map(str::to_owned),
        name => Some(name),
    }
}

impl Defined {
    fn add(&mut self, file: &str, items: &[Item]) {
        for item in items {
            match item {
                Item::Fn(item) => {
                    let place = (file.to_owned(), item.sig.ident.to_string());
                    self.functions
                        .insert(place, returned(&item.sig.output, None));
                }
                Item::Struct(item) => {
                    for field in &item.fields {
                        if let (Some(name), Some(of)) = (&field.ident, type_name(&field.ty)) {
                            let place = (item.ident.to_string(), name.to_string());
                            let known = self.fields.entry(place);
                            known.and_modify(|known| *known = None).or_insert(Some(of));
                        }
                    }
                }
                Item::Impl(item) => {
                    let Some(own) = type_name(&item.self_ty) else {
                        continue;
                    };
                    for item in &item.items {
                        if let ImplItem::Fn(item) = item {
                            let place = (own.clone(), item.sig.ident.to_string());
                            let result = returned(&item.sig.output, Some(&own));
                            let found = (file.to_owned(), result);
                            let known = self.methods.entry(place);
                            known
                                .and_modify(|known| *known = None)
                                .or_insert(Some(found));
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Reads the functions of a file.
struct Reader<'d> {
    file: &'d str,
    modules: &'d Modules,
    defined: &'d Defined,
    own: Option<String>,
    /// The types of variables, as far as they are known.
    types: BTreeMap<String, Option<String>>,
    /// The files that are called, and the names of the functions.
    called: BTreeMap<String, BTreeSet<String>>,
}

impl Reader<'_> {
    fn call(&mut self, file: &str, name: &str) {
        let names = self.called.entry(file.to_owned()).or_default();
        names.insert(name.to_owned());
    }

    fn variable(&self, name: &syn::Ident) -> Option<String> {
        self.types.get(&name.to_string()).cloned().flatten()
    }

    fn function(&self, path: &syn::Path) -> Option<(String, String, Option<String>)> {
        let name = path.segments.last()?.ident.to_string();
        if path.get_ident().is_some() && self.types.contains_key(&name) {
            // A closure.
            return None;
        }
        let before = path.segments.iter().rev().nth(1);
        let of = before.map(|segment| segment.ident.to_string());
        let of = match of {
            Some(of) if of == "Self" => self.own.clone(),
            other => other,
        };
        if let Some(of) = of
            && let Some(Some((file, result))) = self.defined.methods.get(&(of, name.clone()))
        {
            return Some((file.clone(), name, result.clone()));
        }
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        let names: Vec<_> = names.collect();
        let resolved = self.modules.resolve(self.file, &names);
        let (file, item) = match (resolved, &names[..]) {
            (Some((file, item)), _) => (file.to_owned(), item),
            (None, [_]) => (self.file.to_owned(), names),
            _ => return None,
        };
        let [name] = &item[..] else { return None };
        let place = (file, name.clone());
        let result = self.defined.functions.get(&place)?;
        Some((place.0, place.1, result.clone()))
    }

    /// The type of an expression.
    fn of(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Path(path) => self.variable(path.path.get_ident()?),
            Expr::Field(field) => {
                let syn::Member::Named(name) = &field.member else {
                    return None;
                };
                let place = (self.of(&field.base)?, name.to_string());
                self.defined.fields.get(&place).cloned().flatten()
            }
            Expr::Reference(inner) => self.of(&inner.expr),
            Expr::Paren(inner) => self.of(&inner.expr),
            Expr::Unary(inner) => self.of(&inner.expr),
            Expr::Try(inner) => self.of(&inner.expr),
            Expr::Index(inner) => self.of(&inner.expr),
            Expr::MethodCall(call) => {
                let of = self.of(&call.receiver)?;
                let place = (of.clone(), call.method.to_string());
                match self.defined.methods.get(&place) {
                    Some(Some((_, result))) => result.clone(),
                    Some(None) => None,
                    // A method of the container.
                    None => Some(of),
                }
            }
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => self.function(&path.path)?.2,
                _ => None,
            },
            Expr::Struct(made) => Some(made.path.segments.last()?.ident.to_string()),
            _ => None,
        }
    }

    fn bind(&mut self, pattern: &Pat, of: Option<String>) {
        match pattern {
            Pat::Ident(ident) => {
                self.types.insert(ident.ident.to_string(), of);
            }
            Pat::Reference(inner) => self.bind(&inner.pat, of),
            Pat::TupleStruct(inner) if inner.elems.len() == 1 => self.bind(&inner.elems[0], of),
            Pat::Type(inner) => self.bind(&inner.pat, type_name(&inner.ty)),
            Pat::Struct(inner) => {
                for field in &inner.fields {
                    if let (syn::Member::Named(name), Some(of)) = (&field.member, &of) {
                        let place = (of.clone(), name.to_string());
                        let found = self.defined.fields.get(&place).cloned().flatten();
                        self.bind(&field.pat, found);
                    }
                }
            }
            Pat::Tuple(inner) => inner.elems.iter().for_each(|part| self.bind(part, None)),
            _ => {}
        }
    }

    fn enter(&mut self, inputs: &syn::punctuated::Punctuated<FnArg, syn::Token![,]>) {
        self.types.clear();
        for input in inputs {
            match input {
                FnArg::Receiver(_) => {
                    self.types.insert("self".to_owned(), self.own.clone());
                }
                FnArg::Typed(input) => {
                    let of = match type_name(&input.ty) {
                        Some(name) if name == "Self" => self.own.clone(),
                        other => other,
                    };
                    self.bind(&input.pat, of);
                }
            }
        }
    }
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        self.own = type_name(&item.self_ty);
        visit::visit_item_impl(self, item);
        self.own = None;
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.enter(&item.sig.inputs);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.enter(&item.sig.inputs);
        visit::visit_item_fn(self, item);
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        for input in &closure.inputs {
            // An argument without a type mostly has the name of a variable of its type.
            let same_name = match input {
                Pat::Ident(ident) => self.variable(&ident.ident),
                _ => None,
            };
            self.bind(input, same_name);
        }
        visit::visit_expr_closure(self, closure);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        visit::visit_local(self, local);
        let of = local
            .init
            .as_ref()
            .and_then(|init| match (&local.pat, &*init.expr) {
                (Pat::Tuple(names), Expr::Tuple(values)) => {
                    for (name, value) in names.elems.iter().zip(&values.elems) {
                        let of = self.of(value);
                        self.bind(name, of);
                    }
                    None
                }
                (_, value) => self.of(value),
            });
        if !matches!(local.pat, Pat::Tuple(_)) {
            self.bind(&local.pat, of);
        }
    }

    fn visit_expr_let(&mut self, condition: &'a syn::ExprLet) {
        let of = self.of(&condition.expr);
        self.bind(&condition.pat, of);
        visit::visit_expr_let(self, condition);
    }

    fn visit_expr_for_loop(&mut self, repeat: &'a syn::ExprForLoop) {
        let of = self.of(&repeat.expr);
        self.bind(&repeat.pat, of);
        visit::visit_expr_for_loop(self, repeat);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let name = call.method.to_string();
        if let Some(of) = self.of(&call.receiver)
            && let Some(Some((file, _))) = self.defined.methods.get(&(of, name.clone()))
        {
            let file = file.clone();
            self.call(&file, &name);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let Expr::Path(path) = &*call.func
            && let Some((file, name, _)) = self.function(&path.path)
        {
            self.call(&file, &name);
        }
        visit::visit_expr_call(self, call);
    }
}

/// The files that each file calls, and the names of the functions.
pub(crate) fn calls(sources: &Sources, modules: &Modules) -> Graph {
    let mut defined = Defined::default();
    for (file, parsed) in sources {
        defined.add(file, &parsed.items);
    }
    let of_file = |(file, parsed): (&String, &syn::File)| {
        let mut reader = Reader {
            file,
            modules,
            defined: &defined,
            own: None,
            types: BTreeMap::new(),
            called: BTreeMap::new(),
        };
        reader.visit_file(parsed);
        reader.called.remove(file);
        let names = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        let called = reader.called.into_iter();
        (
            file.clone(),
            called.map(|(to, of)| (to, names(of))).collect(),
        )
    };
    sources.iter().map(of_file).collect()
}
