//! Where processes put the files of their devices: what Linux shows below `/sys` and `/dev`.
//!
//! Each process has a directory of its own, since addresses of devices differ from process to
//! process. It removes that at its end; what a process leaves that a signal ends, [`sweep`]
//! removes.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, io, process};

/// The directory of this process, which need not be there yet. Its name has the process, when it
/// was started, and the namespace in which its number counts.
pub fn own() -> PathBuf {
    let id = process::id();
    let start = start_of(id).unwrap_or_default();
    parent().join(format!("{}-{id}-{start}", namespace().unwrap_or_default()))
}

/// Makes the directory of this process. Others may read it.
///
/// # Errors
/// It cannot be made, or another user has made the directory around it.
pub fn make(own: &Path) -> io::Result<()> {
    let dir = |path: &Path| match fs::DirBuilder::new().mode(0o755).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    };
    let (parent, user) = (parent(), user()?);
    loop {
        dir(parent)?;
        let is_ours = |found: fs::Metadata| {
            found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0
        };
        if !fs::symlink_metadata(parent).map_or(true, is_ours) {
            return Err(io::Error::other("others can write the directory"));
        }
        match dir(own) {
            // Another process has removed the directory around it, which was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            made => return made,
        }
    }
}

/// Removes the directory of this process.
pub fn remove(own: &Path) {
    let _ = fs::remove_dir_all(own);
    // Others may still have theirs.
    let _ = fs::remove_dir(parent());
}

/// Removes the directories of processes that have ended.
pub fn sweep() {
    let Some(namespace) = namespace() else { return };
    let parent = parent();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let parts: Option<Vec<u64>> = name.to_str().and_then(|name| {
            let parts = name.split('-').map(|part| part.parse().ok());
            parts.collect()
        });
        let Some([of, id, start]) = parts.as_deref() else {
            continue;
        };
        let runs = u32::try_from(*id).ok().and_then(start_of) == Some(*start);
        if *of == namespace && !runs {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let _ = fs::remove_dir(parent);
}

/// The directory around those of processes. It stays the same whatever a program changes later: its
/// user, or the variable that names the directory for temporary files.
///
/// Without that variable it is in memory: on a disk these many small files take most of the time
/// that a device takes to open.
fn parent() -> &'static Path {
    static PARENT: OnceLock<PathBuf> = OnceLock::new();
    PARENT.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let is_open = fs::metadata(memory).is_ok_and(|found| found.mode() & 0o1007 == 0o1007);
        let name = format!("verbsim-devices-{}", user().unwrap_or_default());
        if is_open && env::var_os("TMPDIR").is_none() {
            memory.join(name)
        } else {
            env::temp_dir().join(name)
        }
    })
}

/// The user of this process.
fn user() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

/// The namespace of process numbers. `None` without `/proc`.
fn namespace() -> Option<u64> {
    Some(fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

/// When a process was started, in ticks since the machine was. `None` if it has ended.
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program can have any byte, and is in parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?;
    let start = words.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directories_of_processes_that_have_ended_are_swept() {
        let mut child = process::Command::new("true").spawn().unwrap();
        let id = child.id();
        let start = start_of(id).or_else(|| start_of(process::id())).unwrap();
        child.wait().unwrap();
        let ended = parent().join(format!("{}-{id}-{start}", namespace().unwrap()));
        let elsewhere = parent().join(format!("1-{id}-{start}"));
        for dir in [&own(), &ended, &elsewhere] {
            make(dir).unwrap();
            fs::write(dir.join("file"), "").unwrap();
        }
        sweep();
        assert!(own().exists() && elsewhere.exists() && !ended.exists());
        fs::remove_dir_all(elsewhere).unwrap();
        remove(&own());
        assert!(!own().exists());
    }
}
