//! What each thing is mistaken for.

use syn::BinOp;

/// The values that a function may return instead of its own.
pub(crate) fn values_of(returned: &str) -> Vec<String> {
    const NUMBERS: &[&str] = &[
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "isize",
    ];
    let within = |start: &str| returned.strip_prefix(start)?.strip_suffix('>');
    let all = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    if let Some(inner) = within("Option<") {
        let some = values_of(inner)
            .into_iter()
            .map(|value| format!("Some({value})"));
        return some.chain(["None".to_owned()]).collect();
    }
    if let Some(inner) = within("Result<").or_else(|| within("verbs_api::Result<")) {
        let good = inner.split(", Error").next().unwrap_or_default();
        return values_of(good)
            .into_iter()
            .map(|value| format!("Ok({value})"))
            .collect();
    }
    match returned {
        "()" => all(&["()"]),
        "bool" => all(&["true", "false"]),
        "&str" | "&'static str" => all(&["\"\""]),
        _ if NUMBERS.contains(&returned) => all(&["0", "1"]),
        _ if returned.starts_with(['&', '!']) || returned.starts_with("impl ") => Vec::new(),
        _ => all(&["Default::default()"]),
    }
}

/// Binary operators, and what each is mistaken for.
pub(crate) fn others(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">"],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["+="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

/// Methods, and what each is mistaken for.
pub(crate) const METHODS: &[[&str; 2]] = &[
    ["min", "max"],
    ["any", "all"],
    ["is_some", "is_none"],
    ["is_ok", "is_err"],
    ["is_some_and", "is_none_or"],
    ["push_back", "push_front"],
    ["pop_front", "pop_back"],
    ["front", "back"],
    ["first", "last"],
    ["wrapping_add", "wrapping_sub"],
    ["saturating_add", "saturating_sub"],
    ["insert", "remove"],
    ["union", "difference"],
];

/// Values of enums that matter, and what each is mistaken for: the first of these that it is not.
pub(crate) const VALUES: &[(&str, [&str; 2])] = &[
    ("ErrorKind", ["Invalid", "NoMemory"]),
    ("WcStatus", ["Success", "WrFlushErr"]),
    ("WcOpcode", ["Send", "RdmaWrite"]),
    ("AsyncEventType", ["QpFatal", "CqErr"]),
    ("QpState", ["Err", "Rts"]),
    ("ArmState", ["Off", "Next"]),
    ("Delivery", ["Made", "Lost"]),
    ("BadHandle", ["Foreign", "Stale"]),
    ("Nak", ["RemoteAccess", "InvalidRequest"]),
    ("Stop", ["Queue", "Qp"]),
];

/// Whether it changes its left side.
pub(crate) fn assigns(op: &BinOp) -> bool {
    use BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign,
        ShlAssign, ShrAssign, SubAssign,
    };
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}
