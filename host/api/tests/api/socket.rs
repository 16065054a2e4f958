//! The Unix socket: whose it is, where it is, how it ends.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use api::{Config, Limits, ServeError, Server};

use crate::fake::{Fake, Options};
use crate::raw::{Answer, PATIENCE, get};
use crate::{daemon, serve};

async fn start(path: &Path) -> Result<Server, ServeError> {
    let config = Config { socket: Some(path.to_owned()), ..Config::default() };
    Server::start(Fake::new(Options::default()), config).await
}

#[tokio::test]
async fn it_is_for_its_owner_and_goes_with_the_server() {
    let daemon = daemon(Limits::default()).await;
    assert_eq!(std::fs::metadata(&daemon.socket).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(daemon.server.socket(), Some(daemon.socket.as_path()));
    daemon.server.shutdown(PATIENCE).await;
    assert!(!daemon.socket.exists());
}

#[tokio::test]
async fn one_that_was_left_behind_is_replaced_and_a_live_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = start(&path).await.unwrap();
    assert_eq!(get(&path, "/healthz").await.text(), "ok\n");
    let refused = start(&path).await.err().unwrap();
    assert!(matches!(&refused, ServeError::InUse(at) if *at == path), "{refused}");
    assert_eq!(get(&path, "/healthz").await.text(), "ok\n");

    // Whoever ends removes its own socket only.
    std::fs::remove_file(&path).unwrap();
    let second = start(&path).await.unwrap();
    first.shutdown(PATIENCE).await;
    assert_eq!(get(&path, "/healthz").await.text(), "ok\n");
    second.shutdown(PATIENCE).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn what_is_no_socket_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api.sock");
    std::fs::write(&path, "precious").unwrap();
    let refused = start(&path).await.err().unwrap();
    assert!(matches!(refused, ServeError::NoSocket(_)), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    let missing = start(&dir.path().join("missing/api.sock")).await.err().unwrap();
    assert!(missing.to_string().contains("missing/api.sock"), "{missing}");
}

#[tokio::test]
async fn its_path_may_be_long() {
    let dir = tempfile::tempdir().unwrap();
    let deep: PathBuf = dir.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&deep).unwrap();
    let path = deep.join("api.sock");
    let server = start(&path).await.unwrap();
    let open = std::fs::File::open(&deep).unwrap();
    let short = format!("/proc/self/fd/{}/api.sock", std::os::fd::AsRawFd::as_raw_fd(&open));
    assert_eq!(get(Path::new(&short), "/healthz").await.status, 200);
    let refused = start(&path).await.err().unwrap();
    assert!(matches!(refused, ServeError::InUse(_)), "{refused}");
    server.shutdown(PATIENCE).await;
    assert!(!path.exists());
}

/// The other user of the next test: this program again.
#[test]
#[ignore = "runs as a process of its own"]
fn as_a_stranger() {
    use std::io::{Read, Write};
    let path = std::env::var("STRANGERS_SOCKET").unwrap();
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) => println!("connect: {:?}", error.kind()),
        Ok(mut stream) => {
            let _ = stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let mut read = Vec::new();
            let _ = stream.read_to_end(&mut read);
            println!("status: {:?}", Answer::parse(&read).map(|answer| answer.problem(answer.status, "forbidden")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be somebody else");
        return;
    }
    let (server, path, dir) = serve(Fake::new(Options::default()), Limits::default()).await;
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = dir.path().join("stranger");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let stranger = || {
        let mut command = Command::new(&program);
        command.args(["--exact", "socket::as_a_stranger", "--ignored", "--nocapture"]);
        let output = command.env("STRANGERS_SOCKET", &path).current_dir("/").uid(65_534).gid(65_534).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let by_mode = tokio::task::block_in_place(stranger);
    assert!(by_mode.contains("connect: PermissionDenied"), "{by_mode}");
    // Even where the mode was loosened by somebody, the kernel says who asks.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let by_credentials = tokio::task::block_in_place(stranger);
    assert!(by_credentials.contains("status: Some(\"this socket is for the daemon's owner\")"), "{by_credentials}");
    server.shutdown(Duration::from_secs(1)).await;
}
