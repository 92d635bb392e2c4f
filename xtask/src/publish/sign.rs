//! Signatures, made and verified by cosign, of digests alone: a name can move, what was signed cannot.

use crate::faults;
use crate::http::{Cause, Failure};
use crate::problem::Id;
use crate::registry::{Reference, Registry};
use crate::runner::{Step, tail};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Who signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// A key: a file of cosign's, or the address of one in a key service. Its password is in `COSIGN_PASSWORD`.
    Key(String),
    /// An identity that is there, of a pipeline for one: who it is, and who says so.
    Identity {
        /// The subject of the certificate, e.g. the address of a workflow.
        identity: String,
        /// The issuer of the token.
        issuer: String,
    },
}

/// Signs, and looks at what was signed.
pub struct Signing<'a> {
    signer: &'a Signer,
    registry: &'a Registry<'a>,
    /// Whether signatures go into the public transparency log.
    logged: bool,
    folder: tempfile::TempDir,
}

/// A signing configuration that names no service: the signature alone, in no public log.
const NO_SERVICE: &str = r#"{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json"}"#;

impl<'a> Signing<'a> {
    /// Prepares; the public half of a key is asked for.
    ///
    /// Errors: `E_TOOL` without cosign (3 or newer), `E_SIGNATURE` for a key that cannot be used.
    pub fn new(signer: &'a Signer, registry: &'a Registry<'a>, logged: bool) -> Result<Signing<'a>> {
        let it = Signing { signer, registry, logged, folder: tempfile::tempdir()? };
        crate::files::write(&it.file("signing.json"), NO_SERVICE.as_bytes())?;
        if let Signer::Key(key) = signer {
            let public = path(&it.file("key.pub"));
            it.run(
                "key",
                &Step::new("the public key", ["cosign", "public-key", "--key", key, "--outfile", &public]),
            )
            .map_err(|failure| failure.error("cosign"))?;
        }
        Ok(it)
    }

    /// Signs a digest, unless it is signed already, and verifies the signature at the registry.
    ///
    /// Errors: `E_SIGNATURE` with cosign's words; a registry's own.
    pub fn sign(&self, image: &Reference) -> Result<()> {
        let name = image.to_string();
        if self.verify_step(&name).output()?.status.success() {
            return Ok(());
        }
        for step in [self.sign_step(&name), self.verify_step(&name)] {
            self.run(&name, &step).map_err(|failure| failure.error(&name))?;
        }
        Ok(())
    }

    fn sign_step(&self, image: &str) -> Step {
        let step = Step::new("signature", ["cosign", "sign", "--yes"]);
        let step = match self.signer {
            Signer::Key(key) => step.args(["--key", key]),
            Signer::Identity { .. } => step,
        };
        let step = match self.logged {
            true => step,
            false => step.args(["--signing-config", &path(&self.file("signing.json"))]),
        };
        step.args([image])
    }

    fn verify_step(&self, image: &str) -> Step {
        let step = Step::new("is it signed?", ["cosign", "verify", "--output", "text"]);
        let step = match self.signer {
            Signer::Key(_) => step.args(["--key", &path(&self.file("key.pub"))]),
            Signer::Identity { identity, issuer } => {
                step.args(["--certificate-identity", identity, "--certificate-oidc-issuer", issuer])
            }
        };
        let step = if self.logged { step } else { step.args(["--insecure-ignore-tlog=true"]) };
        step.args([image])
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What fails for a moment is tried again; what is not known to be of that sort is the signature's own failure.
    fn run(&self, what: &str, step: &Step) -> Result<(), Failure> {
        self.registry.retry().run(&format!("{} of {what}", step.reason), || {
            let out =
                step.output().map_err(|error| Failure::new(Cause::Other(Id::Tool), error.to_string()))?;
            if out.status.success() {
                return Ok(());
            }
            let cause = if is_transient(&out.stderr) { Cause::Reset } else { Cause::Other(Id::Signature) };
            Err(Failure::new(cause, faults::strip_credentials(&tail(out.stderr.trim(), 3))))
        })
    }
}

/// Whether what cosign says is over in a moment: of the network, or of a service of Sigstore that is busy.
fn is_transient(said: &str) -> bool {
    let busy = |code: &u16| {
        said.contains(&format!("Fulcio returned {code}")) || said.contains(&format!("): status {code}"))
    };
    // The last is of an answer that ended before it began; a file can be empty for good.
    faults::classify(said) == Some(Id::Network)
        || [429, 500, 502, 503, 504].iter().any(busy)
        || said.contains("\": EOF")
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Client, Policy, RealClock, Retry};
    use std::time::Duration;

    #[test]
    fn an_identity_signs_without_a_key_and_is_demanded_of_the_signature() {
        let policy = Policy::within(Duration::ZERO);
        let retry = Retry { policy, clock: &RealClock, say: &|_| () };
        let registry = Registry::new(Client::new().unwrap(), retry).unwrap();
        let signer = Signer::Identity { identity: "me".to_owned(), issuer: "https://example.org".to_owned() };
        let signing = Signing::new(&signer, &registry, true).unwrap();
        assert_eq!(signing.sign_step("r@sha256:1").to_line(), "cosign sign --yes r@sha256:1");
        assert_eq!(
            signing.verify_step("r@sha256:1").to_line(),
            "cosign verify --output text --certificate-identity me \
             --certificate-oidc-issuer https://example.org r@sha256:1"
        );
    }

    #[test]
    fn a_service_that_is_busy_is_not_one_that_refuses() {
        for said in [
            "error signing bundle: Fulcio returned 503: ",
            "Post \"https://log.example.org/api/v1/log/entries\": giving up after 2 attempt(s): status 429",
            "Post \"https://ca.example.org/api/v2/signingCert\": EOF",
            "Get \"https://tuf.example.org/2.root.json\": dial tcp 192.0.2.1:443: connect: connection refused",
        ] {
            assert!(is_transient(said), "{said}");
        }
        for said in [
            "error signing bundle: Fulcio returned 401: unexpected \"iss\" claim value",
            "[POST /api/v1/log/entries][400] createLogEntryBadRequest {}",
            "reading key: decrypt: encrypted: decryption failed",
            "reading key: EOF",
        ] {
            assert!(!is_transient(said), "{said}");
        }
    }
}
