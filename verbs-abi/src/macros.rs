//! How C is declared: once, for programs and for the witness alike.

/// Declares structures of C by their fields.
///
/// All are plain: numbers, pointers, optional functions, unions and arrays of these. So each can be
/// copied, and has a default, which is zero. A size in brackets is the one of x86_64.
///
/// The witness compares size and members with those of the headers. A member that has another name
/// there gives it after `=`; one in brackets is not in the bindings, or is newer than some headers.
/// A structure with `(grows)` is larger in newer headers, and with `(grows before FIELD)` it is
/// larger at its start.
macro_rules! structures {
    ($(
        $(#[$meta:meta])*
        $name:ident $([$size:literal])? $(($($growth:ident)+))? {
            $( $field:ident $(= $theirs:tt)? : $type:ty ),* $(,)?
        }
    )*) => {
        $(
            #[doc = concat!("`struct ", stringify!($name), "`")]
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            #[allow(missing_docs, reason = "the fields are those of C")]
            pub struct $name {
                $( pub $field: $type, )*
            }

            impl Default for $name {
                fn default() -> Self {
                    // SAFETY: for all that structures of C are made of here zero is a value.
                    unsafe { std::mem::zeroed() }
                }
            }

            $(
                #[cfg(target_arch = "x86_64")]
                const _: () = assert!(size_of::<$name>() == $size);
            )?
        )*

        #[cfg(test)]
        pub(crate) fn layout() -> Vec<$crate::witness::Row> {
            use $crate::witness::Row;

            let mut rows = Vec::new();
            $({
                structures!(@size rows $name $($($growth)+)?);
                #[cfg(feature = "witness")]
                let grown = structures!(@grown $name $($($growth)+)?);
                $( structures!(@member rows grown $name $field $($theirs)?); )*
            })*
            rows
        }
    };
    (@size $rows:ident $name:ident) => {{
        let row = Row::size(stringify!($name), size_of::<$name>());
        #[cfg(feature = "witness")]
        let row = row.and_bindings(size_of::<rdma_sys::$name>());
        $rows.push(row);
    }};
    (@size $rows:ident $name:ident $($growth:ident)+) => {
        $rows.push(Row::size(stringify!($name), size_of::<$name>()));
    };
    (@member $rows:ident $grown:ident $name:ident $field:ident ($theirs:ident)) => {
        let ours = std::mem::offset_of!($name, $field);
        $rows.push(Row::member(stringify!($name), stringify!($theirs), ours));
    };
    (@member $rows:ident $grown:ident $name:ident $field:ident) => {
        structures!(@member $rows $grown $name $field $field);
    };
    (@member $rows:ident $grown:ident $name:ident $field:ident $theirs:ident) => {{
        let row = Row::member(stringify!($name), stringify!($theirs), std::mem::offset_of!($name, $field));
        #[cfg(feature = "witness")]
        let row = row.and_bindings($grown + std::mem::offset_of!(rdma_sys::$name, $theirs));
        $rows.push(row);
    }};
    (@grown $name:ident grows before $last:ident) => {
        std::mem::offset_of!($name, $last) - std::mem::offset_of!(rdma_sys::$name, $last)
    };
    (@grown $name:ident $($growth:ident)?) => {
        0
    };
}

/// Declares constants of C, by the enumeration that has them. The witness compares their values.
/// The bindings have `flags` as numbers in a type of their own, and lack what is `unseen`. In C,
/// `macros` are not enumerators.
macro_rules! constants {
    ($( $kind:ident $of:ident: $type:ty { $( $name:ident = $value:expr ),* $(,)? } )*) => {
        $( $(
            #[doc = concat!("Of `enum ", stringify!($of), "`.")]
            pub const $name: $type = $value;
        )* )*

        #[cfg(test)]
        pub(crate) fn values() -> Vec<$crate::witness::Row> {
            [$( $( constants!(@$kind $of $name), )* )*].into_iter().flatten().collect()
        }
    };
    (@flags $of:ident $name:ident) => {{
        let row = $crate::witness::Row::value(stringify!($name), $name);
        #[cfg(feature = "witness")]
        let row = row.and_bindings(rdma_sys::$of::$name.0);
        Some(row)
    }};
    (@numbers $of:ident $name:ident) => {{
        let row = $crate::witness::Row::value(stringify!($name), $name);
        #[cfg(feature = "witness")]
        let row = row.and_bindings(rdma_sys::$of::$name as i64);
        Some(row)
    }};
    (@unseen $of:ident $name:ident) => {
        Some($crate::witness::Row::value(stringify!($name), $name))
    };
    (@macros $of:ident $name:ident) => {
        None
    };
}

/// An operation that is there or not.
macro_rules! op {
    ($($type:ty),* $(=> $returned:ty)?) => {
        Option<unsafe extern "C" fn($($type),*) $(-> $returned)?>
    };
}

/// Declares the conversions between structures of C and of `verbs-api`: their fields, of the same
/// names or of `other: names`, each as [`Border`](crate::border::Border) has it. Fields of only one
/// side are listed separately.
macro_rules! conversions {
    ($(
        $raw:ident, $api:ident { $($fields:tt)* }
        $(
            => from |$from:ident| { $( $to_field:ident: $to_value:expr ),* $(,)? }
            to |$to:ident| { $( $from_field:ident: $from_value:expr ),* $(,)? }
        )?
    )*) => {
        $(
            conversions! { @names $raw $api [] [$($fields)*]
                [$($from, $($to_field: $to_value),*)?] [$($to, $($from_field: $from_value),*)?] }
        )*

        /// What structures say survives the way to C and back.
        #[cfg(test)]
        #[allow(non_snake_case, reason = "these are structures of C")]
        mod survives {
            use super::*;

            proptest::proptest! { $(
                #[test]
                fn $raw(bytes in proptest::collection::vec(proptest::num::u8::ANY, size_of::<$raw>())) {
                    let there = $raw::from_c(&$crate::border::of_bytes(&bytes));
                    proptest::prop_assert_eq!($raw::from_c(&$raw::to_c(&there)), there);
                }
            )* }
        }
    };
    (@names $raw:ident $api:ident [$($done:tt)*] [$field:ident: $name:ident, $($rest:tt)*] $from:tt $to:tt) => {
        conversions! { @names $raw $api [$($done)* $field: $name,] [$($rest)*] $from $to }
    };
    (@names $raw:ident $api:ident [$($done:tt)*] [$field:ident, $($rest:tt)*] $from:tt $to:tt) => {
        conversions! { @names $raw $api [$($done)* $field: $field,] [$($rest)*] $from $to }
    };
    (@names $raw:ident $api:ident [$($field:ident: $name:ident,)*] [] [$($from:tt)*] [$($to:tt)*]) => {
        impl $raw {
            #[doc = concat!("What it is in `verbs-api`: a [`", stringify!($api), "`].")]
            pub fn from_c(raw: &Self) -> $api {
                conversions!(@from raw $api [$($field: $name,)*] $($from)*)
            }

            #[doc = concat!("What a [`", stringify!($api), "`] is in C. What that lacks is 0.")]
            #[allow(clippy::needless_update, reason = "some structures list all fields")]
            pub fn to_c(api: &$api) -> Self {
                conversions!(@to api [$($field: $name,)*] $($to)*)
            }
        }

        impl $crate::border::Border<$api> for $raw {
            fn from_c(raw: &Self) -> $api {
                $raw::from_c(raw)
            }

            fn to_c(api: &$api) -> Self {
                $raw::to_c(api)
            }
        }
    };
    (@from $raw:ident $api:ident [$($field:ident: $name:ident,)*] $($own:ident, $($other:ident: $value:expr),*)?) => {{
        $( let $own = $raw; )?
        let mut api = $api::default();
        $( api.$name = $crate::border::Border::from_c(&$raw.$field); )*
        $($( api.$other = $value; )*)?
        api
    }};
    (@to $api:ident [$($field:ident: $name:ident,)*] $($own:ident, $($other:ident: $value:expr),*)?) => {{
        $( let $own = $api; )?
        Self {
            $( $field: $crate::border::Border::to_c(&$api.$name), )*
            $($( $other: $value, )*)?
            ..Self::default()
        }
    }};
}
