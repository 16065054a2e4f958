//! What a person has to say before something is ended.

use crate::error::ClientError;
use crate::screen::Screen;

/// How sure one has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sure {
    /// `y`.
    Yes,
    /// Types this.
    Typed(String),
}

impl Sure {
    /// One: `y`. More: what is typed says how many, or which group.
    pub fn about(victims: usize, group: Option<&str>) -> Self {
        match (victims, group) {
            (0 | 1, _) => Sure::Yes,
            (_, Some(group)) => Sure::Typed(group.to_owned()),
            (many, None) => Sure::Typed(many.to_string()),
        }
    }
}

/// Asks, unless `is_given`. What is at stake was shown before.
///
/// # Errors
///
/// Nobody is there to be asked, or the answer is another one. Nothing was changed then.
pub(crate) fn confirm(screen: &mut Screen, is_given: bool, question: &str, sure: &Sure) -> Result<(), ClientError> {
    if is_given {
        return Ok(());
    }
    if !screen.can_ask {
        return Err(ClientError::Usage(format!("{question} Nobody can be asked here: give --yes if it is meant")));
    }
    let agreed = match sure {
        Sure::Yes => matches!(screen.ask(&format!("{question} [y/N]"))?.as_str(), "y" | "Y" | "yes" | "Yes"),
        Sure::Typed(word) => screen.ask(&format!("{question} Type {word} to go on:"))? == *word,
    };
    match agreed {
        true => Ok(()),
        false => Err(ClientError::Usage("not confirmed; nothing was changed".into())),
    }
}
