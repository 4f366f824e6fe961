//! Every number that comes from C converts: a value without a name is `Unknown`.

/// Defines an enum over the numbers of a C enum, with a conversion that cannot fail.
///
/// Each variant has the number and the name it has in C without its common prefix.
macro_rules! c_enum {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $value:literal, $text:literal; )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )*
            /// A number this version has no name for.
            Unknown(u32),
        }

        impl $name {
            /// Every value that has a name, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in C without its common prefix, or `UNKNOWN`.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $text, )*
                    Self::Unknown(_) => "UNKNOWN",
                }
            }
        }

        impl Default for $name {
            /// The number 0, which C has where nothing is set.
            fn default() -> Self {
                Self::from(0)
            }
        }

        impl From<u32> for $name {
            fn from(raw: u32) -> Self {
                match raw {
                    $( $value => Self::$variant, )*
                    other => Self::Unknown(other),
                }
            }
        }

        impl From<$name> for u32 {
            fn from(value: $name) -> u32 {
                match value {
                    $( $name::$variant => $value, )*
                    $name::Unknown(raw) => raw,
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    Self::Unknown(raw) => write!(f, "UNKNOWN({raw})"),
                    named => f.write_str(named.name()),
                }
            }
        }
    };
}

pub(crate) use c_enum;
