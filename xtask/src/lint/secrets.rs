//! Secrets are not arguments: what `ARG`, `ENV` and `LABEL` hold can be read by everyone who has the image.

use super::words::pairs;
use super::{Finding, Subject};
use crate::faults::strip_credentials;
use crate::problem::Id;

/// Words that name a secret.
const WORDS: &[&str] = &[
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "SECRETS",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
];

/// What makes a `KEY` a secret when it stands before it.
const KEYS: &[&str] =
    &["ACCESS", "API", "AUTH", "DEPLOY", "ENCRYPTION", "LICENSE", "PRIVATE", "SIGNING", "SSH"];

/// Last words of keys that only tell where something is.
const PLACES: &[&str] = &["DIR", "FILE", "PATH"];

/// Keys of every `ARG`, `ENV` and `LABEL`, and addresses with a password anywhere.
pub fn findings(subject: &Subject) -> Vec<Finding> {
    let mut found = Vec::new();
    for instruction in subject.dockerfile.instructions() {
        if ["ARG", "ENV", "LABEL"].contains(&instruction.word) {
            let keys = pairs(instruction, subject.dockerfile.escape);
            let secret = keys.into_iter().map(|(key, _)| key).filter(|key| is_secret(&key.text));
            found.extend(secret.map(|key| finding(key.line, instruction.word, &key.text)));
        }
        found.extend(instruction.lines.iter().filter(|line| has_password(&line.text)).map(|line| Finding {
            id: Id::SecretInArg,
            line: line.number,
            what: format!("an address with a password: `{}`", strip_credentials(line.text.trim())),
            cure: "give the address to the step as a secret: `RUN --mount=type=secret,id=…`".to_owned(),
        }));
    }
    found
}

/// A key that looks like a secret.
pub fn finding(line: usize, kind: &str, key: &str) -> Finding {
    Finding {
        id: Id::SecretInArg,
        line,
        what: format!(
            "`{key}` in {kind} looks like a secret, and stays in the image's history or configuration"
        ),
        cure: "give it to the step as a secret: `RUN --mount=type=secret,id=…`".to_owned(),
    }
}

/// Whether one of a key's words names a secret. `TOKENIZERS_PARALLELISM` and `MAX_TOKENS` do not.
pub fn is_secret(key: &str) -> bool {
    let upper = key.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(['_', '-', '.']).collect();
    let is_place = words.last().is_some_and(|last| PLACES.contains(last));
    let is_key = |pair: &[&str]| KEYS.contains(&pair[0]) && pair[1] == "KEY";
    !is_place && (words.iter().any(|word| WORDS.contains(word)) || words.windows(2).any(is_key))
}

/// Whether a text holds `://user:password@`. A password that is a variable is not written here.
fn has_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let end = rest.find(|c: char| c.is_whitespace() || "/\"'".contains(c)).unwrap_or(rest.len());
        let user = rest[..end].rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        user.is_some_and(|(_, password)| !password.starts_with('$'))
    })
}
