//! Where a shell would find a program.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The file of a program. A name without a slash is looked up in the directories of `PATH`.
pub(crate) fn which(name: &OsStr) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return fs::canonicalize(name).ok();
    }
    let all = env::var_os("PATH")?;
    let found = env::split_paths(&all).map(|dir| dir.join(name));
    let is_program = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    };
    found
        .filter(is_program)
        .find_map(|path| fs::canonicalize(path).ok())
}
