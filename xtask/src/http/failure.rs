//! Why a request failed, as far as the next step depends on it.

use super::retry::retry_after;
use crate::faults;
use crate::problem::{Id, Problem, Refusal};
use crate::runner::tail;
use std::fmt;
use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

/// The sort of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An answer of 400 or more.
    Status(u16),
    /// The name is not known, or its server does not answer.
    Name,
    /// Nobody listens.
    Refused,
    /// The connection ended before the answer did.
    Reset,
    /// No answer in time.
    Timeout,
    /// Other bytes came than their digest or their length promised.
    Corrupt,
    /// The certificate is not trusted, or it is no TLS at all.
    Tls,
    /// Anything else, by what is known of it.
    Other(Id),
}

impl Cause {
    /// Whether the same request may succeed later.
    pub fn is_transient(self) -> bool {
        match self {
            Cause::Status(code) => matches!(code, 408 | 425 | 429 | 500 | 502..=599),
            Cause::Name | Cause::Refused | Cause::Reset | Cause::Timeout | Cause::Corrupt => true,
            Cause::Tls | Cause::Other(_) => false,
        }
    }

    /// Whether there is no such thing, as the other side says.
    pub fn is_gone(self) -> bool {
        matches!(self, Cause::Status(404 | 410))
    }

    /// The id by which people know it, where an image is what was wanted.
    pub fn id(self) -> Id {
        match self {
            Cause::Status(401 | 403) => Id::RegistryAuth,
            _ if self.is_gone() => Id::BaseGone,
            Cause::Status(429) => Id::RateLimit,
            Cause::Tls => Id::Tls,
            Cause::Corrupt => Id::Digest,
            Cause::Other(id) => id,
            _ => Id::Network,
        }
    }
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its sort.
    pub cause: Cause,
    /// The other side's words, or the system's; without credentials.
    pub said: String,
    /// How long the other side wants to be left alone.
    pub retry_after: Option<Duration>,
    /// What the other side wants to know first: its `WWW-Authenticate` lines.
    pub challenges: Vec<String>,
}

impl Failure {
    /// A failure with its words.
    pub fn new(cause: Cause, said: impl Into<String>) -> Failure {
        Failure { cause, said: said.into(), retry_after: None, challenges: Vec::new() }
    }

    /// From an answer of 400 or more, and the beginning of its body.
    pub(super) fn of_status(status: u16, headers: &ureq::http::HeaderMap, body: &str) -> Failure {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let challenges = headers.get_all("www-authenticate").iter().filter_map(|value| value.to_str().ok());
        Failure {
            retry_after: text("retry-after").and_then(|value| retry_after(value, SystemTime::now())),
            challenges: challenges.map(str::to_owned).collect(),
            ..Failure::new(Cause::Status(status), faults::strip_credentials(body.trim()))
        }
    }

    /// From what the client met before there was an answer, or while it came.
    pub(super) fn of_error(error: &ureq::Error) -> Failure {
        let said = faults::strip_credentials(&error.to_string());
        let cause = match error {
            ureq::Error::Io(error) => return Failure::of_io(error),
            ureq::Error::HostNotFound => Cause::Name,
            ureq::Error::ConnectionFailed => Cause::Refused,
            ureq::Error::Timeout(_) | ureq::Error::BodyStalled => Cause::Timeout,
            // What is cut in the middle of a head or a chunk breaks the protocol.
            ureq::Error::Protocol(_) => Cause::Reset,
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::Pem(_) => Cause::Tls,
            ureq::Error::ConnectProxyFailed(_) => Cause::Refused,
            _ => Cause::Other(Id::Network),
        };
        Failure::new(cause, said)
    }

    /// From what the system says of a connection.
    pub fn of_io(error: &std::io::Error) -> Failure {
        let said = faults::strip_credentials(&error.to_string());
        let cause = match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
                Cause::Refused
            }
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof => Cause::Reset,
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Cause::Timeout,
            _ => match faults::classify(&said) {
                Some(Id::Tls) => Cause::Tls,
                Some(Id::Network) => Cause::Name,
                other => Cause::Other(other.unwrap_or(Id::Network)),
            },
        };
        Failure::new(cause, said)
    }

    /// From what a program says that spoke with a registry for us: docker, cosign.
    pub fn of_words(text: &str) -> Failure {
        let cause = match faults::of_registry(text) {
            Id::RateLimit => Cause::Status(429),
            Id::RegistryAuth => Cause::Status(401),
            Id::BaseGone => Cause::Status(404),
            Id::Tls => Cause::Tls,
            Id::Network => Cause::Reset,
            id => Cause::Other(id),
        };
        Failure::new(cause, faults::strip_credentials(tail(text.trim(), 3).trim()))
    }

    /// How often and how long it was tried.
    pub(super) fn after(self, tries: u32, elapsed: Duration) -> Failure {
        if tries < 2 {
            return self;
        }
        let said = format!("{} ({tries} tries in {:.0} s)", self.said, elapsed.as_secs_f64());
        Failure { said: said.trim_start().to_owned(), ..self }
    }

    /// The problem of whoever wanted `place`.
    pub fn problem(&self, place: impl Into<String>) -> Problem {
        let id = self.cause.id();
        Problem::new(id, place, self.to_string(), faults::cure(id))
    }

    /// The error that ends the command.
    pub fn error(&self, place: impl Into<String>) -> anyhow::Error {
        Refusal::from(self.problem(place)).into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.cause, self.said.as_str()) {
            (Cause::Status(code), "") => write!(f, "answer {code}")?,
            (Cause::Status(code), said) => write!(f, "answer {code}: {said}")?,
            (_, said) => f.write_str(said)?,
        }
        match self.retry_after {
            Some(wait) => write!(f, ", which asks to wait {} s", wait.as_secs()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sort_has_its_id() {
        let cases = [
            (Cause::Status(401), Id::RegistryAuth),
            (Cause::Status(403), Id::RegistryAuth),
            (Cause::Status(404), Id::BaseGone),
            (Cause::Status(429), Id::RateLimit),
            (Cause::Status(503), Id::Network),
            (Cause::Tls, Id::Tls),
            (Cause::Reset, Id::Network),
        ];
        for (cause, id) in cases {
            assert_eq!(Failure::new(cause, "x").problem("p").id, id, "{cause:?}");
        }
    }

    #[test]
    fn the_systems_words_are_sorted() {
        let io = |kind, text: &str| Failure::of_io(&std::io::Error::new(kind, text)).cause;
        assert_eq!(io(ErrorKind::ConnectionReset, ""), Cause::Reset);
        assert_eq!(io(ErrorKind::InvalidData, "invalid peer certificate: UnknownIssuer"), Cause::Tls);
        assert_eq!(io(ErrorKind::Other, "failed to lookup address information: x"), Cause::Name);
        assert_eq!(io(ErrorKind::Other, "it is a mystery"), Cause::Other(Id::Network));
    }
}
