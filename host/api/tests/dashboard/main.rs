//! The dashboard in a real browser, against a real server and a fleet that is not there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod assets;
mod browser;
mod deciders;
#[path = "../../examples/fake/mod.rs"]
mod fake;
mod keyboard;
mod live;
mod looks;
mod modules;
mod stale;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use api::{Config, Limits, Listen, Server, Tokens};
use browser::{Browser, Page};
use fake::{Fake, Options};
use tokio::runtime::Runtime;

pub const TOKEN: &str = "a-token-for-tests";

/// A daemon, as far as a browser can tell.
pub struct Daemon {
    pub fake: Arc<Fake>,
    pub address: SocketAddr,
    runtime: Option<Runtime>,
    server: Option<Server>,
}

impl Daemon {
    pub fn start(options: Options) -> Daemon {
        Self::at(own_address(), options)
    }

    pub fn at(address: SocketAddr, options: Options) -> Daemon {
        let fake = Fake::new(options);
        let (runtime, server) = serve(address, &fake);
        let address = server.as_ref().and_then(Server::address).unwrap();
        Daemon { fake, address, runtime, server }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Cuts all connections, without a goodbye; what it knows stays. [`Daemon::again`] goes on.
    pub fn cut(&mut self) {
        self.server.take();
        self.runtime.take().unwrap().shutdown_background();
    }

    /// Listens again, at the same address.
    pub fn again(&mut self) {
        let Daemon { fake, address, .. } = self;
        (self.runtime, self.server) = serve(*address, fake);
    }

    /// Ends it as a kill would: its connections are cut, and nobody says goodbye.
    pub fn kill(mut self) -> SocketAddr {
        self.runtime.take().unwrap().shutdown_background();
        self.address
    }

    /// Ends it properly.
    pub fn stop(mut self) {
        let server = self.server.take().unwrap();
        self.runtime.as_ref().unwrap().block_on(server.shutdown(Duration::from_secs(1)));
    }

    pub fn steps(&self, count: usize) {
        (0..count).for_each(|_| self.fake.step());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A loopback address that no other test has, so that nobody gets its port while nobody listens there.
fn own_address() -> SocketAddr {
    static LAST: AtomicU8 = AtomicU8::new(0);
    let [low, high, ..] = std::process::id().to_le_bytes();
    let own = Ipv4Addr::new(127, 1 + high % 250, low, 1 + LAST.fetch_add(1, Ordering::Relaxed) % 250);
    // Elsewhere than on Linux there is only one.
    let there = TcpListener::bind((own, 0)).is_ok();
    SocketAddr::from((if there { own } else { Ipv4Addr::LOCALHOST }, 0))
}

fn serve(address: SocketAddr, fake: &Arc<Fake>) -> (Option<Runtime>, Option<Server>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let began = Instant::now();
    loop {
        let tokens = Tokens::new(|shown: &str| shown == TOKEN, [7; 32]);
        let listen = Listen { address, tokens: Some(tokens), tls: None, names: Vec::new() };
        let config = Config { listen: Some(listen), limits: Limits::default(), ..Config::default() };
        match runtime.block_on(Server::start(fake.clone(), config)) {
            Ok(server) => return (Some(runtime), Some(server)),
            // The threads of the one before let go of the port when they come to it.
            Err(_) if address.port() != 0 && began.elapsed() < Duration::from_secs(60) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{address}: {error}"),
        }
    }
}

/// Goes to the page, and through the form.
pub fn log_in(page: &mut Page<'_>, daemon: &Daemon) {
    page.goto(&daemon.url());
    page.wait("document.querySelector('input[name=token]')", "the form asks for the token");
    page.troubles(true);
    page.eval("document.querySelector('input[name=token]').focus()");
    page.type_text(TOKEN);
    page.key("Enter");
    page.wait("document.querySelector('#link')?.dataset.state === 'live'", "the page is live");
}

/// Runs a test in a browser, and checks what holds for each: no error, and no request to anybody else.
pub fn browse(daemon: &Daemon, test: impl FnOnce(&mut Page<'_>)) {
    let Some(mut browser) = Browser::start() else { return };
    let mut page = browser.page();
    log_in(&mut page, daemon);
    test(&mut page);
    assert_eq!(page.troubles(false), Vec::<String>::new());
    let url = daemon.url();
    let elsewhere: Vec<String> = page.requests().into_iter().filter(|to| !to.starts_with(&url)).collect();
    assert_eq!(elsewhere, Vec::<String>::new(), "requests to somebody else");
}
