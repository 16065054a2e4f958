//! Hashes of states: 128 bits, the same in every run and on every machine. States are told apart by 64 of them.

use std::hash::{BuildHasherDefault, Hasher};

const KEYS: [u64; 4] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];

/// Folds words into two independent halves.
#[derive(Clone, Copy)]
pub struct Mix(u64, u64);

impl Mix {
    pub fn new() -> Self {
        Mix(KEYS[2], KEYS[3])
    }

    #[inline]
    pub fn word(&mut self, word: u64) {
        self.0 = fold(self.0 ^ word, KEYS[0]);
        self.1 = fold(self.1.rotate_left(23) ^ word, KEYS[1]);
    }

    pub fn finish(mut self) -> u128 {
        self.word(KEYS[3]);
        u128::from(self.0) << 64 | u128::from(self.1)
    }
}

#[inline]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product as u64) ^ ((product >> 64) as u64) ^ one.rotate_left(32)
}

/// For keys that are hashes already.
#[derive(Default)]
pub struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn write_u128(&mut self, word: u128) {
        self.0 = word as u64;
    }
}

pub type PlainBuild = BuildHasherDefault<Plain>;
