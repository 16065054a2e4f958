//! The Unix socket: for its owner only, from the first instant; any length of path.

use std::fs::Metadata;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, open, unlinkat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind as bind_to, connect, listen, socket_with,
};
use tokio::net::UnixListener;

use super::ServeError;

/// How many connections wait to be accepted.
const BACKLOG: i32 = 256;

/// Removes the socket when it is dropped, if it is still this one.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    directory: OwnedFd,
    /// Device and inode.
    identity: (u64, u64),
}

impl Socket {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity);
        if ours && let Some(name) = self.path.file_name() {
            let _ = unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

/// Binds the socket. One that a dead process left is replaced; one that answers is not.
pub(super) fn bind(path: &Path) -> Result<(Socket, UnixListener), ServeError> {
    let failed = |doing: &str| {
        let what = format!("{doing} {}", path.display());
        move |error: Errno| ServeError::Io { what, error: error.into() }
    };
    let name = path.file_name().ok_or_else(|| failed("binding")(Errno::INVAL))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = open(parent, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed("opening the directory of"))?;
    // The address of a socket has room for 107 bytes; this is short for any path.
    let mut short = format!("/proc/self/fd/{}/", directory.as_raw_fd()).into_bytes();
    short.extend_from_slice(name.as_bytes());
    let address = SocketAddrUnix::new(&short[..]).map_err(failed("binding"))?;

    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(ServeError::NoSocket(path.to_owned()));
        }
        match connect(new_socket().map_err(failed("trying"))?, &address) {
            Err(Errno::CONNREFUSED) => unlinkat(&directory, name, AtFlags::empty()).map_err(failed("removing"))?,
            Err(Errno::NOENT) => {}
            // It answers, or its queue is full.
            Ok(()) | Err(Errno::AGAIN) => return Err(ServeError::InUse(path.to_owned())),
            Err(error) => return Err(failed("trying")(error)),
        }
    }
    let socket = new_socket().map_err(failed("making"))?;
    // The file gets the mode of the socket, so there is no instant at which it is open to others.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(failed("protecting"))?;
    bind_to(&socket, &address).map_err(|error| match error {
        Errno::ADDRINUSE => ServeError::InUse(path.to_owned()),
        error => failed("binding")(error),
    })?;
    let bound = std::fs::symlink_metadata(path).map_err(ServeError::io(format!("looking at {}", path.display())))?;
    let kept = Socket { path: path.to_owned(), directory, identity: identity(&bound) };
    if bound.mode() & 0o777 != 0o600 {
        // A file system that does not keep modes.
        rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR).map_err(failed("protecting"))?;
    }
    listen(&socket, BACKLOG).map_err(failed("listening at"))?;
    let listener = UnixListener::from_std(socket.into()).map_err(ServeError::io("listening"))?;
    Ok((kept, listener))
}

fn new_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Whether a process of this user may ask: the daemon's own, or root.
pub(super) fn may_ask(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}
