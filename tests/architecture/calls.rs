//! Which file calls which, as far as types can be told without a compiler: of `self`, of arguments, of
//! fields, and of what calls return. Containers count as what they hold.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, FnArg, GenericArgument, ImplItem, Item, Pat, PathArguments, ReturnType, Type};

/// Types that stand for what they hold.
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

/// What the files define.
#[derive(Default)]
struct Defined {
    /// Of a function of a type: the file, and what it returns.
    methods: BTreeMap<(String, String), (String, Option<String>)>,
    functions: BTreeMap<String, Vec<(String, Option<String>)>>,
    fields: BTreeMap<(String, String), String>,
}

/// Which file calls which, and what there.
pub(crate) struct Calls(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

/// The name of a type; of a container, that of what it holds.
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
                    let found = (file.to_owned(), returned(&item.sig.output, None));
                    let name = item.sig.ident.to_string();
                    self.functions.entry(name).or_default().push(found);
                }
                Item::Struct(item) => {
                    for field in &item.fields {
                        if let (Some(name), Some(of)) = (&field.ident, type_name(&field.ty)) {
                            let place = (item.ident.to_string(), name.to_string());
                            self.fields.insert(place, of);
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
                            self.methods.insert(place, (file.to_owned(), result));
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
    defined: &'d Defined,
    own: Option<String>,
    /// What variables hold, as far as that can be told.
    types: BTreeMap<String, Option<String>>,
    /// The files that are called, and the names of what is called there.
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
            && let Some((file, result)) = self.defined.methods.get(&(of, name.clone()))
        {
            return Some((file.clone(), name, result.clone()));
        }
        match &self.defined.functions.get(&name)?[..] {
            [(file, result)] => Some((file.clone(), name, result.clone())),
            _ => None,
        }
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
                self.defined.fields.get(&place).cloned()
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
                    Some((_, result)) => result.clone(),
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
                        let found = self.defined.fields.get(&place).cloned();
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
        if item.ident != "tests" {
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
            // What is not said is mostly what the variable is called.
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
            && let Some((file, _)) = self.defined.methods.get(&(of, name.clone()))
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

impl Calls {
    /// What these files call of each other.
    pub(crate) fn of(sources: &BTreeMap<String, String>) -> Self {
        let parsed: BTreeMap<_, _> = sources
            .iter()
            .map(|(file, text)| (file, syn::parse_file(text).unwrap()))
            .collect();
        let mut defined = Defined::default();
        for (file, parsed) in &parsed {
            defined.add(file, &parsed.items);
        }
        let of_file = |(file, parsed): (&&String, &syn::File)| {
            let mut reader = Reader {
                defined: &defined,
                own: None,
                types: BTreeMap::new(),
                called: BTreeMap::new(),
            };
            reader.visit_file(parsed);
            reader.called.remove(*file);
            ((*file).clone(), reader.called)
        };
        Self(parsed.iter().map(of_file).collect())
    }

    pub(crate) fn are_made(&self, from: &str, to: &str) -> bool {
        self.0
            .get(from)
            .is_some_and(|called| called.contains_key(to))
    }

    /// All that a file calls, and what is called there in turn.
    fn reached(&self, from: &str) -> BTreeSet<&str> {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(at) = todo.pop() {
            for to in self.0.get(at).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(&**to) {
                    todo.push(to);
                }
            }
        }
        seen
    }

    /// The files that call each other, whatever the way, each group once.
    pub(crate) fn circles(&self) -> BTreeSet<Vec<&str>> {
        let reached: BTreeMap<&str, _> = self
            .0
            .keys()
            .map(|file| (&**file, self.reached(file)))
            .collect();
        let circle = |file: &&str| {
            let all = reached[*file].iter().copied();
            all.filter(|other| reached[other].contains(*file)).collect()
        };
        let circles: BTreeSet<Vec<&str>> = reached.keys().map(circle).collect();
        circles
            .into_iter()
            .filter(|circle| circle.len() > 1)
            .collect()
    }

    /// The calls within a circle, a line for each two files.
    pub(crate) fn within(&self, circle: &[&str]) -> Vec<String> {
        let of = |from: &&str| {
            let called = self.0[*from].iter();
            let inside = called.filter(|(to, _)| circle.contains(&&***to));
            let line =
                |(to, names): (&String, &BTreeSet<String>)| format!("{from} -> {to}: {names:?}");
            inside.map(line).collect::<Vec<_>>()
        };
        circle.iter().flat_map(of).collect()
    }
}
