//! Names of places in the program, for the diagnosis.
//!
//! They are found here and not by the reader of the diagnosis, because only the process knows what it
//! has loaded.

use std::ptr::with_exposed_provenance_mut;

use verbs_api::site::Site;

use crate::c::symbols::{Line, MOST_CALLS, Source, lines, object, resolve};

/// The name of a place, such as `client.c:17`. Without debug information it is the function and its
/// object, or the argument for `addr2line`.
pub(crate) fn name(site: Site) -> String {
    let of_call = |address| line(address).unwrap_or_else(|| function(address));
    match site {
        Site::Address(address) => of_call(address),
        Site::Calls(calls) => of_call(calls.innermost()),
        _ => site.to_string(),
    }
}

/// The name of a place with the known lines of the calls around it: `client.c:17, from client.c:40`.
pub(crate) fn name_with_calls(site: Site) -> String {
    let around = around(site).into_iter();
    let around: String = around.map(|line| format!(", from {line}")).collect();
    name(site) + &around
}

/// The lines of the calls around a place, from the inside out. Inlined calls are known for any place,
/// others only if they were noted.
pub(crate) fn around(site: Site) -> Vec<String> {
    let (place, around) = outwards(site);
    let lines = place.into_iter().skip(1).chain(around);
    lines
        .take(MOST_CALLS)
        .map(|line| line.to_string())
        .collect()
}

/// The lines of source of a place and of the calls around it, from the inside out, as far as debug
/// information has them.
pub(crate) fn sources(site: Site) -> Vec<Source> {
    let (place, around) = outwards(site);
    let lines = place.into_iter().chain(around).take(MOST_CALLS);
    lines.map(|line| line.source).collect()
}

/// The lines of a place, and those of the calls around it, from the inside out.
fn outwards(site: Site) -> (Vec<Line>, Vec<Line>) {
    let (place, around) = match site {
        Site::Calls(calls) => (calls.innermost(), calls.around()),
        Site::Address(address) => (address, &[][..]),
        _ => return Default::default(),
    };
    let of_program = around.iter().filter(|address| !is_of_system(**address));
    let around = of_program.flat_map(|address| lines_of_program(*address));
    (lines_of_program(place), around.collect())
}

/// Whether it is in the code that starts programs and threads.
fn is_of_system(address: usize) -> bool {
    let object = object(address)
        .map(|(object, _)| object)
        .unwrap_or_default();
    ["libc.so", "libpthread.so", "ld-linux"]
        .iter()
        .any(|name| object.starts_with(name))
}

/// The line of the call that returns there.
fn line(address: usize) -> Option<String> {
    let lines = lines(address);
    let of_program = lines.iter().find(|line| line.is_of_program());
    let line = of_program.or_else(|| lines.iter().find(|line| !line.is_of_header()))?;
    Some(line.to_string())
}

/// The lines of the call that returns there, without those of headers and of the C++ library.
fn lines_of_program(address: usize) -> Vec<Line> {
    let lines = lines(address).into_iter();
    lines.filter(Line::is_of_program).collect()
}

/// The function of the call that returns there, and its program or library.
fn function(address: usize) -> String {
    let mut function = None;
    resolve(with_exposed_provenance_mut(address), |symbol| {
        function = symbol.name().map(|name| name.to_string());
    });
    match (function, object(address)) {
        (Some(function), Some((object, _))) => format!("{function} in {object}"),
        (Some(function), None) => function,
        (None, Some((object, offset))) => format!("{object}+{offset:#x}"),
        (None, None) => Site::Address(address).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_its_line() {
        let line = line!() + 2;
        #[inline(never)]
        fn here() -> usize {
            // The return address of a call that is the first instruction.
            here as *const () as usize + 1
        }
        let named = |address| name(Site::Address(address));
        assert_eq!(named(here()), format!("place.rs:{line}"));
        assert_eq!(named(1), "0x1");
        assert_eq!(name(Site::here()), format!("{}:{}", file!(), line!()));
        let (object, offset) = object(here()).unwrap();
        assert!(object.starts_with("verbsim_ibverbs-") && offset > 0);
    }
}
