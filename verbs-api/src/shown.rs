//! `Debug` that says what `Display` says: of names, and of errors, which tests unwrap.

/// Lets the `Debug` of types be their `Display`.
macro_rules! debug_is_display {
    ($($name:ty),* $(,)?) => { $(
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )* };
}

pub(crate) use debug_is_display;
