//! Where the drop-in library is: a directory in which it has the names that programs look for, and
//! which outlives them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use nix::unistd::{Gid, Group, User, getuid};
use object::{Object, ObjectSymbol, ReadCache};

use crate::output::Stop;

/// Names by which programs look for the library, which is librdmacm too.
pub(super) const NAMES: [&str; 4] = [
    "libibverbs.so.1",
    "libibverbs.so",
    "librdmacm.so.1",
    "librdmacm.so",
];

/// File name of the library as cargo builds it.
const BUILT: &str = "libverbsim_ibverbs.so";

/// Where installed packages have it under all of its names, from the directory of the program.
const PACKAGED: &str = "../lib/verbsim/libibverbs.so.1";

/// What the library exports and no other does.
const MARK: &str = "VERBSIM_DROP_IN";

/// The library that this program carries.
#[cfg(feature = "bundled")]
const BUNDLED: Option<&[u8]> = Some(include_bytes!(env!("BUNDLED_LIBRARY")));
#[cfg(not(feature = "bundled"))]
const BUNDLED: Option<&[u8]> = None;

/// The directory for the loader, of the library that was chosen or that this program came with.
///
/// # Errors
/// There is no library, or the file is not a drop-in. Without a drop-in the program would run on
/// the devices of the machine.
pub(crate) fn directory(chosen: Option<&Path>) -> Result<PathBuf, Stop> {
    if let Some(chosen) = chosen {
        return named(chosen).map_err(|problem| about(chosen, problem));
    }
    let program = env::current_exe().map_err(|error| Stop::usage(error.to_string()))?;
    let [built, packaged] = [BUILT, PACKAGED].map(|place| program.with_file_name(place));
    if packaged.exists() {
        return in_package(&packaged).map_err(|problem| about(&packaged, problem));
    }
    if let Some(bundled) = BUNDLED {
        return cached(bundled).map_err(Stop::Usage);
    }
    if built.exists() {
        return named(&built).map_err(|problem| about(&built, problem));
    }
    Err(Stop::usage(format!(
        "the drop-in for libibverbs is neither {} nor {}; `cargo build --package verbs-libibverbs` \
         builds it (with --release for a program built so), --library names one elsewhere",
        built.display(),
        packaged.display()
    )))
}

/// The directory that a package has installed. Its other names are small libraries that need the
/// drop-in: a wheel has no symbolic links, and copies would be several simulators in a process.
fn in_package(library: &Path) -> Result<PathBuf, String> {
    let library = library.canonicalize().map_err(in_words)?;
    check(&library)?;
    let dir = library.parent().expect("a file is in a directory");
    Ok(dir.to_owned())
}

fn about(library: &Path, problem: String) -> Stop {
    Stop::Usage(format!(
        "the drop-in for libibverbs: {}: {problem}",
        library.display()
    ))
}

/// A directory in which the library has all its names: its own, one next to it, or a copy.
fn named(library: &Path) -> Result<PathBuf, String> {
    let library = &library.canonicalize().map_err(in_words)?;
    check(library)?;
    let (Some(own), Some(file)) = (library.parent(), library.file_name()) else {
        return Err("it is not a file".to_owned());
    };
    let has_names = |dir: &Path| {
        NAMES.iter().all(|name| {
            let found = dir.join(name).canonicalize();
            found.is_ok_and(|found| found == *library)
        })
    };
    if has_names(own) && check_private(own).is_ok() {
        return Ok(own.to_owned());
    }
    let names = library.with_extension("names");
    // Where it cannot be written, leads elsewhere, or is not the user's alone, there is the copy.
    let linked = link(&names, &Path::new("..").join(file));
    if linked.and_then(|()| check_private(&names)).is_ok() && has_names(&names) {
        return Ok(names);
    }
    cached(&fs::read(library).map_err(in_words)?)
}

/// Whether it is the drop-in: one that was built without its linker is empty.
fn check(library: &Path) -> Result<(), String> {
    let file = fs::File::open(library).map_err(in_words)?;
    let cache = ReadCache::new(file);
    let file =
        object::File::parse(&cache).map_err(|error| format!("it is not a library: {error}"))?;
    let mut names = file.dynamic_symbols().filter_map(|of| of.name().ok());
    if names.any(|name| name == MARK) {
        return Ok(());
    }
    let why = "it is not the drop-in of verbsim, or was built empty, as without the linker lld";
    Err(why.to_owned())
}

/// Makes a directory with the names, if they are not there yet.
fn link(dir: &Path, target: &Path) -> io::Result<()> {
    if let Err(error) = fs::DirBuilder::new().mode(0o755).create(dir)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    for name in NAMES {
        match symlink(target, dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A directory with a copy of a library under its names, in the user's cache, or in the directory
/// for temporary files where that cannot be. It is made once for each content, and stays.
fn cached(bytes: &[u8]) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let key = format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish());
    let absolute =
        |name: &str| Some(PathBuf::from(env::var_os(name)?)).filter(|dir| dir.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let temporary = env::temp_dir().join(format!("verbsim-{}", getuid()));
    let places = [cache.map(|cache| cache.join("verbsim")), Some(temporary)];
    let mut problems = Vec::new();
    for place in places.into_iter().flatten() {
        match copied(&place, &key, bytes) {
            Ok(dir) => return Ok(dir),
            Err(error) => problems.push(format!("{}: {error}", place.display())),
        }
    }
    Err(problems.join("; "))
}

fn copied(place: &Path, key: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(place)?;
    check_private(place)?;
    let dir = place.join(key);
    let is_whole = || {
        let copy = fs::metadata(dir.join(NAMES[0]));
        copy.is_ok_and(|copy| copy.len() == bytes.len() as u64)
    };
    if !is_whole() {
        let made = place.join(format!("{key}.{}", process::id()));
        let make = || {
            fs::DirBuilder::new().mode(0o755).create(&made)?;
            fs::write(made.join(NAMES[0]), bytes)?;
            for other in &NAMES[1..] {
                symlink(NAMES[0], made.join(other))?;
            }
            fs::rename(&made, &dir)
        };
        if let Err(error) = make() {
            let _ = fs::remove_dir_all(&made);
            // Another process may have been faster.
            if !is_whole() {
                return Err(error);
            }
        }
    }
    Ok(dir)
}

/// Checks that no other user can put a library into a directory, or another directory in its place.
/// Root may do everything anyway.
fn check_private(dir: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let is_own = |found: &fs::Metadata| [0, getuid().as_raw()].contains(&found.uid());
    let others_write = |found: &fs::Metadata| {
        let by_group = found.mode() & 0o020 != 0 && !is_of_user_alone(found.gid());
        by_group || found.mode() & 0o002 != 0
    };
    let found = fs::symlink_metadata(dir)?;
    let parent = fs::metadata(dir.parent().unwrap_or(dir))?;
    // What is in a sticky directory can be replaced by its owner alone.
    let is_kept = parent.mode() & STICKY != 0 || !others_write(&parent);
    if is_own(&found) && !others_write(&found) && is_own(&parent) && is_kept {
        Ok(())
    } else {
        Err(io::Error::other("another user can change it"))
    }
}

/// Whether a group has no other user. Some systems give each user such a group, which may write
/// what the user makes.
fn is_of_user_alone(group: u32) -> bool {
    let user = User::from_uid(getuid()).ok().flatten();
    let group = Group::from_gid(Gid::from_raw(group)).ok().flatten();
    user.zip(group).is_some_and(|(user, group)| {
        let has_others = group.mem.iter().any(|member| *member != user.name);
        user.gid == group.gid && user.name == group.name && !has_others
    })
}

fn in_words(error: io::Error) -> String {
    error.to_string()
}
