//! What apt and dpkg say when they fail, sorted into refusals.

use crate::faults::{self, strip_credentials};
use crate::problem::{Id, Problem, Refusal};

/// Phrases in lower case, what they mean, and the way out. The first that is found decides. What is not here is looked
/// up among the words that all programs share ([`faults::classify`]).
const PHRASES: &[(Id, &[&str], &str)] = &[
    (
        Id::Disk,
        &["no space left on device", "you don't have enough free space", "disk quota exceeded", "write (28:"],
        "free some space, then run the same command again",
    ),
    (
        Id::Tls,
        &[
            "certificate verification failed",
            "certificate verify failed",
            "could not handshake",
            "tls connection",
            "ssl connection",
        ],
        "name the CA of your proxy in SSL_CERT_FILE, or put it in /usr/local/share/ca-certificates and run `update-ca-certificates`",
    ),
    (
        Id::Host,
        &[
            "no_pubkey",
            "is not signed",
            "signatures couldn't be verified",
            "signatures were invalid",
            "missing key",
        ],
        "install the keyring of that archive, or name it with signed-by in the host's apt sources",
    ),
    (
        Id::Host,
        &["is not valid yet", "is expired (invalid since", "not live until"],
        "set the host's clock right; for a snapshot mirror, set check-valid-until=no in its source",
    ),
    (
        Id::Host,
        &["does not have a release file", "no longer has a release file"],
        "name a mirror that carries this suite in the host's apt sources",
    ),
    (
        Id::Host,
        &["401  unauthorized", "403  forbidden", "407  proxy", "proxy authentication required"],
        "give apt your credentials in /etc/apt/auth.conf.d, or ask whoever runs the mirror or proxy",
    ),
    (
        Id::Locked,
        &["could not get lock", "unable to lock", "unable to acquire the dpkg frontend lock"],
        "wait for the other run to end, then run the same command again",
    ),
    (
        Id::Network,
        &["hash sum mismatch", "file has unexpected size", "mirror sync in progress"],
        "the mirror or a proxy served an old or torn file: wait some minutes, then run the same command again",
    ),
    (
        Id::Tool,
        &[
            "unable to locate package",
            "can't find a source to download",
            "has no installation candidate",
            "was not found",
        ],
        "check the name in variants.yaml, and that the host's mirror carries the suite",
    ),
    (
        Id::Network,
        &[
            "could not connect",
            "unable to connect",
            "could not resolve",
            "temporary failure resolving",
            "404  not found",
            "cannot initiate the connection",
            "could not wait for server fd",
            "connection failed",
            "timed out",
        ],
        "check the network, the proxy and the mirror, then run the same command again",
    ),
    (
        Id::Host,
        &["permission denied", "operation not permitted"],
        "run this as root, on a host that lets root mount and change owners",
    ),
];

/// Whether the words blame what is in the archives, so that fewer suites may do, and not the way to them.
pub fn blames_archives(stderr: &str) -> bool {
    matches!(classify(stderr).0, Id::Host | Id::Tool)
}

/// A refusal for a program of the apt family that failed: its id by its words, its errors, one way out.
pub fn refusal(program: &str, stderr: &str) -> anyhow::Error {
    let (id, cure) = classify(stderr);
    let what = format!("it failed:\n    {}", errors(stderr).join("\n    "));
    Refusal::from(Problem::new(id, program, what, cure)).into()
}

/// What the words mean, and the way out.
fn classify(stderr: &str) -> (Id, &'static str) {
    let text = stderr.to_lowercase();
    let known = PHRASES.iter().find(|(_, phrases, _)| phrases.iter().any(|p| text.contains(p)));
    match (known, faults::classify(stderr)) {
        (Some((id, _, cure)), _) => (*id, cure),
        (None, Some(id)) => (id, faults::cure(id)),
        (None, None) => (Id::Host, "fix what the lines above name, then run the same command again"),
    }
}

/// The lines that say what is wrong, without credentials: apt's errors, or the last lines where there are none.
fn errors(stderr: &str) -> Vec<String> {
    const MOST: usize = 8;
    // mmdebstrap tells after the error that it failed, and how: that helps nobody.
    const NOISE: &[&str] = &[
        "hooklistener",
        "mmdebstrap failed to run",
        "APT::Status-Fd",
        "--status-fd",
        "Some index files failed",
    ];
    let noise = |line: &str| NOISE.iter().any(|noise| line.contains(noise));
    let lines = || stderr.lines().map(str::trim_end).filter(|line| !line.is_empty() && !noise(line));
    let is_error = |line: &&str| line.starts_with("E:") || line.starts_with("Err:") || line.contains("error");
    let mut kept: Vec<&str> = lines().filter(is_error).collect();
    if kept.is_empty() {
        kept = lines().collect();
    }
    let from = kept.len().saturating_sub(MOST);
    kept[from..].iter().map(|line| strip_credentials(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_apt_are_known() {
        let cases = [
            (
                "E: Failed to fetch http://m.example.org/d/InRelease  Temporary failure resolving 'm.example.org'",
                Id::Network,
            ),
            (
                "Err:1 http://m.example.org x InRelease\n  Could not connect to m.example.org:80 (192.0.2.1), connection timed out",
                Id::Network,
            ),
            ("E: Failed to fetch x  502  Bad Gateway [IP: 192.0.2.1 80]", Id::Network),
            (
                "E: Failed to fetch x  File has unexpected size (1 != 2). Mirror sync in progress?",
                Id::Network,
            ),
            (
                "Certificate verification failed: The certificate is NOT trusted. The certificate issuer is unknown.",
                Id::Tls,
            ),
            ("Could not handshake: Error in the certificate verification. [IP: 192.0.2.1 443]", Id::Tls),
            ("E: You don't have enough free space in /x/.", Id::Disk),
            ("dpkg-deb: error: failed to write (No space left on device)", Id::Disk),
            ("E: Write error - write (28: No space left on device)", Id::Disk),
            ("E: Unable to locate package tini", Id::Tool),
            ("E: The repository 'http://m.example.org/d x Release' does not have a Release file.", Id::Host),
            (
                "W: GPG error: http://m.example.org x InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 1",
                Id::Host,
            ),
            (
                "E: Release file for http://m.example.org/x is not valid yet (invalid for another 3h)",
                Id::Host,
            ),
            (
                "E: Release file for http://m.example.org/x is expired (invalid since 24d 1h). Updates",
                Id::Host,
            ),
            ("E: Failed to fetch x  401  Unauthorized [IP: 192.0.2.1 80]", Id::Host),
            ("E: Could not get lock /x/lock. It is held by process 1 (apt-get)", Id::Locked),
            ("mount: permission denied", Id::Host),
            ("Segmentation fault", Id::Host),
        ];
        for (text, id) in cases {
            assert_eq!(classify(text).0, id, "{text}");
        }
        assert!(blames_archives("E: The repository 'x' does not have a Release file."));
        assert!(!blames_archives("E: Could not connect to m.example.org:80, connection timed out"));
    }

    #[test]
    fn a_refusal_shows_the_errors_and_no_credentials() {
        let text = "Get:1 x\nW: something\nE: Failed to fetch https://u:p@m.example.org/x  404  Not Found\nE: Some index files failed\n";
        let said = refusal("apt-get update", text).to_string();
        assert!(said.starts_with("error[E_NETWORK]: apt-get update: it failed:\n"), "{said}");
        assert!(said.contains("https://m.example.org/x") && !said.contains("u:p@"), "{said}");
        assert!(!said.contains("Get:1") && !said.contains("W:"), "{said}");
    }
}
