//! The verbs as an operator meets them, against a daemon that is not there, and against what is no daemon.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::new_without_default, missing_docs)]

mod deciders;
#[path = "../../../api/examples/fake/mod.rs"]
mod fake;
mod follow;
mod looks;
mod offline;
mod orders;
mod tls;
mod troubled;
mod words;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::wire::Export;
use api::{Config, Server};
use clap::Parser;
use client::verbs::{DeciderVerb, Declared, Known, Program, Verb};
use client::{Class, ClientError, Ending, Screen, Waits};
use fake::{Fake, Options};
use serde_json::Value;

/// What a verb wrote, and how it ended.
pub struct Ran {
    pub code: u8,
    pub out: String,
    pub err: String,
}

#[derive(Parser)]
struct Cli {
    #[arg(short, long, global = true, default_value = "text")]
    output: String,
    #[command(subcommand)]
    verb: All,
}

/// The program has verbs of its own besides.
#[derive(clap::Subcommand)]
enum All {
    #[command(flatten)]
    Operate(Verb),
    #[command(subcommand)]
    Decider(DeciderVerb),
}

/// Bytes that are looked at afterwards.
#[derive(Clone, Default)]
pub struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Pipe {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A program whose fleet files are shapes in JSON, and which knows of one resource.
pub struct Small;

impl Program for Small {
    type Error = ClientError;

    fn load(&self, file: &Path) -> Result<Declared, ClientError> {
        let shape =
            serde_json::from_slice(&std::fs::read(file)?).map_err(|error| ClientError::Usage(error.to_string()))?;
        Ok(Declared { shape, policy: engine::policy::Policy::default(), generation: None })
    }

    fn known(&self, _: &Path) -> Result<Vec<Known>, ClientError> {
        let (node, provider) = ("web-0".into(), "process".into());
        Ok(vec![Known { node, attempt: 7, provider, lease: "proc-1".into() }])
    }

    fn reset(&self, folder: &Path) -> Result<PathBuf, ClientError> {
        std::fs::rename(folder.join("state.db"), folder.join("aside"))?;
        Ok(folder.join("aside"))
    }

    fn import(&self, folder: &Path, export: &Export) -> Result<(), ClientError> {
        std::fs::create_dir_all(folder)?;
        Ok(std::fs::write(folder.join("imported"), export.next_seq.to_string())?)
    }
}

/// Nobody is given up because the machine is busy.
pub const WAITS: Waits = Waits {
    connect: Duration::from_secs(60),
    answer: Duration::from_secs(60),
    again: Duration::from_millis(20),
    silence: Duration::from_secs(60),
};

/// Runs a verb. With an `input`, a person types it.
pub fn operate(args: &[&str], input: &str) -> Ran {
    operate_within(args, input, WAITS)
}

pub fn operate_within(args: &[&str], input: &str, waits: Waits) -> Ran {
    let cli = match Cli::try_parse_from(["operate"].iter().chain(args)) {
        Ok(cli) => cli,
        Err(error) => return Ran { code: 2, out: String::new(), err: error.to_string() },
    };
    let (out, err) = (Pipe::default(), Pipe::default());
    let mut screen = Screen::of(out.clone(), err.clone(), input);
    screen.is_json = cli.output == "json";
    let ended = match &cli.verb {
        All::Operate(verb) => client::verbs::run(verb, waits, &mut screen, &Small),
        All::Decider(verb) => client::verbs::decider::run(verb, waits, &mut screen),
    };
    let code = match ended {
        Ok(Ending::Done) => 0,
        Ok(Ending::Unwell) => 1,
        Ok(Ending::Differs) => 6,
        Ok(Ending::Refused) => 5,
        Ok(Ending::Interrupted) => 130,
        Err(error) => {
            screen.note(&format!("error: {error}"));
            screen.note(&error.remedy().unwrap_or_default());
            match error.class() {
                Class::Failed => 1,
                Class::Usage => 2,
                Class::Timeout => 3,
                Class::Unreachable => 4,
                Class::Guard => 5,
            }
        }
    };
    Ran { code, out: out.text(), err: err.text() }
}

/// A state directory with a fake daemon in it, in a thread of its own.
pub struct Daemon {
    pub folder: tempfile::TempDir,
    pub fake: Arc<Fake>,
    _runtime: tokio::runtime::Runtime,
    _server: Server,
}

impl Daemon {
    /// After so many steps of its fleet; it stays as it is then.
    pub fn after(steps: usize, options: Options) -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("demo")).unwrap();
        let fake = Fake::new(options);
        (0..steps).for_each(|_| fake.step());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let config = Config { socket: Some(folder.path().join("demo/api.sock")), ..Config::default() };
        let server = runtime.block_on(Server::start(fake.clone(), config)).unwrap();
        Daemon { folder, fake, _runtime: runtime, _server: server }
    }

    pub fn new() -> Daemon {
        Daemon::after(8, Options::default())
    }

    /// Lets its fleet move from now on.
    pub fn moving(self) -> Daemon {
        let fake = self.fake.clone();
        self._runtime.spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                fake.step();
            }
        });
        self
    }

    pub fn state(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    pub fn ask(&self, args: &[&str]) -> Ran {
        self.ask_person(args, "")
    }

    pub fn ask_person(&self, args: &[&str], input: &str) -> Ran {
        operate(&[args, &["--state", self.state()]].concat(), input)
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let ran = self.ask(&[args, &["-o", "json"]].concat());
        assert!(matches!(ran.code, 0 | 1 | 5 | 6), "{args:?} {}: {}", ran.code, ran.err);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", ran.out))
    }

    pub fn generation(&self) -> u64 {
        use api::Control;
        self.fake.status().generation
    }
}
