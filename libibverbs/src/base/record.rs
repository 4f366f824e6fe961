//! Facts about this process for `verbsim exec`: whether it loaded the library, used a device, made
//! mistakes, and what was found at its end.
//!
//! Each fact is an entry in a record: memory that `exec` shares with all processes of the run. The
//! memory is mapped when the library is loaded. So a fact survives however the process ends
//! (`_exit`, `execve`, SIGKILL), and can be recorded whatever the process did before: closed its
//! descriptors or used them up, changed its user or root directory, limited the size of files.
//!
//! An entry is `NUMBER FACT\n` and a zero byte. The number is that of the process in this run.
//! `src/exec/verdict.rs` reads it. The last 16 bytes are two counters: where the next entry begins,
//! and how many processes have a number. The record is full if the first is beyond the entries.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::output::say;

/// The variable with the addresses of the records, separated by commas. The innermost `exec` comes
/// first.
pub(crate) const VARIABLE: &str = "VERBSIM_VERDICT";

/// The exit status by which `exec` reports that it could not do its work.
const NOT_GOOD: i32 = 99;

/// Bytes of the two counters.
const COUNTERS: usize = 16;

static RECORDS: OnceLock<Vec<Record>> = OnceLock::new();

/// This process has recorded that it opened a device.
static IS_OPENED: AtomicBool = AtomicBool::new(false);

/// This process has recorded that it has a queue pair.
static HAS_QUEUE_PAIR: AtomicBool = AtomicBool::new(false);

/// Records that the library has been loaded.
///
/// Ends the process if it cannot reach the record of an `exec` that waits for it: its mistakes
/// would be lost.
pub(crate) fn loaded() {
    let variable = std::env::var(VARIABLE).unwrap_or_default();
    let addresses = variable.split(',').filter_map(Address::parse);
    let records = addresses.filter_map(|address| {
        address
            .record()
            .unwrap_or_else(|why| refuse(&address, &why))
    });
    let records = RECORDS.get_or_init(|| records.collect());
    for record in records {
        record.introduce("loaded");
    }
}

/// Records, once, that a context has been opened or an object of the parent was named.
pub(crate) fn opened() {
    record_once(&IS_OPENED, "opened");
}

/// Records, once, that a queue pair has been created or opened.
pub(crate) fn has_queue_pair() {
    record_once(&HAS_QUEUE_PAIR, "queue_pair");
}

fn record_once(flag: &AtomicBool, fact: &str) {
    if !flag.swap(true, Ordering::Relaxed) {
        record(fact);
    }
}

/// Records that the program has a libibverbs or librdmacm of its own, and called nothing of this
/// library.
pub(crate) fn foreign(path: &Path) {
    record(&format!("foreign {}", path.display()));
}

/// Whether an `exec` reads what is recorded.
pub(crate) fn is_read() -> bool {
    !records().is_empty()
}

/// Records a mistake of the program, by the lines of its diagnosis. The diagnosis at the end
/// replaces them.
pub(crate) fn found(level: &str, lines: &str) {
    record(&format!("{level} {}", lines.trim_end()));
}

/// Records that the process ends and has written its diagnosis. A process that used no device and
/// made no mistake records nothing: there was nothing to diagnose.
pub(crate) fn ended(errors: usize, warnings: usize) {
    if IS_OPENED.load(Ordering::Relaxed) || errors + warnings > 0 {
        record(&format!("ended {errors} {warnings}"));
    }
}

/// Records that the process could not write `what`. `exec` tells the user; without it the process
/// does.
pub(crate) fn unwritten(what: &str) {
    if is_read() {
        record(&format!("unwritten {what}"));
    } else {
        say(what);
    }
}

/// Makes a child after `fork` another process: it gets a number when it has something to record.
pub(crate) fn after_fork() {
    for record in records() {
        record.number.store(0, Ordering::Relaxed);
    }
    IS_OPENED.store(false, Ordering::Relaxed);
    HAS_QUEUE_PAIR.store(false, Ordering::Relaxed);
}

fn records() -> &'static [Record] {
    RECORDS.get().map_or(&[], Vec::as_slice)
}

fn record(fact: &str) {
    for record in records() {
        record.say(fact);
    }
}

fn refuse(address: &Address, why: &io::Error) -> ! {
    say(format_args!(
        "the process cannot be diagnosed: the record of `verbsim exec` (process {}) cannot be reached: {why}",
        address.process
    ));
    // SAFETY: ends the process, whose program has not begun.
    unsafe { libc::_exit(NOT_GOOD) }
}

/// The memory of an `exec`, and the number of this process in it.
struct Record {
    memory: NonNull<u8>,
    size: usize,
    /// 0 until the process has one.
    number: AtomicU64,
}

// SAFETY: the memory stays mapped, and its counters are atomic. A thread that moves the first one
// owns the bytes that it passes.
unsafe impl Send for Record {}
// SAFETY: as above.
unsafe impl Sync for Record {}

impl Record {
    /// # Errors
    /// The file cannot be mapped.
    fn of_file(file: &File) -> io::Result<Self> {
        let size = file.metadata()?.len() as usize;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let (shared, fd) = (libc::MAP_SHARED, file.as_raw_fd());
        // SAFETY: maps memory at an address that the kernel chooses.
        let memory = unsafe { libc::mmap(null_mut(), size, rights, shared, fd, 0) };
        Self::of_memory(memory, size)
    }

    /// # Errors
    /// The segment cannot be attached.
    fn of_segment(id: i32, size: usize) -> io::Result<Self> {
        // SAFETY: attaches memory at an address that the kernel chooses.
        let memory = unsafe { libc::shmat(id, null(), 0) };
        Self::of_memory(memory, size)
    }

    /// # Errors
    /// The call has returned -1 and no memory.
    fn of_memory(memory: *mut c_void, size: usize) -> io::Result<Self> {
        match NonNull::new(memory.cast()).filter(|_| memory.addr() != usize::MAX) {
            Some(memory) if size > COUNTERS => Ok(Self {
                memory,
                size,
                number: AtomicU64::new(0),
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn say(&self, fact: &str) {
        let number = match self.number.load(Ordering::Relaxed) {
            0 => self.introduce("forked"),
            number => number,
        };
        self.append(&format!("{number} {fact}\n"));
    }

    /// Gives the process a number, and records its id and its name. Returns the number.
    fn introduce(&self, how: &str) -> u64 {
        let drawn = self.counter(1).fetch_add(1, Ordering::Relaxed) + 1;
        let (new, old) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.number.compare_exchange(0, drawn, new, old) {
            Ok(_) => {
                let name = prctl::get_name().unwrap_or_default();
                let name = name.to_string_lossy();
                self.append(&format!("{drawn} {how} {} {name}\n", std::process::id()));
                drawn
            }
            // Another thread was first, and records them.
            Err(number) => number,
        }
    }

    /// Appends an entry, unless the record is full. The counter shows `exec` that it is full.
    fn append(&self, entry: &str) {
        let [text @ .., end] = entry.as_bytes() else {
            return;
        };
        // The memory is zeroed, so the zero byte is there already.
        let length = entry.len() as u64 + 1;
        let at = self.counter(0).fetch_add(length, Ordering::Relaxed);
        let entries = (self.size - COUNTERS) as u64;
        // The counter has grown all the same, so `exec` sees that an entry was lost.
        if at.checked_add(length).is_none_or(|end| end > entries) {
            return;
        }
        // SAFETY: the bytes are within the memory, and no other entry has them.
        unsafe {
            let to = self.memory.as_ptr().add(at as usize);
            to.copy_from_nonoverlapping(text.as_ptr(), text.len());
            // An entry without its end is not read.
            fence(Ordering::Release);
            AtomicU8::from_ptr(to.add(text.len())).store(*end, Ordering::Relaxed);
        }
    }

    fn counter(&self, which: usize) -> &AtomicU64 {
        let at = self.size - COUNTERS + which * size_of::<u64>();
        // SAFETY: it is within the memory, which stays. Its address is a multiple of 8, since pages
        // begin and end at such addresses.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(at).cast()) }
    }
}

/// The address of the record of an `exec`.
struct Address {
    /// The process of the `exec`.
    process: i32,
    place: Place,
}

enum Place {
    /// A file whose descriptor the processes of the run inherit.
    File { fd: RawFd, id: FileId },
    /// A segment of System V, by its id.
    Segment(i32),
}

/// The device and inode of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file of a descriptor. `None` if no descriptor has this number.
    pub(crate) fn of(fd: RawFd) -> Option<Self> {
        let mut stat = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: there is room for the result. The call fails if no descriptor has the number.
        if unsafe { libc::fstat(fd, stat.as_mut_ptr()) } < 0 {
            return None;
        }
        // SAFETY: the call has filled it.
        let stat = unsafe { stat.assume_init() };
        Some(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
    }
}

impl Address {
    fn parse(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split(' ').collect();
        let (process, place) = match words[..] {
            [process, "shm", id] => (process, Place::Segment(id.parse().ok()?)),
            [process, fd, device, inode] => {
                let (device, inode) = (device.parse().ok()?, inode.parse().ok()?);
                let (fd, id) = (fd.parse().ok()?, FileId { device, inode });
                (process, Place::File { fd, id })
            }
            _ => return None,
        };
        let process = process.parse().ok()?;
        Some(Self { process, place })
    }

    /// The record, or `None` if the `exec` has ended.
    ///
    /// # Errors
    /// The `exec` is still there, and its record cannot be reached.
    fn record(&self) -> io::Result<Option<Record>> {
        let record = match self.place {
            Place::File { fd, id } => self.of_file(fd, id),
            // Such a record exists where a limit on file sizes leaves no room for a file.
            Place::Segment(id) => self.of_segment(id),
        };
        match record {
            // A daemon may outlive the `exec` that started it.
            Err(_) if self.is_gone() => Ok(None),
            record => record,
        }
    }

    fn of_file(&self, fd: RawFd, id: FileId) -> io::Result<Option<Record>> {
        let is_its = |file: &File| FileId::of(file.as_raw_fd()) == Some(id);
        // SAFETY: the program may have closed the descriptor or used its number for another file.
        // It is not closed here.
        let inherited = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        if is_its(&inherited) {
            return Record::of_file(&inherited).map(Some);
        }
        // The parent of this process may close all descriptors, as Python's `subprocess` and
        // `mpirun` do.
        let process = format!("/proc/{}", self.process);
        let path = format!("{process}/fd/{fd}");
        match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) if is_its(&file) => Record::of_file(&file).map(Some),
            // The `exec` has ended, and another process has its number now.
            Ok(_) => Ok(None),
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && Path::new(&process).exists() =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn of_segment(&self, id: i32) -> io::Result<Option<Record>> {
        let mut about = MaybeUninit::<libc::shmid_ds>::zeroed();
        // SAFETY: there is room for the result.
        if unsafe { libc::shmctl(id, libc::IPC_STAT, about.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has filled it.
        let about = unsafe { about.assume_init() };
        // The segment was removed, and another process has made one with the same id.
        if about.shm_cpid != self.process {
            return Ok(None);
        }
        Record::of_segment(id, about.shm_segsz).map(Some)
    }

    fn is_gone(&self) -> bool {
        kill(Pid::from_raw(self.process), None) == Err(Errno::ESRCH)
    }
}
