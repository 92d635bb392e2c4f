//! What outside programs say when something outside fails, sorted into ids.
//!
//! Their exit codes do not tell a network that is down from a wrong hash; their words do. The phrases are those that
//! apt, curl, pip, uv, BuildKit and the kernel print.

use crate::problem::{Id, Problem, Refusal};
use crate::runner::tail;

/// Phrases, in lower case, and what they mean. The first that is found decides, so the more special come first.
const PHRASES: &[(Id, &[&str])] = &[
    (Id::Disk, &["no space left on device", "disk quota exceeded", "not enough free space", "os error 28"]),
    (
        Id::WheelHash,
        &["hash mismatch", "do not match the hashes", "hashes are required", "hash sum mismatch"],
    ),
    (
        Id::Tls,
        &[
            "invalid peer certificate",
            "certificate verify failed",
            "certificate verification failed",
            "unknownissuer",
            "self-signed certificate",
            "unable to get local issuer",
            "x509:",
            "tls handshake",
            "received corrupt message",
            "server gave http response to https client",
        ],
    ),
    (
        Id::Network,
        &[
            "temporary failure in name resolution",
            "temporary failure resolving",
            "could not resolve",
            "could not connect",
            "failed to lookup address",
            "name or service not known",
            "no such host",
            "connection refused",
            "connection reset",
            "connection timed out",
            "network is unreachable",
            "failed to fetch",
            "error sending request",
            "failed to download",
            "request failed after",
            "retries exceeded",
            "connection broken",
            "unexpected eof",
            "i/o timeout",
            "bad gateway",
            "service unavailable",
            "gateway timeout",
        ],
    ),
    (
        Id::NoWheelChannel,
        &["no solution found when resolving", "no matching distribution", "has no wheels with a matching"],
    ),
    (
        Id::Engine,
        &[
            "cannot connect to the docker daemon",
            "error during connect",
            "failed to dial",
            "transport is closing",
        ],
    ),
];

/// What a registry's refusal means.
const REGISTRY: &[(Id, &[&str])] = &[
    (Id::RateLimit, &["toomanyrequests", "too many requests", "rate limit"]),
    (
        Id::RegistryAuth,
        &[
            "unauthorized",
            "authentication required",
            "access denied",
            "denied:",
            "403 forbidden",
            "no basic auth",
        ],
    ),
    (Id::BaseGone, &["manifest unknown", "name unknown", "not found"]),
];

/// An address without the `user:password@` of its authority, wherever it stands in a text.
pub fn strip_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(part.len());
        let keep = part[..end].rfind('@').map_or(0, |at| at + 1);
        out.push_str("://");
        out.push_str(&part[keep..]);
    }
    out
}

/// What a program's words mean, if they are known.
pub fn classify(text: &str) -> Option<Id> {
    let text = text.to_lowercase();
    PHRASES.iter().find(|(_, phrases)| phrases.iter().any(|phrase| text.contains(phrase))).map(|(id, _)| *id)
}

/// What a registry's answer means; what it does not tell is taken for a fault of the network.
pub fn of_registry(text: &str) -> Id {
    let known = classify(text);
    let text = text.to_lowercase();
    let find = || REGISTRY.iter().find(|(_, phrases)| phrases.iter().any(|phrase| text.contains(phrase)));
    known.or_else(|| find().map(|(id, _)| *id)).unwrap_or(Id::Network)
}

/// One way out of a fault.
pub fn cure(id: Id) -> &'static str {
    match id {
        Id::Disk => "free some space, then run the same command again: finished steps are kept",
        Id::WheelHash => {
            "the index served other bytes than the lock knows: if that is meant, run `cargo xtask lock --update`"
        }
        Id::Tls => "give the CA of your proxy with --ca-cert FILE or SSL_CERT_FILE; verification stays on",
        Id::Network => {
            "check the network, the proxy and that this host answers, then run the same command again: finished steps are \
             kept"
        }
        Id::BaseGone => {
            "the registry has it no longer, or not yet: choose another tag and digest in variants.yaml, or name a \
             mirror that kept it with --mirror"
        }
        Id::Digest => {
            "run the same command again; if it stays so, a proxy or the registry itself spoils what it passes on"
        }
        Id::RateLimit => "wait, log in with `docker login`, or name a mirror with --mirror",
        Id::RegistryAuth => "log in with `docker login`, or name a mirror that you may read with --mirror",
        Id::NoWheelChannel => "choose versions that the index has; `cargo xtask list` shows what is known",
        Id::Engine => "run `cargo xtask engine status`, then the same command again",
        _ => "fix what the lines above name, then run the same command again",
    }
}

/// A full disk, whichever file of ours met it: the system's own error, with the file as the place.
fn of_full_disk(error: &anyhow::Error) -> Option<Refusal> {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let is_full = |io: &std::io::Error| matches!(io.kind(), StorageFull | QuotaExceeded);
    let full = error.chain().find_map(|cause| cause.downcast_ref().filter(|io| is_full(io)))?;
    Some(Problem::new(Id::Disk, error.to_string(), full.to_string(), cure(Id::Disk)).into())
}

/// Any error in the one form that all have. What nobody made a refusal of is the host's where the system said no, and else
/// this program's own.
pub fn refusal(error: &anyhow::Error) -> Refusal {
    let made = error.downcast_ref::<Refusal>().cloned();
    made.or_else(|| of_full_disk(error)).unwrap_or_else(|| unforeseen(error).into())
}

fn unforeseen(error: &anyhow::Error) -> Problem {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let (place, what) = match &causes[..] {
        [doing, causes @ ..] if !causes.is_empty() => (doing.clone(), causes.join(": ")),
        _ => ("cargo xtask".to_owned(), error.to_string()),
    };
    match error.chain().any(|cause| cause.is::<std::io::Error>()) {
        true => Problem::new(
            Id::Host,
            place,
            what,
            "make sure that this user can read and write there, then run it again",
        ),
        false => {
            Problem::new(Id::Internal, place, what, "run it again with --verbose, and report what it says")
        }
    }
}

/// An error for a failed program: a refusal with an id where its words are known, otherwise with `otherwise`.
pub fn error(doing: &str, text: &str, otherwise: Id) -> anyhow::Error {
    let id = classify(text).unwrap_or(otherwise);
    let said = strip_credentials(&tail(text.trim_end(), 12)).replace('\n', "\n    ");
    Refusal::from(Problem::new(id, doing, format!("it failed:\n    {said}"), cure(id))).into()
}

/// Ends the function with [`error`]; words that are not known mean the tool itself.
pub fn refuse_or_bail<T>(doing: &str, text: &str) -> anyhow::Result<T> {
    Err(error(doing, text, Id::Tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out_of_addresses_only() {
        let cases = [
            ("https://u:p@mirror.example.org/debian x", "https://mirror.example.org/debian x"),
            ("deb https://u:p%40@m.example.org:8080 a", "deb https://m.example.org:8080 a"),
            ("http://m.example.org/a@b", "http://m.example.org/a@b"),
            ("mail me@example.org", "mail me@example.org"),
            ("a http://u@x/ b http://v:w@y/", "a http://x/ b http://y/"),
        ];
        for (text, want) in cases {
            assert_eq!(strip_credentials(text), want);
        }
    }

    #[test]
    fn the_words_of_real_programs_are_known() {
        let cases = [
            ("Temporary failure in name resolution", Id::Network),
            (
                "error: Failed to fetch: `http://…`\n  Caused by: invalid peer certificate: UnknownIssuer",
                Id::Tls,
            ),
            ("Hash mismatch for `torch==2.15.0`", Id::WheelHash),
            ("write /x: no space left on device", Id::Disk),
            ("ERROR: Cannot connect to the Docker daemon at unix:///x", Id::Engine),
            ("× No solution found when resolving dependencies:", Id::NoWheelChannel),
        ];
        for (text, id) in cases {
            assert_eq!(classify(text), Some(id), "{text}");
        }
        assert_eq!(classify("Segmentation fault"), None);
    }

    #[test]
    fn a_full_disk_is_known_below_every_context() {
        use anyhow::Context as _;
        let error =
            |code| Err::<(), _>(std::io::Error::from_raw_os_error(code)).context("writing /a/b").unwrap_err();
        let said = of_full_disk(&error(28)).unwrap().to_string(); // ENOSPC
        assert!(said.starts_with("error[E_DISK]: writing /a/b: No space left on device"), "{said}");
        assert!(of_full_disk(&error(122)).is_some()); // EDQUOT
        assert!(of_full_disk(&error(13)).is_none()); // EACCES
    }

    #[test]
    fn what_nobody_foresaw_looks_like_all_else() {
        use anyhow::{Context as _, anyhow};
        let denied = Err::<(), _>(std::io::Error::from_raw_os_error(13)).context("reading /a").unwrap_err();
        let cases = [
            (denied, "error[E_HOST]: reading /a: Permission denied"),
            (anyhow!("no").context("asking"), "error[E_INTERNAL]: asking: no\n  help: "),
            (anyhow!("no"), "error[E_INTERNAL]: cargo xtask: no\n  help: "),
            (Refusal::from(Problem::new(Id::Tag, "a", "b", "c")).into(), "error[E_TAG]: a: b\n  help: c"),
        ];
        for (error, begins) in cases {
            let said = refusal(&error).to_string();
            assert!(said.starts_with(begins), "{said}");
        }
    }

    #[test]
    fn a_registrys_answers_are_told_apart() {
        let cases = [
            ("ERROR: registry.example.org/x:1@sha256:0: not found", Id::BaseGone),
            ("unexpected status from HEAD request: manifest unknown", Id::BaseGone),
            ("429 Too Many Requests - toomanyrequests: You have reached your pull rate limit", Id::RateLimit),
            ("pull access denied, insufficient_scope: authorization failed", Id::RegistryAuth),
            ("401 Unauthorized", Id::RegistryAuth),
            ("dial tcp: lookup registry.example.org: no such host", Id::Network),
            ("x509: certificate signed by unknown authority", Id::Tls),
            ("it is a mystery", Id::Network),
        ];
        for (text, id) in cases {
            assert_eq!(of_registry(text), id, "{text}");
        }
    }
}
