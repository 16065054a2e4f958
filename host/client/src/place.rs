//! Where the daemon is: a socket, an address, or the run in the state directory.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::error::ClientError;

/// What the API's token is derived for.
pub const TOKEN_LABEL: &str = "api";
/// The socket's name in a run's folder.
const SOCKET: &str = "api.sock";

/// Which daemon is asked.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which daemon")]
pub struct DaemonArgs {
    /// Its run, where the state directory has several
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Its state directory [default: $XDG_STATE_HOME/homeostat]
    #[arg(long, value_name = "DIR", env = "HOMEOSTAT_STATE", value_parser = state_dir(), value_hint = ValueHint::DirPath)]
    pub state: Option<PathBuf>,
    /// Its socket
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with_all = ["run", "address"])]
    pub socket: Option<PathBuf>,
    /// Its address, as http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with = "run")]
    pub address: Option<String>,
    /// A file with the token for the address [default: $HOMEOSTAT_TOKEN]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "address")]
    pub token_file: Option<PathBuf>,
    /// Certificates of the authority that the server must be known to, for https
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "address")]
    pub ca: Option<PathBuf>,
    /// Our own certificate, for mutual TLS
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "address", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "address", requires = "cert")]
    pub key: Option<PathBuf>,
}

/// Where it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// A socket of this machine.
    Socket {
        /// Its path.
        path: PathBuf,
        /// The run's name, where it is known.
        run: Option<String>,
    },
    /// A host and a port.
    Address {
        /// Host, without brackets.
        host: String,
        /// Port.
        port: u16,
        /// Over TLS, and how.
        tls: Option<TlsFiles>,
        /// The bearer token.
        token: Option<String>,
    },
}

/// The files that TLS is set up from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Authorities.
    pub ca: PathBuf,
    /// Our certificate and key.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl std::fmt::Debug for Place {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words())
    }
}

impl Place {
    /// As people write it.
    pub fn words(&self) -> String {
        match self {
            Place::Socket { path, .. } => path.display().to_string(),
            Place::Address { host, port, tls, .. } => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                if host.contains(':') {
                    format!("{scheme}://[{host}]:{port}")
                } else {
                    format!("{scheme}://{host}:{port}")
                }
            }
        }
    }
}

impl DaemonArgs {
    /// Where the daemon is that these arguments mean.
    ///
    /// # Errors
    ///
    /// They do not name one, or several.
    pub fn place(&self) -> Result<Place, ClientError> {
        if let Some(address) = &self.address {
            return self.address(address);
        }
        if let Some(path) = &self.socket {
            return Ok(Place::Socket { path: std::path::absolute(path)?, run: None });
        }
        let (path, run) = self.run_folder()?;
        Ok(Place::Socket { path: path.join(SOCKET), run: Some(run) })
    }

    /// The folder of the run that these arguments mean, and its name. For what is done where no daemon runs.
    ///
    /// # Errors
    ///
    /// There is none, or there are several.
    pub fn run_folder(&self) -> Result<(PathBuf, String), ClientError> {
        let base = state_base(self.state.as_deref())?;
        if let Some(run) = &self.run {
            if run.is_empty() || run == "." || run == ".." || run.contains(['/', '\0']) {
                return Err(ClientError::Usage(format!("--run: {run:?} is no name of a run")));
            }
            return Ok((base.join(run), run.clone()));
        }
        let mut runs = runs(&base)?;
        match runs.len() {
            0 => Err(ClientError::Unreachable {
                tried: base.join("*").join(SOCKET).display().to_string(),
                why: "no daemon has a run there".into(),
                remedy: "start one with `homeostat daemon FILE`, or say where it is: --state, --socket or --address"
                    .into(),
            }),
            1 => {
                let run = runs.remove(0);
                Ok((base.join(&run), run))
            }
            _ => Err(ClientError::Usage(format!(
                "{} has several runs; say which with --run: {}",
                base.display(),
                runs.join(", ")
            ))),
        }
    }

    fn address(&self, address: &str) -> Result<Place, ClientError> {
        let wrong = |why: &str| ClientError::Usage(format!("--address: {address:?}: {why}"));
        let (secure, rest) = match (address.strip_prefix("https://"), address.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(wrong("it begins with http:// or https://")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '@', '?', '#']) {
            return Err(wrong("it is a host and a port, and nothing else"));
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => return Err(wrong("the port is missing")),
        };
        let port = port.parse().map_err(|_| wrong("the port is no number up to 65535"))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).to_owned();
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        let token = self.token()?;
        let tls = match (secure, &self.ca) {
            (true, None) => return Err(wrong("https needs --ca, the certificates of the authority that is trusted")),
            (false, Some(_)) => return Err(wrong("--ca is for https")),
            (true, Some(ca)) => Some(TlsFiles { ca: ca.clone(), own: self.cert.clone().zip(self.key.clone()) }),
            (false, None) => None,
        };
        let loopback = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        if token.is_some() && tls.is_none() && !loopback {
            return Err(wrong("a token is not sent in the clear to another machine: use https"));
        }
        Ok(Place::Address { host, port, tls, token })
    }

    fn token(&self) -> Result<Option<String>, ClientError> {
        let text = match &self.token_file {
            Some(file) => std::fs::read_to_string(file)
                .map_err(|error| ClientError::Usage(format!("--token-file: {}: {error}", file.display())))?,
            None => match std::env::var("HOMEOSTAT_TOKEN") {
                Ok(token) => token,
                Err(_) => return Ok(None),
            },
        };
        let token = text.trim();
        match token.bytes().all(|byte| byte.is_ascii_graphic()) {
            _ if token.is_empty() => Ok(None),
            true => Ok(Some(token.to_owned())),
            // Its value is not repeated.
            false => Err(ClientError::Usage("the token has characters that no token has".into())),
        }
    }
}

/// Reads the value of `--state`. An empty one, as an unset variable of the environment gives it, names none.
pub fn state_dir() -> impl clap::builder::TypedValueParser<Value = PathBuf> {
    use clap::builder::TypedValueParser;
    clap::builder::OsStringValueParser::new().map(PathBuf::from)
}

/// The state directory: as given, else below the XDG state directory.
///
/// # Errors
///
/// Nothing says where it is.
pub fn state_base(given: Option<&Path>) -> Result<PathBuf, ClientError> {
    let base = match given.filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => dir.to_path_buf(),
        None => {
            let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
            set("XDG_STATE_HOME")
                .or_else(|| set("HOME").map(|home| home.join(".local/state")))
                .ok_or_else(|| {
                    ClientError::Usage("neither XDG_STATE_HOME nor HOME says where state lives: give --state".into())
                })?
                .join("homeostat")
        }
    };
    Ok(std::path::absolute(&base)?)
}

/// The runs of a state directory: those with a socket, or where none has one, those with state.
fn runs(base: &Path) -> Result<Vec<String>, ClientError> {
    let entries = match std::fs::read_dir(base) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(ClientError::Unreachable {
                tried: base.display().to_string(),
                why: error.to_string(),
                remedy: "run as the user that the daemon runs as, or say where it is: --state".into(),
            });
        }
    };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let having = |file: &str| -> Vec<String> {
        let there = |name: &&String| base.join(name).join(file).symlink_metadata().is_ok();
        names.iter().filter(there).cloned().collect()
    };
    let listening = having(SOCKET);
    // A run's folder is its owner's alone: who may not look into it is not told that there is none.
    let closed = |name: &&String| {
        let looked = base.join(name).join(SOCKET).symlink_metadata();
        looked.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    if let Some(name) = names.iter().find(closed).filter(|_| listening.is_empty()) {
        return Err(ClientError::Unreachable {
            tried: base.join(name).display().to_string(),
            why: "permission denied: it is its owner's alone".into(),
            remedy: "run as the user that the daemon runs as, or use its --address with a token".into(),
        });
    }
    Ok(if listening.is_empty() { having("state.db") } else { listening })
}
