//! Panics as failures, without a word on the standard error for each of the many that a search for
//! a short one makes.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// What the panic of this thread said, while its panics are caught.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `f`; a panic of this thread is an error that says what it said, and where.
pub(crate) fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let otherwise = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let ours = CAUGHT.with_borrow_mut(|caught| match caught {
                Some(said) => {
                    *said = words(info);
                    true
                }
                None => false,
            });
            if !ours {
                otherwise(info);
            }
        }));
    });
    let before = CAUGHT.replace(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(f));
    let said = CAUGHT.replace(before).unwrap_or_default();
    result.map_err(|_| said)
}

fn words(info: &panic::PanicHookInfo<'_>) -> String {
    let text = info.payload().downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied());
    let message = text.unwrap_or("a panic without a message");
    match info.location() {
        Some(at) => format!("panicked at {}:{}: {message}", at.file(), at.line()),
        None => format!("panicked: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_that_says_what_it_said_and_where() {
        let error = caught(|| panic!("no cq {}", 7)).unwrap_err();
        assert!(error.starts_with("panicked at "), "{error}");
        let line = line!() - 2;
        assert!(
            error.ends_with(&format!("panics.rs:{line}: no cq 7")),
            "{error}"
        );
        assert_eq!(caught(|| 7), Ok(7));
    }

    #[test]
    fn one_within_another_leaves_the_outer_one_its_own() {
        let outer = caught(|| {
            assert!(caught(|| panic!("inner")).unwrap_err().contains("inner"));
            panic!("outer");
        });
        let outer: Result<(), _> = outer;
        assert!(outer.unwrap_err().contains("outer"));
    }
}
