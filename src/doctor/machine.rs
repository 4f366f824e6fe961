//! What the machine, or the container, permits.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::utsname::uname;

/// What the machine permits.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// `/proc` is mounted.
    pub(super) has_proc: bool,
    /// Bytes that a process may lock. `None`: no limit.
    pub(super) memlock: Option<u64>,
    /// Bytes that a file may have. `None`: no limit.
    pub(super) file_size: Option<u64>,
    /// Which processes Yama lets others trace: 0 is all of the user, 1 descendants, more is fewer.
    pub(super) yama: u8,
    /// A socket can have an address of the loopback interface.
    pub(super) has_loopback: bool,
    /// A user may make user namespaces.
    pub(super) has_user_namespaces: bool,
    /// How many processes and threads the container may have. `None`: no limit.
    pub(super) most_tasks: Option<u64>,
    /// A file can be made in the directory for temporary files.
    pub(super) has_temporary: bool,
    /// Release of the kernel.
    pub(super) kernel: String,
    /// Release of the machine's own rdma-core, if it has one.
    pub(super) rdma_core: Option<u32>,
    /// Why a program cannot run by a schedule, or what its run shares with others.
    pub(super) no_schedule: Option<String>,
}

impl Machine {
    /// Looks at the machine. `library` is the directory of the drop-in library.
    pub(super) fn look(library: &Path) -> Self {
        let limit = |resource| {
            let (soft, _) = getrlimit(resource).ok()?;
            (soft != nix::libc::RLIM_INFINITY).then_some(soft)
        };
        let namespaces = number("/proc/sys/user/max_user_namespaces").unwrap_or(0);
        let unprivileged = number("/proc/sys/kernel/unprivileged_userns_clone").unwrap_or(1);
        Self {
            has_proc: Path::new("/proc/self/fd").exists(),
            memlock: limit(Resource::RLIMIT_MEMLOCK),
            file_size: limit(Resource::RLIMIT_FSIZE),
            yama: number("/proc/sys/kernel/yama/ptrace_scope").unwrap_or(0) as u8,
            // As the drop-in does: each device has an address of its own.
            has_loopback: UdpSocket::bind(("127.77.77.77", 0)).is_ok_and(|socket| {
                socket.connect(("127.0.0.1", 9)).is_ok() && socket.send(&[]).is_ok()
            }),
            has_user_namespaces: namespaces > 0 && unprivileged > 0,
            most_tasks: number("/sys/fs/cgroup/pids.max"),
            has_temporary: tempfile().is_ok(),
            kernel: uname().map_or_else(
                |_| "unknown".to_owned(),
                |name| name.release().to_string_lossy().into_owned(),
            ),
            rdma_core: rdma_core(),
            no_schedule: no_schedule(library),
        }
    }
}

/// The number that a file of the kernel has. `max` is not one.
fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn tempfile() -> std::io::Result<()> {
    let path = std::env::temp_dir().join(format!("verbsim-doctor-{}", std::process::id()));
    fs::create_dir(&path)?;
    fs::remove_dir(&path)
}

/// Runs a program by a schedule: there are too many ways to forbid that to ask for each.
fn no_schedule(library: &Path) -> Option<String> {
    let run = || {
        Command::new(env::current_exe()?)
            .args(["exec", "--schedule", "0", "--library"])
            .arg(library.join("libibverbs.so.1"))
            .args(["--", "true"])
            .stdin(Stdio::null())
            .output()
    };
    let output = match run() {
        Ok(output) => output,
        Err(error) => return Some(error.to_string()),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let shares = text
        .lines()
        .find(|line| line.contains("shared the network"));
    let why = if output.status.success() {
        shares?
    } else {
        text.lines().last().unwrap_or("it ended without a reason")
    };
    let why = why.trim_start_matches("error: ");
    Some(why.trim_start_matches("verbsim: ").to_owned())
}

/// By the name of the library's file: `libibverbs.so.1.14.44.0` is of release 44.
fn rdma_core() -> Option<u32> {
    let places = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let found = places
        .iter()
        .find_map(|dir| fs::canonicalize(Path::new(dir).join("libibverbs.so.1")).ok())?;
    release(found.file_name()?.to_str()?)
}

fn release(file: &str) -> Option<u32> {
    let version = file.strip_prefix("libibverbs.so.1.")?;
    version.split('.').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_libibverbs_names_its_release() {
        assert_eq!(release("libibverbs.so.1.14.44.0"), Some(44));
        assert_eq!(release("libibverbs.so.1"), None);
        assert_eq!(release("libmlx5.so.1.24.44.0"), None);
    }
}
