//! The identity of a state directory: a 32-byte key in a file of its own, and the tokens that derive from it (SPEC 10).

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use journal::Hash;
use sha2::Sha256;

use crate::dir::{StateDir, check_file, is_there};
use crate::error::StoreError;
use crate::fault::io;
use crate::sqlite::FILE as DATABASE;
use crate::store::Store;

const FILE: &str = "key";
const FRESH: &str = "key.new";
/// The named value under which a store knows which key is its own.
pub(crate) const FINGERPRINT: &str = "key-fingerprint";
const BYTES: usize = 32;

/// The secret key of a state directory. It is never shown.
#[derive(Clone)]
pub struct Secret([u8; BYTES]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// The key of this directory; on the first start it is made. The store remembers which one it is, so that a lost key is
    /// noticed, and not made anew.
    ///
    /// # Errors
    ///
    /// The file has another size or owner, others can read it, it is gone or another one; or the system refuses.
    pub fn open(dir: &StateDir, store: &mut dyn Store) -> Result<Self, StoreError> {
        let path = dir.path().join(FILE);
        let known = store.meta(FINGERPRINT)?;
        if let Some(known) = &known {
            // A crash came between the store's knowing of a new key and the key's getting its name.
            let fresh = dir.path().join(FRESH);
            if is_there(&fresh)? && read(&fresh).is_ok_and(|key| key.fingerprint().as_bytes()[..] == known[..]) {
                rename(dir, &fresh, &path)?;
            }
        }
        match (is_there(&path)?, known) {
            (false, None) => Secret::make(dir, store),
            (false, Some(_)) => Err(StoreError::Missing { path, trace: dir.path().join(DATABASE) }),
            (true, known) => {
                let key = read(&path)?;
                match known {
                    Some(known) => key.belongs(dir.path(), &known).map(|()| key),
                    None => {
                        store.put_meta(FINGERPRINT, key.fingerprint().as_bytes())?;
                        store.sync()?;
                        Ok(key)
                    }
                }
            }
        }
    }

    /// The key of a directory that another process may hold; nothing is made or changed.
    ///
    /// # Errors
    ///
    /// There is none; the file has another size or owner, or others can read it; or the system refuses.
    pub fn look(folder: &Path) -> Result<Self, StoreError> {
        read(&folder.join(FILE))
    }

    /// Whether it is the key that the database in this folder knows by its fingerprint.
    pub(crate) fn belongs(&self, folder: &Path, known: &[u8]) -> Result<(), StoreError> {
        if known == self.fingerprint().as_bytes() {
            return Ok(());
        }
        let reason = format!("it is not the key that {DATABASE} belongs to");
        Err(StoreError::Corrupt { path: folder.join(FILE), reason })
    }

    /// Puts a new key in the place of the one that is there: all tokens that were derived from that are void. Only when an
    /// operator asks for it.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn reset(dir: &StateDir, store: &mut dyn Store) -> Result<Self, StoreError> {
        Secret::make(dir, store)
    }

    fn make(dir: &StateDir, store: &mut dyn Store) -> Result<Self, StoreError> {
        let (path, fresh) = (dir.path().join(FILE), dir.path().join(FRESH));
        let mut key = [0; BYTES];
        getrandom::fill(&mut key)
            .map_err(|error| io("draw random bytes for", &path, std::io::Error::other(error.to_string())))?;
        if is_there(&fresh)? {
            std::fs::remove_file(&fresh).map_err(|error| io("remove", &fresh, error))?;
        }
        let mut file = crate::private_file(&fresh)?;
        file.write_all(&key).and_then(|()| file.sync_all()).map_err(|error| io("write", &fresh, error))?;
        dir.sync()?;
        let key = Secret(key);
        store.put_meta(FINGERPRINT, key.fingerprint().as_bytes())?;
        store.sync()?;
        rename(dir, &fresh, &path)?;
        Ok(key)
    }

    /// The token for a purpose: 64 hexadecimal digits, the same each time. Another label gives another token, and no token
    /// says anything about the key or another token.
    pub fn token(&self, label: &str) -> String {
        Hash::from_bytes(self.mac("token", label).finalize().into_bytes().into()).to_string()
    }

    /// Whether this is the token for the purpose. Takes the same time whichever digit is wrong.
    pub fn accepts(&self, label: &str, presented: &str) -> bool {
        match Hash::from_hex(presented.as_bytes()) {
            Some(tag) => self.mac("token", label).verify_slice(tag.as_bytes()).is_ok(),
            None => false,
        }
    }

    /// A key of its own for a purpose, as secret as this one, of which it says nothing.
    pub fn key(&self, label: &str) -> [u8; BYTES] {
        self.mac("key", label).finalize().into_bytes().into()
    }

    /// Names the key without telling it.
    pub fn fingerprint(&self) -> Hash {
        Hash::from_bytes(self.mac("fingerprint", "").finalize().into_bytes().into())
    }

    fn mac(&self, kind: &str, label: &str) -> Hmac<Sha256> {
        // A key of 32 bytes is used as it is; shorter ones would be as well.
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&padded(&self.0).into());
        for part in ["homeostat/1", kind, label] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// The key as a block of the hash: HMAC pads with zeros in any case.
fn padded(key: &[u8; BYTES]) -> [u8; 64] {
    let mut block = [0; 64];
    block[..BYTES].copy_from_slice(key);
    block
}

fn rename(dir: &StateDir, from: &Path, to: &PathBuf) -> Result<(), StoreError> {
    std::fs::rename(from, to).map_err(|error| io("name", to, error))?;
    dir.sync()
}

fn read(path: &Path) -> Result<Secret, StoreError> {
    check_file(path, 0o077)?;
    let bytes = std::fs::read(path).map_err(|error| io("read", path, error))?;
    let wrong = |found: &[u8]| StoreError::Corrupt {
        path: path.into(),
        reason: format!("a key has {BYTES} bytes, and this file has {}", found.len()),
    };
    <[u8; BYTES]>::try_from(&bytes[..]).map(Secret).map_err(|_| wrong(&bytes))
}
