//! What a place of the program is called: its file and line, for the diagnosis.
//!
//! Only what the process has loaded says that, so it is found here and not by who reads the diagnosis.

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::ptr::with_exposed_provenance_mut;

use verbs_api::site::Site;

/// Their functions are part of the program that includes them, which is not where it calls a verb.
const HEADERS: [&str; 2] = ["verbs.h", "rdma_verbs.h"];

/// A place as it is to be read, such as `client.c:17`. Without debug information it is the function and its object, or
/// what `addr2line` would take.
#[allow(dead_code, reason = "the diagnosis is to call it")]
pub(crate) fn name(site: Site) -> String {
    match site {
        Site::Address(address) => line(address).unwrap_or_else(|| function(address)),
        _ => site.to_string(),
    }
}

/// The line of the call that returns there.
fn line(address: usize) -> Option<String> {
    let mut found = None;
    // What is inline comes before what it is part of. The crate looks at the byte before the address.
    backtrace::resolve(with_exposed_provenance_mut(address), |symbol| {
        let (Some(path), Some(line)) = (symbol.filename(), symbol.lineno()) else {
            return;
        };
        let file = file_name(path);
        if found.is_none() && !HEADERS.contains(&&*file) {
            found = Some(format!("{file}:{line}"));
        }
    });
    found
}

/// The function of the call that returns there, and the file that it is in.
fn function(address: usize) -> String {
    let mut function = None;
    backtrace::resolve(with_exposed_provenance_mut(address), |symbol| {
        function = symbol.name().map(|name| name.to_string());
    });
    match (function, object(address)) {
        (Some(function), Some((object, _))) => format!("{function} in {object}"),
        (Some(function), None) => function,
        (None, Some((object, offset))) => format!("{object}+{offset:#x}"),
        (None, None) => Site::Address(address).to_string(),
    }
}

/// The program or library that has the address, and how far from its start that is.
fn object(address: usize) -> Option<(String, usize)> {
    let address: *mut c_void = with_exposed_provenance_mut(address);
    // SAFETY: zero bytes are null pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: looks the address up; the structure is ours to be filled.
    if unsafe { libc::dladdr(address, &mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a name with an end, which stays as long as what was loaded from it.
    let path = unsafe { CStr::from_ptr(found.dli_fname) };
    let file = file_name(Path::new(&*path.to_string_lossy()));
    Some((file, address.addr() - found.dli_fbase.addr()))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
