//! Panics as failures, without a word on the standard error for each of the many that a search for
//! a short one makes.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// The last panic of this thread, while its panics are caught.
    static CAUGHT: RefCell<Option<Said>> = const { RefCell::new(None) };
}

/// What a panic said.
#[derive(Default)]
struct Said {
    place: String,
    message: String,
}

/// Runs `f`; a panic of this thread is an error that says what it said, and where.
pub(crate) fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let otherwise = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let ours = CAUGHT.with_borrow_mut(|caught| match caught {
                Some(said) => {
                    said.add(info);
                    true
                }
                None => false,
            });
            if !ours {
                otherwise(info);
            }
        }));
    });
    let before = CAUGHT.replace(Some(Said::default()));
    let result = panic::catch_unwind(AssertUnwindSafe(f));
    let said = CAUGHT.replace(before).unwrap_or_default();
    result.map_err(|_| format!("panicked{}: {}", said.place, said.message))
}

impl Said {
    fn add(&mut self, info: &panic::PanicHookInfo<'_>) {
        let text = info.payload().downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied());
        let message = text.unwrap_or("a panic without a message");
        // An executor passes on the panic of a task, with its name: the place is that of the task.
        if self.message.is_empty() || !message.ends_with(&self.message) {
            let at = info.location();
            let place = at.map(|at| format!(" at {}:{}", at.file(), at.line()));
            self.place = place.unwrap_or_default();
        }
        message.clone_into(&mut self.message);
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
    fn one_that_is_passed_on_has_the_place_of_the_first() {
        let error = caught(|| {
            let inner = || panic!("no cq {}", 7);
            let passed_on = panic::catch_unwind(inner).map_err(|_| ());
            passed_on.unwrap_or_else(|()| panic!("task reader: no cq 7"));
        });
        let line = line!() - 4;
        let said = format!("panics.rs:{line}: task reader: no cq 7");
        assert!(error.clone().unwrap_err().ends_with(&said), "{error:?}");
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
