//! Signatures that others vouch for: cosign of Debian, against the services of Sigstore on loopback.

use crate::proxy::{Fault, Proxy};
use crate::publish::Market;
use crate::signed::{cosign, path};
use crate::support::{Outcome, project, script};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Who the pipeline is, and who says so.
const SUBJECT: &str = "https://example.org/w.yml@main";
const ISSUER: &str = "https://issuer.example.org";
/// What the authority and the log are asked for.
const CERTIFICATE: &str = "/api/v2/signingCert";
const ENTRY: &str = "/api/v1/log/entries";

/// A pipeline with one image that passed, and services of Sigstore behind a proxy that fails as it is told to.
struct Pipeline {
    market: Market,
    digest: String,
    services: Child,
    proxy: Proxy,
    /// What cosign knows of the services.
    known: tempfile::TempDir,
}

impl Pipeline {
    /// Cosign is told of the services as of anybody's own: once, by `cosign initialize`.
    fn start() -> Pipeline {
        let market = Market::new();
        let digest = market.push("runtime", "a");
        market.smoke("runtime", &[]).expect(0, &[]);
        let mut serve = script("sigstore", &project().join("xtask/tests/sigstore/serve.js"));
        let mut services = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(services.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let proxy = Proxy::start(port.trim().parse().unwrap());
        let known = tempfile::tempdir().unwrap();
        let pipeline = Pipeline { market, digest, services, proxy, known };
        let (_, root, _) = pipeline.market.ask("GET", &pipeline.url("1.root.json"), "*/*", b"");
        std::fs::write(pipeline.known.path().join("root.json"), root).unwrap();
        let (mirror, root) = (pipeline.url(""), pipeline.known("root.json"));
        pipeline.cosign(&["initialize", "--mirror", &mirror, "--root", &root]).expect(0, &[]);
        pipeline
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.proxy.port)
    }

    fn known(&self, file: &str) -> String {
        self.known.path().join(file).display().to_string()
    }

    /// Cosign, as somebody calls it who wants to know.
    fn cosign(&self, args: &[&str]) -> Outcome {
        let mut command = Command::new(cosign().join("cosign"));
        let known = [("TUF_ROOT", self.known("")), ("COSIGN_PASSWORD", "canary".to_owned())];
        Outcome::of(command.args(args).current_dir(self.known.path()).envs(known).output().unwrap())
    }

    fn verify(&self, who: &[&str]) -> Outcome {
        let image = format!("{}/pytorch-cuda@{}", self.market.direct(), self.digest);
        self.cosign(&[&["verify"], who, &[&image]].concat())
    }

    /// `publish --sign`, with a token of this issuer.
    fn publish(&self, who: &[&str], issuer: &str) -> Outcome {
        let at = self.market.direct();
        let args = ["publish", "--registry", &at, "--variant", "runtime", "--retry-budget", "5s", "--sign"];
        let env = [
            ("PATH", path()),
            ("TUF_ROOT", self.known("")),
            ("COSIGN_PASSWORD", "canary".to_owned()),
            ("ACTIONS_ID_TOKEN_REQUEST_URL", self.url(&format!("token?subject={SUBJECT}&issuer={issuer}"))),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "canary".to_owned()),
        ];
        let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
        self.market.doubles.run(&[&args[..], who].concat(), &env)
    }

    fn publish_as(&self, identity: &str) -> Outcome {
        self.publish(&["--identity", identity, "--issuer", ISSUER], ISSUER)
    }

    /// Nothing that moves has moved.
    fn refused(&self, outcome: &Outcome, said: &str) {
        outcome.expect(1, &["error[E_SIGNATURE]", said, "UNDONE"]);
        assert_eq!(self.market.tags().len(), 1, "{:?}", self.market.tags());
    }

    /// How often somebody was asked.
    fn asked(&self, what: &str) -> usize {
        self.proxy.seen("POST", what).len()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.services.kill().ok();
        self.services.wait().ok();
    }
}

/// A pipeline has no key: an authority certifies what it is, and a log notes what it signs; once is enough.
#[test]
#[ignore = "needs Debian's docker-registry and cosign, fetches node"]
fn a_pipeline_signs_as_itself() {
    let pipeline = Pipeline::start();
    // Who is busy is asked again, after cosign itself has given up.
    pipeline.proxy.fail("POST", CERTIFICATE, (0, 2), Fault::Status(503, String::new()));
    let good = pipeline.publish_as(SUBJECT);
    good.expect(0, &["moved", "once more"]);
    assert!(!good.stderr.contains("canary") && !good.stdout.contains("canary"));
    let token = &pipeline.proxy.seen("GET", "/token?")[0];
    assert_eq!(token.authorization.as_deref(), Some("bearer canary"));
    // The image and its report.
    assert_eq!((pipeline.asked(CERTIFICATE), pipeline.asked(ENTRY)), (2 + 2, 2));
    pipeline.publish_as(SUBJECT).expect(0, &["was there"]);
    assert_eq!((pipeline.asked(CERTIFICATE), pipeline.asked(ENTRY)), (2 + 2, 2));

    let verify = |identity: &str, issuer: &str| {
        pipeline.verify(&["--certificate-identity", identity, "--certificate-oidc-issuer", issuer])
    };
    let said = [&*pipeline.digest, "the transparency log", "trusted certificate authority"];
    verify(SUBJECT, ISSUER).expect(0, &said);
    verify("https://example.org/w.yml", ISSUER).expect(1, &["expected SAN value"]);
    verify(SUBJECT, "https://example.org").expect(1, &["expected issuer value"]);
}

/// No name moves where the authority does not believe the issuer, the log takes nothing, or another one has signed.
#[test]
#[ignore = "needs Debian's docker-registry and cosign, fetches node"]
fn who_is_not_vouched_for_signs_nothing() {
    let pipeline = Pipeline::start();
    let unknown = pipeline.publish(&["--identity", SUBJECT, "--issuer", ISSUER], "https://example.org");
    pipeline.refused(&unknown, "Fulcio returned 401: unexpected \"iss\" claim value");
    assert_eq!(pipeline.asked(ENTRY), 0);
    pipeline.proxy.fail("POST", ENTRY, (0, 1), Fault::Status(400, String::new()));
    pipeline.refused(&pipeline.publish_as(SUBJECT), "createLogEntryBadRequest");
    let another = pipeline.publish_as("https://example.org/another.yml@main");
    pipeline.refused(&another, &format!("got \"{SUBJECT}\""));
    // Whoever that is has signed the image; its report is left.
    let before = pipeline.asked(ENTRY);
    pipeline.publish_as(SUBJECT).expect(0, &["moved"]);
    assert_eq!(pipeline.asked(ENTRY), before + 1);
}

#[test]
#[ignore = "needs Debian's docker-registry and cosign, fetches node"]
fn no_name_moves_while_nobody_can_vouch() {
    let pipeline = Pipeline::start();
    pipeline.proxy.fail("GET", "", (0, 1), Fault::Down(Duration::from_secs(10)));
    let away = pipeline.publish_as(SUBJECT);
    away.expect(3, &["error[E_NETWORK]", "connection refused", "tries in", "UNDONE"]);
    assert_eq!(pipeline.market.tags().len(), 1);
}

/// A key can be in the log too.
#[test]
#[ignore = "needs Debian's docker-registry and cosign, fetches node"]
fn what_a_key_signs_is_in_the_log() {
    let pipeline = Pipeline::start();
    pipeline.cosign(&["generate-key-pair"]).expect(0, &[]);
    pipeline.publish(&["--key", &pipeline.known("cosign.key")], ISSUER).expect(0, &["moved"]);
    assert_eq!((pipeline.asked(CERTIFICATE), pipeline.asked(ENTRY)), (0, 2));
    let key = ["--key", "cosign.pub"];
    pipeline.verify(&key).expect(0, &[&pipeline.digest, "the transparency log"]);
}
