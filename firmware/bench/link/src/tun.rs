//! A TUN device in a given network namespace, opened, named, sized and set up. It lives as long as its file is open.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// Packets the kernel holds for this program between two reads. Only the model may drop, so this is far more than comes
/// in while the thread waits for a processor: 10,000 packets of 1500 bytes are 120 ms at 1 Gbit/s.
const TX_QUEUE_PACKETS: libc::c_int = 10_000;

pub struct Tun {
    file: File,
}

impl AsRawFd for Tun {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Tun {
    /// Make the device `name` in the namespace at `netns` (None: where this thread is) and set it up.
    pub fn open(netns: Option<&str>, name: &str, mtu: u16) -> Result<Tun, String> {
        match netns {
            None => Self::open_here(name, mtu),
            Some(path) => {
                let target = File::open(path).map_err(|e| format!("{path}: {e}; expected a network namespace"))?;
                let home =
                    File::open("/proc/thread-self/ns/net").map_err(|e| format!("/proc/thread-self/ns/net: {e}"))?;
                enter(&target)
                    .map_err(|e| format!("{path}: cannot enter: {e}; run as root and name a network namespace"))?;
                let tun = Self::open_here(name, mtu);
                enter(&home).map_err(|e| format!("cannot come back from {path}: {e}"))?;
                tun
            }
        }
    }

    fn open_here(name: &str, mtu: u16) -> Result<Tun, String> {
        let path = "/dev/net/tun";
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|e| format!("{path}: {e}; load the module: modprobe tun"))?;
        let mut request = Request::new(name)?;
        request.payload.flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        request.call(file.as_raw_fd(), libc::TUNSETIFF).map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied => format!("{path}: no permission to make {name}; run as root"),
            _ if e.raw_os_error() == Some(libc::EBUSY) => format!("{name}: exists already; choose another name"),
            _ => format!("{path}: cannot make {name}: {e}"),
        })?;
        let fail = |what: &'static str| move |e: Error| format!("{name}: cannot set {what}: {e}");
        // SAFETY: plain system call; the result is checked before it is owned.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(format!("{name}: cannot open a socket: {}", Error::last_os_error()));
        }
        // SAFETY: `fd` was just opened and nobody else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        request.payload.number = libc::c_int::from(mtu);
        request.call(socket.as_raw_fd(), libc::SIOCSIFMTU).map_err(fail("the MTU"))?;
        request.payload.number = TX_QUEUE_PACKETS;
        request.call(socket.as_raw_fd(), libc::SIOCSIFTXQLEN).map_err(fail("the queue length"))?;
        request.call(socket.as_raw_fd(), libc::SIOCGIFFLAGS).map_err(fail("the flags"))?;
        // SAFETY: SIOCGIFFLAGS has just filled in the flags.
        unsafe { request.payload.flags |= libc::IFF_UP as libc::c_short };
        request.call(socket.as_raw_fd(), libc::SIOCSIFFLAGS).map_err(fail("it up"))?;
        Ok(Tun { file })
    }
}

fn enter(namespace: &File) -> Result<(), Error> {
    // SAFETY: plain system call on an open file.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// The kernel's struct ifreq, with the members used here.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    payload: Payload,
}

const _: () = assert!(mem::size_of::<Request>() == 40);

#[repr(C)]
union Payload {
    flags: libc::c_short,
    number: libc::c_int,
    whole: [u64; 3],
}

impl Request {
    fn new(name: &str) -> Result<Request, String> {
        let text = CString::new(name).map_err(|_| format!("{name:?} is no interface name"))?;
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ {
            return Err(format!("{name:?} is no interface name: it must have 1 to 15 bytes"));
        }
        let mut request = Request { name: [0; libc::IFNAMSIZ], payload: Payload { whole: [0; 3] } };
        request.name[..bytes.len()].copy_from_slice(bytes);
        Ok(request)
    }

    fn call<R: TryInto<libc::Ioctl>>(&mut self, fd: RawFd, request: R) -> Result<(), Error> {
        let request = request.try_into().map_err(|_| Error::from(ErrorKind::InvalidInput))?;
        // SAFETY: every request used reads or writes a struct ifreq, which `self` is (40 bytes, asserted above).
        match unsafe { libc::ioctl(fd, request, self as *mut Request) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}
