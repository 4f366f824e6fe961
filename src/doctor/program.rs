//! What kind of program it is, and which libraries the loader would give it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use object::Endianness;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::which::which;

/// What was found of a program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// It gets the rights of another user or group, or capabilities: the loader then ignores
    /// `LD_PRELOAD` and `LD_LIBRARY_PATH`.
    pub(super) is_privileged: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// No such file is there, or it cannot be executed.
    Missing(String),
    /// It is not for this machine, or not of 64 bits.
    Foreign,
    Static,
    /// Its loader is not that of glibc.
    OtherLoader(PathBuf),
    Dynamic(Libraries),
}

/// What the loader says of a program under `exec`.
#[derive(Clone, Debug, Default)]
pub(super) struct Libraries {
    /// The files of libibverbs and librdmacm that the program and its libraries would get.
    pub(super) verbs: Vec<PathBuf>,
    /// The shared runtime of the address sanitizer.
    pub(super) has_asan: bool,
    /// Symbols and versions that the loader does not find.
    pub(super) missing: Vec<String>,
}

impl Program {
    /// Looks for a program as a shell does. For a script it is the interpreter.
    pub(super) fn find(name: &OsStr, environments: &Environments) -> Self {
        let path = which(name);
        let missing = |path: &Path, why: &str| Self {
            path: path.to_owned(),
            kind: Kind::Missing(why.to_owned()),
            is_privileged: false,
        };
        let Some(path) = path else {
            return missing(Path::new(name), "no such file");
        };
        let Ok(metadata) = fs::metadata(&path) else {
            return missing(&path, "no such file");
        };
        if metadata.permissions().mode() & 0o111 == 0 || !metadata.is_file() {
            return missing(&path, "it is not executable");
        }
        if let Some(interpreter) = interpreter_of_script(&path) {
            return Self::find(&interpreter, environments);
        }
        let is_privileged = metadata.mode() & 0o6000 != 0 || has_capabilities(&path);
        let kind = match loader(&path) {
            Err(()) => Kind::Foreign,
            Ok(None) => Kind::Static,
            Ok(Some(loader)) if is_of_glibc(&loader) => {
                Kind::Dynamic(libraries(&loader, &path, environments))
            }
            Ok(Some(loader)) => Kind::OtherLoader(loader),
        };
        Self {
            path,
            kind,
            is_privileged,
        }
    }
}

/// What a script names behind `#!`. Of `/usr/bin/env NAME` it is the name.
fn interpreter_of_script(path: &Path) -> Option<OsString> {
    let mut file = BufReader::new(fs::File::open(path).ok()?);
    let mut start = [0; 2];
    file.read_exact(&mut start).ok()?;
    if start != *b"#!" {
        return None;
    }
    let mut line = Vec::new();
    file.take(4096).read_until(b'\n', &mut line).ok()?;
    let mut words = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let first = words.next()?;
    let is_env = first.ends_with(b"/env");
    let is_option = |word: &&[u8]| word.starts_with(b"-") || word.contains(&b'=');
    let word = if is_env {
        words.find(|word| !is_option(word))?
    } else {
        first
    };
    Some(OsString::from_vec(word.to_vec()))
}

/// Whether a file has capabilities. A file system without them says no.
fn has_capabilities(path: &Path) -> bool {
    let mut room = [0_u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut room).is_ok()
}

/// The loader that a program names; `None` for a static one.
///
/// # Errors
/// The file is not a program of this machine.
fn loader(path: &Path) -> Result<Option<PathBuf>, ()> {
    let data = fs::read(path).map_err(drop)?;
    let header = FileHeader64::<Endianness>::parse(&*data).map_err(drop)?;
    let endian = header.endian().map_err(drop)?;
    let machine = match env::consts::ARCH {
        "x86_64" => object::elf::EM_X86_64,
        "aarch64" => object::elf::EM_AARCH64,
        _ => return Err(()),
    };
    if header.e_machine(endian) != machine {
        return Err(());
    }
    let headers = header.program_headers(endian, &*data).map_err(drop)?;
    let named = headers
        .iter()
        .find(|header| header.p_type(endian) == PT_INTERP);
    let Some(named) = named else { return Ok(None) };
    let name = named.data(endian, &*data).map_err(drop)?;
    let name = name.strip_suffix(&[0]).unwrap_or(name);
    Ok(Some(PathBuf::from(OsString::from_vec(name.to_vec()))))
}

fn is_of_glibc(loader: &Path) -> bool {
    let name = loader.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld-linux")
}

/// The variables for the loader: first without the preloaded library, then with it.
pub(super) type Environments = [Vec<(&'static str, OsString)>; 2];

/// Lets the loader list the libraries of a program, and look for each symbol. The program does not
/// run.
fn libraries(loader: &Path, program: &Path, environments: &Environments) -> Libraries {
    let [without, with] = environments.each_ref().map(|environment| {
        let listed = Command::new(loader)
            .arg(program)
            .envs(environment.iter().cloned())
            .env("LD_TRACE_LOADED_OBJECTS", "1")
            .env("LD_WARN", "1")
            .env("LD_BIND_NOW", "1")
            .output();
        listed.map_or_else(
            |_| Libraries::default(),
            |listed| {
                let texts = [&listed.stdout, &listed.stderr];
                let [out, err] = texts.map(|text| String::from_utf8_lossy(text));
                read_list(&format!("{out}\n{err}"))
            },
        )
    });
    // The loader does not say who needs a library that is preloaded.
    Libraries {
        missing: with.missing,
        ..without
    }
}

/// Reads what the loader lists: `NAME => PATH (ADDRESS)`, and
/// `undefined symbol: NAME, version VERSION`.
fn read_list(text: &str) -> Libraries {
    let mut libraries = Libraries::default();
    for line in text.lines().map(str::trim) {
        if let Some((name, path)) = line.split_once(" => ") {
            let path = path.split(" (0x").next().unwrap_or(path);
            if ["libibverbs.", "librdmacm."]
                .iter()
                .any(|of| name.starts_with(of))
            {
                libraries.verbs.push(PathBuf::from(path));
            }
            libraries.has_asan |= name.starts_with("libasan.");
        } else if let Some((_, symbol)) = line.split_once("undefined symbol: ") {
            let symbol = symbol.split(['\t', '(']).next().unwrap_or(symbol);
            libraries.missing.push(symbol.trim().to_owned());
        } else if line.contains(" not found (required by ")
            && let Some((_, version)) = line.split_once(": version `")
        {
            let version = version.split('\'').next().unwrap_or(version);
            libraries.missing.push(format!("version {version}"));
        }
    }
    libraries.missing.dedup();
    libraries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_the_loader_is_read() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\t/d/libibverbs.so.1 (0x00007f00)\n\
                    \tlibibverbs.so.1 => /d/libibverbs.so.1 (0x00007f00)\n\
                    \tlibasan.so.8 => /lib/libasan.so.8 (0x00007f01)\n\
                    ./p: /d/libibverbs.so.1: version `IBVERBS_1.99' not found (required by ./p)\n\
                    undefined symbol: ibv_new, version IBVERBS_1.99\t(./p)\n";
        let read = read_list(text);
        assert_eq!(read.verbs, [Path::new("/d/libibverbs.so.1")]);
        assert!(read.has_asan);
        let missing = ["version IBVERBS_1.99", "ibv_new, version IBVERBS_1.99"];
        assert_eq!(read.missing, missing);
    }
}
