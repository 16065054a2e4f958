//! The one numbered stream of choices (SPEC 13): from a seed, or a recorded list. What is recorded is the outcome of each
//! choice, a small number; 0 is always the plainest one, so that a list can be shrunk by deleting, zeroing and lowering.

/// Where choices come from, and every choice made so far.
#[derive(Clone, Debug)]
pub struct Choices {
    source: Source,
    taken: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Source {
    Seed(u64),
    List(Vec<u32>),
}

impl Choices {
    /// Choices that a seed determines, the same on every machine.
    pub fn from_seed(seed: u64) -> Self {
        Choices { source: Source::Seed(mix(seed ^ 0x5eed_5eed_5eed_5eed)), taken: Vec::new() }
    }

    /// The recorded choices; after them, always the plainest.
    pub fn from_list(list: Vec<u32>) -> Self {
        Choices { source: Source::List(list), taken: Vec::new() }
    }

    /// One of `0..sides`; 0 for no sides.
    pub fn below(&mut self, sides: u32) -> u32 {
        let at = self.taken.len();
        let chosen = match &mut self.source {
            _ if sides == 0 => 0,
            Source::Seed(state) => ((u64::from(roll(state)) * u64::from(sides)) >> 32) as u32,
            Source::List(list) => list.get(at).copied().unwrap_or(0).min(sides - 1),
        };
        self.taken.push(chosen);
        chosen
    }

    /// The index of one of the weights, by chance in their proportion. A weight of 0 is never chosen; the first one is the
    /// plain choice and is what is left when all are 0.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let at = self.taken.len();
        let chosen = match &mut self.source {
            Source::Seed(state) => {
                let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
                let mut left = (u64::from(roll(state)) * total) >> 32;
                let hit = weights.iter().position(|weight| {
                    let weight = u64::from(*weight);
                    let hit = left < weight;
                    left = left.saturating_sub(weight);
                    hit
                });
                hit.unwrap_or(0)
            }
            Source::List(list) => {
                let wanted = list.get(at).copied().unwrap_or(0) as usize;
                if weights.get(wanted).is_some_and(|weight| *weight > 0) { wanted } else { 0 }
            }
        };
        self.taken.push(u32::try_from(chosen).unwrap_or(0));
        chosen
    }

    /// A length of time up to `most_ms`; short ones are as likely as long ones.
    pub fn span_ms(&mut self, most_ms: u64) -> u64 {
        const STEPS: [u64; 8] = [1, 20, 200, 1_000, 5_000, 20_000, 60_000, 300_000];
        let step = STEPS[self.below(8) as usize].min(most_ms.max(1));
        let part = u64::from(self.below(16));
        step + step * part / 16
    }

    /// A choice that is made already: recorded as it is, or replayed.
    pub fn given(&mut self, value: u32) -> u32 {
        let at = self.taken.len();
        let chosen = match &self.source {
            Source::Seed(_) => value,
            Source::List(list) => list.get(at).copied().unwrap_or(0),
        };
        self.taken.push(chosen);
        chosen
    }

    /// Whether a recorded list has been used up. Never, for a seed.
    pub fn is_over(&self) -> bool {
        match &self.source {
            Source::Seed(_) => false,
            Source::List(list) => self.taken.len() >= list.len(),
        }
    }

    /// Every choice made.
    pub fn taken(&self) -> &[u32] {
        &self.taken
    }
}

/// splitmix64, its upper half.
fn roll(state: &mut u64) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    (mix(*state) >> 32) as u32
}

fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_list_repeats_what_the_seed_chose() {
        let draw = |choices: &mut Choices| {
            let mut all = Vec::new();
            for round in 0..200u32 {
                all.push(choices.below(1 + round % 7));
                all.push(choices.weighted(&[5, 0, 3, 1]) as u32);
                all.push(choices.span_ms(60_000) as u32);
            }
            all
        };
        let mut seeded = Choices::from_seed(42);
        let first = draw(&mut seeded);
        assert!((0..4).all(|wanted| wanted == 1 || first.chunks(3).any(|drawn| drawn[1] == wanted)));
        assert!(first.chunks(3).all(|drawn| drawn[1] != 1), "a weight of 0 is never chosen");
        let mut replayed = Choices::from_list(seeded.taken().to_vec());
        assert_eq!(draw(&mut replayed), first);
        assert!(replayed.is_over());
        assert_eq!(replayed.below(9), 0);
    }

    #[test]
    fn a_list_that_does_not_fit_gives_choices_that_do() {
        let mut choices = Choices::from_list(vec![900, 7, 1]);
        assert_eq!(choices.below(4), 3);
        assert_eq!(choices.weighted(&[1, 1]), 0);
        assert_eq!(choices.weighted(&[1, 0]), 0);
    }
}
