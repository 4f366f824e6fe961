//! Where a source can be mutated, and into what.
//!
//! Mutations are texts: the replacement of an expression is made from the text of its parts. Some
//! of them do not compile, which shows when the tree is checked.

use std::ops::Range;

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, BinOp, Block, Expr, ExprBinary, ExprCall, ExprField, ExprForLoop, ExprIf,
    ExprLit, ExprMacro, ExprMatch, ExprMethodCall, ExprPath, ExprRepeat, ExprStruct, ExprUnary,
    ExprWhile, ImplItemFn, ItemEnum, ItemFn, ItemImpl, ItemMacro, ItemMod, ItemStruct, Lit, Local,
    Pat, ReturnType, Signature, Stmt, TraitItemFn, Type, UnOp,
};

use crate::mistakes::{METHODS, VALUES, assigns, others, values_of};

/// A place with mutations.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Bytes of the source.
    pub(crate) range: Range<usize>,
    pub(crate) line: usize,
    pub(crate) form: Form,
    /// The function around it, with its type.
    pub(crate) function: String,
    pub(crate) mutations: Vec<Mutation>,
}

/// What a source has to say.
pub(crate) struct Found {
    pub(crate) sites: Vec<Site>,
    /// The modules in files of their own that are not judged: they are marked, or not in the build
    /// that is judged.
    pub(crate) skipped: Vec<String>,
}

/// How a mutation is combined with the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `(if live { mutation } else { original })`
    Expression,
    /// A field without a value of its own: `name: (if live { mutation } else { name })`.
    Shorthand,
    /// `if !live { original }`
    Statement,
    /// At the start of a body: `if live { return mutation; }`.
    Entry,
    /// Behind the pattern of an arm: `if !live`.
    Arm,
    /// Before the `let` of a condition: `!live && `.
    Let,
}

#[derive(Clone, Debug)]
pub(crate) struct Mutation {
    /// What it is, for people and for files: no line of it.
    pub(crate) text: String,
    /// What is put into the source.
    pub(crate) code: String,
}

/// All places of a source that can be mutated. Items that are marked with `mutants::skip`, as for
/// cargo-mutants, have none.
///
/// # Panics
/// If it is not Rust.
pub(crate) fn find(path: &str, source: &str) -> Found {
    let file = syn::parse_file(source).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut finder = Finder {
        source,
        sites: Vec::new(),
        skipped: Vec::new(),
        path: Vec::new(),
        constant: 0,
        text: 0,
        returns_unit: false,
    };
    finder.visit_file(&file);
    let Finder { sites, skipped, .. } = finder;
    Found { sites, skipped }
}

struct Finder<'s> {
    source: &'s str,
    sites: Vec<Site>,
    skipped: Vec<String>,
    /// The type and the functions around.
    path: Vec<String>,
    /// Depth of constants, where the switch cannot be read.
    constant: u32,
    /// Depth of code that makes a text.
    text: u32,
    returns_unit: bool,
}

impl<'s> Finder<'s> {
    fn text(&self, of: &impl Spanned) -> &'s str {
        &self.source[of.span().byte_range()]
    }

    fn add(&mut self, range: Range<usize>, at: LineColumn, form: Form, mutations: Vec<Mutation>) {
        if self.constant == 0 && self.text == 0 && !mutations.is_empty() {
            self.sites.push(Site {
                range,
                line: at.line,
                form,
                function: self.path.join("::"),
                mutations,
            });
        }
    }

    /// Other values instead of an expression.
    fn instead<C: Into<String>>(&mut self, of: &impl Spanned, codes: impl IntoIterator<Item = C>) {
        let original = self.text(of);
        let mutation = |code: C| {
            let code = code.into();
            let text = format!("{} => {}", squeezed(original), squeezed(&code));
            Mutation { text, code }
        };
        let mutations = codes.into_iter().map(mutation).collect();
        let span = of.span();
        self.add(span.byte_range(), span.start(), Form::Expression, mutations);
    }

    fn without(&mut self, of: &impl Spanned, range: Range<usize>, form: Form) {
        let text = format!("without {}", squeezed(self.text(of)));
        let code = String::new();
        self.add(
            range,
            of.span().start(),
            form,
            vec![Mutation { text, code }],
        );
    }

    fn without_statement(&mut self, of: &impl Spanned) {
        self.without(of, of.span().byte_range(), Form::Statement);
    }

    fn inside(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.path.push(name);
        visit(self);
        self.path.pop();
    }

    fn in_text(&mut self, is_text: bool, visit: impl FnOnce(&mut Self)) {
        self.text += u32::from(is_text);
        visit(self);
        self.text -= u32::from(is_text);
    }

    fn function(&mut self, signature: &Signature, body: &Block) {
        let constant = u32::from(signature.constness.is_some());
        self.constant += constant;
        self.inside(signature.ident.to_string(), |own| {
            let returned = match &signature.output {
                ReturnType::Default => "()".to_owned(),
                ReturnType::Type(_, of) => squeezed(own.text(of)),
            };
            if !body.stmts.is_empty() {
                let mutation = |value: String| Mutation {
                    text: format!("returns {value}"),
                    code: match &value[..] {
                        "()" => "return;".to_owned(),
                        value => format!("return {value};"),
                    },
                };
                let mutations = values_of(&returned).into_iter().map(mutation).collect();
                let open = body.brace_token.span.open();
                let at = open.byte_range().end;
                own.add(at..at, open.start(), Form::Entry, mutations);
            }
            let outer = std::mem::replace(&mut own.returns_unit, returned == "()");
            own.block(body, own.returns_unit, false);
            own.returns_unit = outer;
        });
        self.constant -= constant;
    }

    /// The statements of a block. `unit`: what it ends with is a statement too. `alone`: a block
    /// that would be empty without its only statement is its condition's business.
    fn block(&mut self, block: &Block, unit: bool, alone: bool) {
        let last = block.stmts.len().saturating_sub(1);
        for (at, statement) in block.stmts.iter().enumerate() {
            if is_apart_text(self.text(statement)) {
                continue;
            }
            match statement {
                Stmt::Expr(expr, semi) => {
                    let only = alone && last == 0;
                    let ends = at == last;
                    let jumps =
                        matches!(expr, Expr::Return(_) | Expr::Break(_) | Expr::Continue(_));
                    let has_value = semi.is_none() && ends && !unit;
                    let is_statement = match expr {
                        Expr::Macro(_) | Expr::Let(_) | Expr::If(_) => false,
                        Expr::ForLoop(_) | Expr::While(_) => true,
                        _ => !has_value,
                    };
                    if is_statement && !only && !(jumps && ends && !alone) {
                        let is_text = matches!(expr, Expr::MethodCall(of) if self.makes_text(of));
                        self.in_text(is_text, |own| own.without_statement(statement));
                    }
                    self.visit_expr(expr);
                }
                Stmt::Local(local) => self.visit_local(local),
                Stmt::Item(item) => self.visit_item(item),
                Stmt::Macro(_) => {}
            }
        }
    }

    /// A method that only notes something for people.
    fn makes_text(&self, call: &ExprMethodCall) -> bool {
        let is_journal = self.text(&*call.receiver).ends_with("journal");
        is_journal || TEXT_METHODS.iter().any(|name| call.method == name)
    }

    /// A condition, of which each part may be true or false.
    fn condition(&mut self, condition: &Expr, stops: bool) {
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        let has_let = parts.iter().any(|part| matches!(part, Expr::Let(_)));
        if !has_let {
            let values: &[&str] = if stops {
                &["false"]
            } else {
                &["true", "false"]
            };
            self.instead(condition, values.iter().copied());
            return self.visit_expr(condition);
        }
        for (at, part) in parts.into_iter().enumerate() {
            if let Expr::Let(of) = part {
                if at == 0 {
                    self.without(part, part.span().byte_range(), Form::Let);
                }
                self.visit_expr(&of.expr);
            } else {
                self.instead(part, ["true"]);
                self.visit_expr(part);
            }
        }
    }

    fn arm(&mut self, arm: &Arm, next: &Arm, may_go: bool) {
        match &arm.guard {
            Some((_, guard)) => self.condition(guard, false),
            None if may_go => {
                let end = arm.pat.span().byte_range().end;
                self.without(arm, end..end, Form::Arm);
            }
            None => {}
        }
        let is_plain = |expr: &Expr| matches!(expr, Expr::Path(_) | Expr::Lit(_));
        let [own, other] = [arm, next].map(|arm| self.text(&*arm.body));
        if is_plain(&arm.body) {
            if is_plain(&next.body) && own != other {
                self.instead(&*arm.body, [other]);
            }
            return;
        }
        if is_statement(&arm.body) {
            self.without_statement(&*arm.body);
        }
        self.visit_expr(&arm.body);
    }
}

/// An expression that has no value.
fn is_statement(expr: &Expr) -> bool {
    match expr {
        Expr::Assign(_) => true,
        Expr::Binary(binary) => assigns(&binary.op),
        _ => false,
    }
}

/// The operands of a chain of `&&`.
fn conjuncts<'e>(expr: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Binary(both) if matches!(both.op, BinOp::And(_)) && has_let(expr) => {
            conjuncts(&both.left, parts);
            conjuncts(&both.right, parts);
        }
        _ => parts.push(expr),
    }
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(both) => {
            matches!(both.op, BinOp::And(_)) && (has_let(&both.left) || has_let(&both.right))
        }
        _ => false,
    }
}

/// Structures and functions that only make a text.
const TEXTS: &[&str] = &[
    "TraceEvent",
    "Cause",
    "CqReport",
    "Problem",
    "FailureCause",
    "LabCause",
];
const TEXT_METHODS: &[&str] = &["note", "note_dropped", "note_failed", "note_lost", "record"];

/// On one line, and not too long for one.
fn squeezed(text: &str) -> String {
    const MOST: usize = 150;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        None => line,
        Some((end, _)) => format!("{}...", &line[..end]),
    }
}

/// Code that is not in the build that is judged, or that is marked.
fn is_apart(attributes: &[Attribute], finder: &Finder<'_>) -> bool {
    let mut texts = attributes.iter().map(|attribute| finder.text(attribute));
    texts.any(|text| is_apart_text(text) || text.contains(SKIP))
}

/// Marks an item that is not mutated, in any attribute.
const SKIP: &str = "mutants::skip";

/// Whether an attribute's text excludes its item. The suite does not run on a network.
fn is_apart_text(text: &str) -> bool {
    let apart = ["test", "loom", "shuttle", "miri", "planted", "\"network\""];
    let attribute = text.split_once(']').map_or("", |(attribute, _)| attribute);
    let attribute = attribute.replace("not(any(miri", "");
    attribute.starts_with("#[cfg(") && apart.iter().any(|word| attribute.contains(word))
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_enum(&mut self, _: &'ast ItemEnum) {}
    fn visit_item_struct(&mut self, _: &'ast ItemStruct) {}
    fn visit_item_macro(&mut self, _: &'ast ItemMacro) {}
    fn visit_expr_macro(&mut self, _: &'ast ExprMacro) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_apart(&item.attrs, self) {
            visit::visit_item_mod(self, item);
        } else if item.content.is_none() {
            self.skipped.push(item.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_apart(&item.attrs, self) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_apart(&item.attrs, self) {
            self.function(&item.sig, &item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(body) = &item.default
            && !is_apart(&item.attrs, self)
        {
            self.function(&item.sig, body);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let of = item.trait_.as_ref().map(|(_, path, _)| self.text(path));
        let is_text = of.is_some_and(|of| of.ends_with("Debug") || of.ends_with("Display"));
        if !is_text && !is_apart(&item.attrs, self) {
            let name = squeezed(self.text(&*item.self_ty));
            self.inside(name, |own| visit::visit_item_impl(own, item));
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.block(block, false, false);
    }

    fn visit_expr_if(&mut self, expr: &'ast ExprIf) {
        self.condition(&expr.cond, false);
        self.block(&expr.then_branch, false, expr.else_branch.is_none());
        if let Some((_, other)) = &expr.else_branch {
            self.visit_expr(other);
        }
    }

    fn visit_expr_while(&mut self, expr: &'ast ExprWhile) {
        // It would never end with `true`.
        self.condition(&expr.cond, true);
        self.block(&expr.body, true, false);
    }

    fn visit_expr_for_loop(&mut self, expr: &'ast ExprForLoop) {
        self.visit_expr(&expr.expr);
        self.block(&expr.body, true, false);
    }

    fn visit_expr_repeat(&mut self, expr: &'ast ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let Some(init) = &local.init else { return };
        if let Some((_, otherwise)) = &init.diverge {
            if self.text(&local.pat).starts_with("Some(") {
                self.instead(&*init.expr, ["None"]);
            }
            self.visit_expr(otherwise);
        }
        self.visit_expr(&init.expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast ExprMatch) {
        self.visit_expr(&expr.expr);
        let takes_all = expr.arms.last().is_some_and(|last| {
            let starts_small =
                |text: &str| text.starts_with(|c: char| c.is_lowercase() || c == '_');
            let is_open = matches!(&last.pat, Pat::Wild(_) | Pat::Ident(_) | Pat::Or(_));
            let text = self.text(&last.pat);
            last.guard.is_none() && is_open && (starts_small(text) || text.ends_with("| _"))
        });
        let count = expr.arms.len();
        for (at, arm) in expr.arms.iter().enumerate() {
            let next = &expr.arms[(at + 1) % count];
            self.arm(arm, next, takes_all && at + 1 < count);
        }
    }

    fn visit_expr_binary(&mut self, expr: &'ast ExprBinary) {
        if has_let(&Expr::Binary(expr.clone())) {
            return visit::visit_expr_binary(self, expr);
        }
        let [left, right] = [&expr.left, &expr.right].map(|side| self.text(&**side));
        let is_assignment = assigns(&expr.op);
        let with = |op: &&str| {
            if is_assignment {
                format!("{left} {op} {right}")
            } else {
                format!("({left}) {op} ({right})")
            }
        };
        let mut codes: Vec<String> = others(&expr.op).iter().map(with).collect();
        if matches!(expr.op, BinOp::And(_) | BinOp::Or(_)) {
            codes.extend([left, right].map(str::to_owned));
        }
        self.instead(expr, codes);
        if !is_assignment {
            self.visit_expr(&expr.left);
        }
        self.visit_expr(&expr.right);
    }

    fn visit_expr_unary(&mut self, expr: &'ast ExprUnary) {
        if matches!(expr.op, UnOp::Not(_) | UnOp::Neg(_)) && !matches!(*expr.expr, Expr::Lit(_)) {
            let inner = self.text(&*expr.expr);
            self.instead(expr, [inner]);
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_assign(&mut self, expr: &'ast syn::ExprAssign) {
        self.visit_expr(&expr.right);
    }

    fn visit_expr_lit(&mut self, expr: &'ast ExprLit) {
        match &expr.lit {
            Lit::Bool(of) => self.instead(expr, [(!of.value).to_string()]),
            Lit::Int(of) => {
                if let Ok(number) = of.base10_parse::<u64>() {
                    let suffix = of.suffix();
                    self.instead(expr, [format!("{}{suffix}", number.wrapping_add(1))]);
                }
            }
            _ => {}
        }
    }

    fn visit_expr_path(&mut self, expr: &'ast ExprPath) {
        let segments: Vec<_> = expr
            .path
            .segments
            .iter()
            .map(|of| of.ident.to_string())
            .collect();
        if let [.., of, value] = &segments[..]
            && value.starts_with(char::is_uppercase)
            && let Some((name, values)) = VALUES.iter().find(|(name, _)| name == of)
            && let Some(other) = values.iter().find(|other| *other != value)
        {
            self.instead(expr, [format!("{name}::{other}")]);
        }
    }

    fn visit_expr_call(&mut self, expr: &'ast ExprCall) {
        let is_text = TEXTS
            .iter()
            .any(|name| self.text(&*expr.func).starts_with(name));
        self.in_text(is_text, |own| {
            if !matches!(*expr.func, Expr::Path(_)) {
                own.visit_expr(&expr.func);
            }
            expr.args
                .iter()
                .for_each(|argument| own.visit_expr(argument));
        });
    }

    fn visit_expr_method_call(&mut self, expr: &'ast ExprMethodCall) {
        let name = expr.method.to_string();
        let other = METHODS.iter().find_map(|[one, two]| match () {
            () if *one == name => Some(*two),
            () if *two == name => Some(*one),
            () => None,
        });
        if let Some(other) = other {
            let (all, method) = (expr.span().byte_range(), expr.method.span().byte_range());
            let [before, behind] = [all.start..method.start, method.end..all.end];
            let code = format!("{}{other}{}", &self.source[before], &self.source[behind]);
            self.instead(expr, [code]);
        }
        self.visit_expr(&expr.receiver);
        self.in_text(self.makes_text(expr), |own| {
            expr.args
                .iter()
                .for_each(|argument| own.visit_expr(argument));
        });
    }

    fn visit_expr_field(&mut self, expr: &'ast ExprField) {
        self.visit_expr(&expr.base);
    }

    fn visit_expr_struct(&mut self, expr: &'ast ExprStruct) {
        let first = expr
            .path
            .segments
            .first()
            .map(|segment| segment.ident.to_string());
        let is_text = first.is_some_and(|first| TEXTS.contains(&&first[..]));
        self.in_text(is_text, |own| {
            for field in &expr.fields {
                let value = own.text(&field.expr);
                let is_default = value.ends_with("::new()")
                    || value.ends_with("::default()")
                    || value == "None"
                    || matches!(
                        &field.expr,
                        Expr::Lit(_) | Expr::Macro(_) | Expr::Closure(_)
                    );
                let form = match field.colon_token {
                    Some(_) => Form::Expression,
                    None => Form::Shorthand,
                };
                if !is_default {
                    let mutation = Mutation {
                        text: format!("{}: default", squeezed(own.text(field))),
                        code: "Default::default()".to_owned(),
                    };
                    let span = field.expr.span();
                    own.add(span.byte_range(), span.start(), form, vec![mutation]);
                }
                if field.colon_token.is_some() {
                    own.visit_expr(&field.expr);
                }
            }
            if let Some(rest) = &expr.rest {
                own.visit_expr(rest);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        let all = find("test.rs", source).sites.into_iter();
        all.flat_map(|site| site.mutations)
            .map(|mutation| mutation.text)
            .collect()
    }

    #[test]
    fn each_part_of_a_function_has_its_mutations() {
        let source = "fn f(a: u8) -> bool { if a < 3 && ok() { note(a); stop(); } a.is_some() }";
        let expected = [
            "returns true",
            "returns false",
            "a < 3 && ok() => true",
            "a < 3 && ok() => false",
            "a < 3 && ok() => (a < 3) || (ok())",
            "a < 3 && ok() => a < 3",
            "a < 3 && ok() => ok()",
            "a < 3 => (a) <= (3)",
            "a < 3 => (a) > (3)",
            "3 => 4",
            "without note(a);",
            "without stop();",
            "a.is_some() => a.is_none()",
        ];
        assert_eq!(texts(source), expected);
    }

    #[test]
    fn constants_tests_and_texts_for_people_have_none() {
        let source = "
            const A: u8 = 1 + 2;
            const fn f() -> u8 { 1 }
            #[cfg(test)] mod tests { fn g() -> u8 { 1 } }
            impl fmt::Debug for A { fn fmt(&self) -> u8 { 1 } }";
        assert_eq!(texts(source), Vec::<String>::new());
    }

    #[test]
    fn what_is_marked_has_none() {
        let source = "
            #[cfg_attr(any(), mutants::skip)] fn f() -> u8 { 1 }
            #[cfg_attr(any(), mutants::skip)] impl A { fn g() -> u8 { 1 } }
            impl A { #[mutants::skip] fn h() -> u8 { 1 } }
            #[cfg_attr(any(), mutants::skip)] mod words;
            mod judged;";
        assert_eq!(texts(source), Vec::<String>::new());
        assert_eq!(find("test.rs", source).skipped, ["words"]);
    }

    #[test]
    fn a_function_is_named_with_its_type() {
        let source = "impl Cq { fn used(&self) -> u8 { self.a + self.b } }";
        assert!(
            find("test.rs", source)
                .sites
                .iter()
                .all(|site| site.function == "Cq::used")
        );
    }
}
