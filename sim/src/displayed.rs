//! Enums whose variants have a text each.

/// An enum with the text of each variant as its `Display`. A text refers to fields by name, and a
/// row names a field that has no name in the enum.
macro_rules! displayed {
    (
        $(#[$meta:meta])*
        $visible:vis enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident $( ($inner:ident: $of:ty) )?
                $( { $($field:ident: $type:ty),* $(,)? } )? = $text:literal;
            )*
        }
    ) => {
        $(#[$meta])*
        $visible enum $name {
            $( $(#[$doc])* $variant $( ($of) )? $( { $($field: $type),* } )?, )*
        }

        impl core::fmt::Display for $name {
            #[allow(unused_variables, reason = "a text need not refer to each field")]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $( Self::$variant $( ($inner) )? $( { $($field),* } )? => write!(f, $text), )*
                }
            }
        }
    };
}

pub(crate) use displayed;
