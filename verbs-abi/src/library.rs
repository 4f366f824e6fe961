//! The libraries of the machine, opened at run time: a program runs where there are none, and needs
//! no package to be built.
//!
//! libibverbs is opened with the first look for devices, librdmacm with the first call that needs
//! it. Plain symbols are those of the versions that programs of today are linked with.

use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use crate::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq, ibv_device,
    ibv_device_attr, ibv_ece, ibv_gid, ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp,
    ibv_qp_attr, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq, ibv_srq_attr,
    ibv_srq_init_attr, rdma_cm_event, rdma_cm_id, rdma_conn_param, rdma_event_channel,
};

/// Names another libibverbs: a file, or what the dynamic linker is to look for.
pub const VARIABLE: &str = "VERBSIM_LIBIBVERBS";

/// Names another librdmacm, in the same way. Without it the librdmacm of another libibverbs is that
/// file itself, if it has the functions, or else the librdmacm next to it, because the machine's
/// librdmacm does not know the other's devices.
pub const RDMACM_VARIABLE: &str = "VERBSIM_LIBRDMACM";

/// Why a library could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// The library is missing.
    Absent(String),
    /// Something else is there.
    Wrong(String),
}

impl fmt::Display for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Absent(reason) | Self::Wrong(reason)) = self;
        f.write_str(reason)
    }
}

impl Error for Unopened {}

/// The library is older than this function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(pub &'static str);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let library = if self.0.starts_with("rdma_") {
            "librdmacm"
        } else {
            "libibverbs"
        };
        let function = self.0;
        write!(
            f,
            "the {library} of this machine is too old: it has no {function}"
        )
    }
}

impl Error for Missing {}

/// Opens libibverbs, if it is not open yet.
///
/// # Errors
/// Says what is in the way.
pub fn open_libibverbs() -> Result<(), &'static Unopened> {
    LIBIBVERBS
        .get_or_init(|| {
            let name = named(VARIABLE)?.unwrap_or_else(|| "libibverbs.so.1".into());
            open("libibverbs", &name)
        })
        .as_ref()
        .map(drop)
}

/// The file of the open libibverbs; `None` if it is not open, or has no file.
pub fn file_of_libibverbs() -> Option<PathBuf> {
    let opened = LIBIBVERBS.get()?.as_ref().ok()?;
    let inside = opened.ibv_get_device_list as usize;
    // A line has the addresses of a mapping, and at its end the file without symbolic links.
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let is_it = |line: &&str| {
        let ends = line.split(' ').next().and_then(|ends| ends.split_once('-'));
        let ends = ends.map(|(from, to)| [from, to].map(|end| usize::from_str_radix(end, 16)));
        matches!(ends, Some([Ok(from), Ok(to)]) if (from..to).contains(&inside))
    };
    let line = maps.lines().find(is_it)?;
    Some(line[line.find('/')?..].into())
}

/// Opens librdmacm, if it is not open yet, and libibverbs before it.
///
/// # Errors
/// Says what is in the way.
pub fn open_librdmacm() -> Result<(), &'static Unopened> {
    open_libibverbs()?;
    LIBRDMACM.get_or_init(librdmacm).as_ref().map(drop)
}

fn librdmacm() -> Result<Librdmacm, Unopened> {
    let (what, usual) = ("librdmacm", "librdmacm.so.1");
    let opened: Librdmacm = match (named(RDMACM_VARIABLE)?, named(VARIABLE)?) {
        (Some(name), _) => open(what, &name),
        (None, None) => open(what, usual.as_ref()),
        (None, Some(verbs)) => open(what, &verbs).or_else(|_| {
            let sibling = Path::new(&verbs).with_file_name(usual);
            open(what, sibling.as_os_str())
        }),
    }?;
    let ours = Libibverbs::opened().ibv_get_device_list as *const c_void;
    // SAFETY: it is only compared.
    let theirs = unsafe { opened._library.get::<*const c_void>("ibv_get_device_list") };
    // Its objects would go to functions that did not make them.
    if !theirs.is_ok_and(|theirs| *theirs == ours) {
        let reason = format!("{what} is of another libibverbs ({RDMACM_VARIABLE} names another)");
        return Err(Unopened::Wrong(reason));
    }
    Ok(opened)
}

/// The library that a variable names.
fn named(variable: &str) -> Result<Option<OsString>, Unopened> {
    match env::var_os(variable) {
        // The program itself would be opened.
        Some(name) if name.is_empty() => Err(Unopened::Wrong(format!("{variable} is empty"))),
        name => Ok(name),
    }
}

/// A table of functions.
trait Table: Sized {
    /// # Errors
    /// The name of a function that is not there.
    fn of(library: Library) -> Result<Self, &'static str>;
}

fn open<T: Table>(what: &str, name: &OsStr) -> Result<T, Unopened> {
    if cfg!(target_feature = "crt-static") {
        let reason = format!("{what} cannot be opened by a program that is linked statically");
        return Err(Unopened::Absent(reason));
    }
    // SAFETY: opening libibverbs and librdmacm is safe, and another file is in their place only on
    // purpose.
    let library = unsafe { Library::new(name) }.map_err(|error| {
        let why = error
            .source()
            .map_or_else(|| error.to_string(), ToString::to_string);
        let reason = format!("{what} cannot be opened: {why}");
        // A name without a directory is looked for.
        if Path::new(name).exists() {
            Unopened::Wrong(reason)
        } else {
            Unopened::Absent(reason)
        }
    })?;
    let lacking = |function| format!("{} is not {what}: it has no {function}", name.display());
    T::of(library).map_err(|function| Unopened::Wrong(lacking(function)))
}

/// Declares a table of functions, and the functions of the same names that call it. What is `later`
/// came with releases that not all machines have.
macro_rules! library {
    (
        $table:ident in $place:ident {
            $( $name:ident($($arg:ident: $type:ty),*) $(-> $returned:ty)?; )*
        }
        later { $( $late:ident($($of:ident: $late_type:ty),*) -> $late_returned:ty; )* }
    ) => {
        struct $table {
            $( $name: unsafe extern "C" fn($($type),*) $(-> $returned)?, )*
            $( $late: Option<unsafe extern "C" fn($($late_type),*) -> $late_returned>, )*
            /// Open as long as its functions can be called.
            _library: Library,
        }

        static $place: OnceLock<Result<$table, Unopened>> = OnceLock::new();

        impl Table for $table {
            fn of(library: Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the manual page says that the function has this type.
                    $( $name: *unsafe { library.get(stringify!($name)) }.map_err(|_| stringify!($name))?, )*
                    // SAFETY: the manual page says that the function has this type.
                    $( $late: unsafe { library.get(stringify!($late)) }.ok().map(|function| *function), )*
                    _library: library,
                })
            }
        }

        impl $table {
            /// A caller that has an object of the library has opened it.
            fn opened() -> &'static Self {
                let opened = $place.get().and_then(|opened| opened.as_ref().ok());
                opened.expect("the library is open")
            }
        }

        $(
            #[doc = concat!("`", stringify!($name), "`")]
            ///
            /// # Safety
            /// The library is open, objects are live, and all that is passed is as the manual page
            /// asks for.
            pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $returned)? {
                // SAFETY: the caller's promise.
                unsafe { ($table::opened().$name)($($arg),*) }
            }
        )*

        $(
            #[doc = concat!("`", stringify!($late), "`, which asks for what the others ask for.")]
            ///
            /// # Errors
            /// The library lacks it.
            pub fn $late() -> Result<unsafe extern "C" fn($($late_type),*) -> $late_returned, Missing> {
                $table::opened().$late.ok_or(Missing(stringify!($late)))
            }
        )*
    };
}

library! { Libibverbs in LIBIBVERBS {
    ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    ibv_free_device_list(list: *mut *mut ibv_device);
    ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
    ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    ibv_close_device(context: *mut ibv_context) -> c_int;
    ibv_query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int;
    ibv_query_port(context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr) -> c_int;
    ibv_query_gid(context: *mut ibv_context, port: u8, index: c_int, gid: *mut ibv_gid) -> c_int;
    ibv_query_pkey(context: *mut ibv_context, port: u8, index: c_int, pkey: *mut u16) -> c_int;
    ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
    ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    ibv_rereg_mr(mr: *mut ibv_mr, flags: c_int, pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> c_int;
    ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
    ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    ibv_create_cq(context: *mut ibv_context, cqe: c_int, cq_context: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int) -> *mut ibv_cq;
    ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int;
    ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
    ibv_get_cq_event(channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cq_context: *mut *mut c_void) -> c_int;
    ibv_ack_cq_events(cq: *mut ibv_cq, count: c_uint);
    ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
    ibv_ack_async_event(event: *mut ibv_async_event);
    ibv_create_srq(pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    ibv_modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int;
    ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int;
    ibv_destroy_srq(srq: *mut ibv_srq) -> c_int;
    ibv_create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_query_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int, init: *mut ibv_qp_init_attr) -> c_int;
    ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int;
    ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
    ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_destroy_ah(ah: *mut ibv_ah) -> c_int;
    ibv_attach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int;
    ibv_detach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int;
} later {
    ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex;
    ibv_query_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int;
    ibv_set_ece(qp: *mut ibv_qp, ece: *mut ibv_ece) -> c_int;
    ibv_reg_mr_iova(pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_int) -> *mut ibv_mr;
    ibv_query_qp_data_in_order(qp: *mut ibv_qp, op: u32, flags: u32) -> c_int;
    ibv_reg_dmabuf_mr(pd: *mut ibv_pd, offset: u64, length: usize, iova: u64, fd: c_int, access: c_int) -> *mut ibv_mr;
    _ibv_query_gid_ex(context: *mut ibv_context, port: u32, index: u32, entry: *mut ibv_gid_entry, flags: u32, size: usize) -> c_int;
    _ibv_query_gid_table(context: *mut ibv_context, entries: *mut ibv_gid_entry, count: usize, flags: u32, size: usize) -> isize;
} }

library! { Librdmacm in LIBRDMACM {
    rdma_get_devices(count: *mut c_int) -> *mut *mut ibv_context;
    rdma_free_devices(list: *mut *mut ibv_context);
    rdma_create_event_channel() -> *mut rdma_event_channel;
    rdma_destroy_event_channel(channel: *mut rdma_event_channel);
    rdma_create_id(channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, context: *mut c_void, space: u32) -> c_int;
    rdma_destroy_id(id: *mut rdma_cm_id) -> c_int;
    rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int;
    rdma_set_option(id: *mut rdma_cm_id, level: c_int, name: c_int, value: *mut c_void, length: usize) -> c_int;
    rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut libc::sockaddr) -> c_int;
    rdma_resolve_addr(id: *mut rdma_cm_id, from: *mut libc::sockaddr, to: *mut libc::sockaddr, timeout_ms: c_int) -> c_int;
    rdma_resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int;
    rdma_create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> c_int;
    rdma_create_qp_ex(id: *mut rdma_cm_id, attr: *mut ibv_qp_init_attr_ex) -> c_int;
    rdma_destroy_qp(id: *mut rdma_cm_id);
    rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int;
    rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int;
    rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int;
    rdma_reject(id: *mut rdma_cm_id, private_data: *const c_void, length: u8) -> c_int;
    rdma_notify(id: *mut rdma_cm_id, event: u32) -> c_int;
    rdma_disconnect(id: *mut rdma_cm_id) -> c_int;
    rdma_join_multicast(id: *mut rdma_cm_id, addr: *mut libc::sockaddr, context: *mut c_void) -> c_int;
    rdma_leave_multicast(id: *mut rdma_cm_id, addr: *mut libc::sockaddr) -> c_int;
    rdma_get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int;
    rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int;
} later {
    rdma_init_qp_attr(id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int;
    rdma_set_local_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int;
    rdma_get_remote_ece(id: *mut rdma_cm_id, ece: *mut ibv_ece) -> c_int;
    rdma_reject_ece(id: *mut rdma_cm_id, private_data: *const c_void, length: u8) -> c_int;
    rdma_establish(id: *mut rdma_cm_id) -> c_int;
    rdma_write_cm_event(id: *mut rdma_cm_id, event: u32, status: c_int, arg: u64) -> c_int;
} }
