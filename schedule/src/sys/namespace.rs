//! System calls for namespaces.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use super::{checked, owned};

/// Does something in a copy of this process, which then ends. This process must have one thread.
pub(crate) fn try_in_copy(work: fn() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: this process has one thread, so that its copy can do what it can do.
    match unsafe { libc::fork() } {
        0 => {
            let error = work()
                .err()
                .map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
            // SAFETY: ends the copy. What this process has registered for its end is not for it.
            unsafe { libc::_exit(error) }
        }
        -1 => Err(io::Error::last_os_error()),
        pid => loop {
            match waitpid(Pid::from_raw(pid), None) {
                Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
                Ok(WaitStatus::Exited(_, error)) => {
                    return Err(io::Error::from_raw_os_error(error));
                }
                Ok(_) => return Err(io::Error::from_raw_os_error(libc::EPERM)),
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        },
    }
}

/// Gives up all capabilities.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    /// As the kernel has it: `_LINUX_CAPABILITY_VERSION_3`, and this process.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    const NONE: [u32; 6] = [0; 6];
    // SAFETY: the kernel reads a header and the sets of its version.
    let result = unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), NONE.as_ptr()) };
    checked(result).map(drop)
}

/// Starts the loopback interface of a new network.
pub(crate) fn start_loopback() -> io::Result<()> {
    // SAFETY: the arguments are numbers.
    let socket = owned(unsafe {
        libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0).into()
    })?;
    // SAFETY: zeros are a request without a name.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as _;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as _;
    // SAFETY: the kernel reads a request.
    let result = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
