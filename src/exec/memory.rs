//! Memory that this process shares with the processes of the program, whatever these do.
//!
//! It is a file without a name: the processes inherit its descriptor, and those whose parent closes
//! all descriptors open it under `/proc`. A limit on the size of files applies to it. Where that
//! leaves no room, the memory is a segment of System V, which has no such limit. Processes of other
//! users can reach a file that they inherit, but no segment.
#![expect(unsafe_code, reason = "segments of System V have no safe interface")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process;
use std::ptr::{null, null_mut};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, SealFlag, fcntl};
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::ftruncate;
use verbs_sim::Guarded;

const NAME: &str = "verbsim-verdict";

/// Memory, of zeros at first. It is gone with the last process that has it.
pub(super) enum Memory {
    File(Guarded<File>),
    Segment(Segment),
}

/// A segment of System V.
pub(super) struct Segment {
    id: i32,
    size: usize,
    memory: *const u8,
}

impl Memory {
    /// Memory of `size` bytes. Only the bytes that are used take memory.
    ///
    /// # Errors
    /// The system has none.
    pub(super) fn new(size: usize) -> io::Result<Self> {
        let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
        if limit < size as u64 {
            return Segment::new(size).map(Self::Segment);
        }
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        // Programs expect the low numbers to be free.
        let file = Guarded::raise(File::from(memfd_create(NAME, flags)?))?;
        let fd = own(&file)?;
        ftruncate(fd, size as i64)?;
        // If the program changed the size, its processes would end by SIGBUS.
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW;
        fcntl(fd, FcntlArg::F_ADD_SEALS(seals))?;
        fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(Self::File(file))
    }

    /// How a process finds it: `PID FD DEVICE INODE`, or `PID shm ID`.
    ///
    /// # Errors
    /// The kernel does not say which file it is.
    pub(super) fn address(&self) -> io::Result<String> {
        let process = process::id();
        Ok(match self {
            Self::File(file) => {
                let (fd, file) = (own(file)?.as_raw_fd(), own(file)?.metadata()?);
                format!("{process} {fd} {} {}", file.dev(), file.ino())
            }
            Self::Segment(segment) => format!("{process} shm {}", segment.id),
        })
    }

    /// What it has now.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::File(file) => {
                let file = own(file)?;
                let mut bytes = vec![0; file.metadata()?.len() as usize];
                file.read_exact_at(&mut bytes, 0)?;
                Ok(bytes)
            }
            Self::Segment(segment) => Ok(segment.bytes()),
        }
    }

    /// Whether a line of `/proc/PID/maps` is of this memory.
    pub(super) fn is_in(&self, line: &str) -> bool {
        let (number, name) = match self {
            Self::File(file) => {
                let file = own(file).and_then(File::metadata);
                (file.map_or(0, |file| file.ino()), NAME)
            }
            Self::Segment(segment) => (segment.id as u64, "/SYSV"),
        };
        line.contains(name) && line.contains(&format!(" {number} "))
    }
}

fn own(file: &Guarded<File>) -> io::Result<&File> {
    Ok(file.own().ok_or(Errno::EBADF)?)
}

impl Segment {
    fn new(size: usize) -> io::Result<Self> {
        // SAFETY: makes a segment that no other process knows yet.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, size, 0o600) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: attaches it where the kernel chooses.
        let memory = unsafe { libc::shmat(id, null(), 0) };
        // It stays as long as a process has it, and others can still attach it.
        // SAFETY: the command takes no structure.
        unsafe { libc::shmctl(id, libc::IPC_RMID, null_mut()) };
        if memory.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        let memory = memory.cast_const().cast();
        Ok(Self { id, size, memory })
    }

    fn bytes(&self) -> Vec<u8> {
        // Other processes may write at the same time.
        // SAFETY: the bytes are those of the segment, which stays attached.
        let byte = |at| unsafe { self.memory.add(at).read_volatile() };
        (0..self.size).map(byte).collect()
    }
}
