//! Rows next to bodies, and lists of them.

use verbs_api::Capabilities;

/// The row of the body below, which has the same name: the rules that its assertions name, the
/// capabilities it [`needs`], `without RC` if it makes no queue pair, those that its device must
/// lack, its hazards, and why others disturb it (`alone`). Its id is the group's module and that
/// name.
///
/// The row is `ROW` of a type with the name of the body. What is in no list of `scenarios!` is dead
/// code.
macro_rules! scenario {
    (
        $body:ident: $($rule:literal),+
        $(; needs $($need:ident),+)?
        $(; without $unneeded:ident)?
        $(; lacks $($lack:ident),+)?
        $(; hazards $($hazard:ident),+)?
        $(; alone $why:literal)?
    ) => {
        #[allow(non_camel_case_types)]
        pub(crate) enum $body {}

        impl $body {
            pub(crate) const ROW: $crate::Scenario = {
                const MODULE: &str = module_path!();
                const BODY: &str = stringify!($body);
                const ID: [u8; $crate::row::id_len(MODULE, BODY)] = $crate::row::id(MODULE, BODY);
                let needs = $crate::row::needs(&[$($(verbs_api::Capabilities::$need),+)?]);
                let row = $crate::Scenario::new($crate::row::text(&ID), &[$($rule),+], $body);
                $crate::Scenario { needs, ..row }
                    $(.without(verbs_api::Capabilities::$unneeded))?
                    $($(.lacks(verbs_api::Capabilities::$lack))+)?
                    $($(.hazards($crate::Hazards::$hazard))+)?
                    $(.alone($why))?
            };
        }
    };
}

/// The rows of these bodies, in the order of reports.
macro_rules! scenarios {
    ($($(#[$attribute:meta])* $body:path),+ $(,)?) => {
        &[$($(#[$attribute])* <$body>::ROW),+]
    };
}

/// What a row that names these capabilities needs: RC too, unless it names UD, which some devices
/// have alone. These have no connection manager.
pub(crate) const fn needs(named: &[Capabilities]) -> Capabilities {
    let mut all = Capabilities::empty();
    let mut at = 0;
    while at < named.len() {
        all = all.union(named[at]);
        at += 1;
    }
    if all.contains(Capabilities::UD) && !all.contains(Capabilities::CM) {
        all
    } else {
        all.union(Capabilities::RC)
    }
}

/// How long the [`id`] of a body is.
pub(crate) const fn id_len(module: &str, body: &str) -> usize {
    group(module).len() + 1 + body.len()
}

/// The id of a body in `module`: the group, a dot, its name.
pub(crate) const fn id<const LEN: usize>(module: &str, body: &str) -> [u8; LEN] {
    let group = group(module);
    let mut id = [b'.'; LEN];
    let (before, behind) = id.split_at_mut(group.len());
    before.copy_from_slice(group);
    behind.split_at_mut(1).1.copy_from_slice(body.as_bytes());
    id
}

/// An [`id`] as what it is.
pub(crate) const fn text(id: &'static [u8]) -> &'static str {
    match str::from_utf8(id) {
        Ok(id) => id,
        Err(_) => panic!("the names of modules and functions are text"),
    }
}

/// The module right below the crate that `module` is or is in.
const fn group(module: &str) -> &[u8] {
    let the_crate = concat!(env!("CARGO_CRATE_NAME"), "::").len();
    let (_, below) = module.as_bytes().split_at(the_crate);
    let mut len = 0;
    while len < below.len() && below[len] != b':' {
        len += 1;
    }
    below.split_at(len).0
}
