//! Who signs what is published: a key, with cosign of Debian; an identity, with a double, for nobody vouches for one here.

use crate::debian;
use crate::publish::Market;
use crate::support::{Outcome, project};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Signed by digest, verified by cosign itself, and once is enough; without a good signature no name moves.
#[test]
#[ignore = "needs Debian's docker-registry and cosign"]
fn what_is_published_is_signed() {
    let market = Market::new();
    let digest = market.push("runtime", "a");
    market.smoke("runtime", &[]).expect(0, &[]);
    let bin = debian::unpacked_of_testing("cosign").join("usr/bin");
    let keys = tempfile::tempdir().unwrap();
    let cosign = |args: &[&str]| {
        let mut command = Command::new(bin.join("cosign"));
        command.args(args).current_dir(keys.path()).env("COSIGN_PASSWORD", "canary-password");
        Outcome::of(command.output().unwrap())
    };
    cosign(&["generate-key-pair"]).expect(0, &[]);
    cosign(&["generate-key-pair", "--output-key-prefix", "other"]).expect(0, &[]);
    let path = format!("{}:{}:{}", doubles().display(), bin.display(), std::env::var("PATH").unwrap());
    let key = keys.path().join("cosign.key").display().to_string();
    let at = market.direct();
    let publish = |password: &str| {
        let args = ["publish", "--registry", &at, "--variant", "runtime", "--retry-budget", "5s"];
        let sign = ["--sign", "--key", &key, "--no-transparency-log"];
        market.doubles.run(&[&args[..], &sign].concat(), &[("PATH", &path), ("COSIGN_PASSWORD", password)])
    };
    publish("wrong").expect(1, &["error[E_SIGNATURE]", "UNDONE"]);
    assert!(!market.tags().contains_key("runtime"));
    let good = publish("canary-password");
    good.expect(0, &["moved"]);
    assert!(!good.stderr.contains("canary-password") && !good.stdout.contains("canary-password"));
    let image = format!("{at}/pytorch-cuda@{digest}");
    let verify = |public: &str| cosign(&["verify", "--key", public, "--insecure-ignore-tlog=true", &image]);
    verify("cosign.pub").expect(0, &[&digest]);
    assert_ne!(verify("other.pub").code, Some(0));
    // Signed once; the report is still found beside the signature.
    let signatures = || {
        let (_, list, _) = market.ask("GET", &format!("manifests/{}", digest.replace(':', "-")), "*/*", b"");
        let list: Value = serde_json::from_slice(&list).unwrap();
        list["manifests"].as_array().unwrap().len()
    };
    let before = signatures();
    publish("canary-password").expect(0, &["was there"]);
    assert_eq!((signatures(), before), (2, 2));
    let fresh = ["freshness", "--registry", &at, "--variant", "runtime", "--max-age", "1h"];
    market.doubles.run(&fresh, &[]).expect(0, &["not-gpu-tested"]);
}

fn doubles() -> PathBuf {
    project().join("xtask/tests/it/doubles")
}

/// Stands in for cosign: a digest is signed when `sign` was called for it. It notes each call and whose token it saw.
const COSIGN: &str = r#"#!/bin/sh
image=; for image in "$@"; do :; done
echo "$* ($ACTIONS_ID_TOKEN_REQUEST_TOKEN)" >> "$DOUBLE/cosign"
signed="$DOUBLE/signed-${image##*:}"
case $1 in
sign) [ -e "$DOUBLE/cosign.forgets" ] || touch "$signed" ;;
verify) [ -e "$signed" ] || { echo "no signatures found" >&2; exit 10; } ;;
*) exit 64 ;;
esac
"#;

/// A pipeline has no key: what it is comes from its environment, and is demanded of every signature before a name moves.
#[test]
#[ignore = "needs Debian's docker-registry"]
fn a_pipeline_signs_as_itself() {
    let market = Market::new();
    let digest = market.push("runtime", "a");
    market.smoke("runtime", &[]).expect(0, &[]);
    let bin = tempfile::tempdir().unwrap();
    let cosign = bin.path().join("cosign");
    std::fs::write(&cosign, COSIGN).unwrap();
    std::fs::set_permissions(&cosign, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}:{}", doubles().display(), bin.path().display(), std::env::var("PATH").unwrap());
    let at = market.direct();
    let env = [("PATH", path.as_str()), ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "canary")];
    let publish = || {
        let args = ["publish", "--registry", &at, "--variant", "runtime", "--retry-budget", "5s", "--sign"];
        let who = ["--identity", "https://example.org/w.yml@main", "--issuer", "https://example.org"];
        market.doubles.run(&[&args[..], &who].concat(), &env)
    };
    // Signed, and yet no signature of that identity is found: nothing that moves has moved.
    let forgets = market.doubles.copy.path("double/cosign.forgets");
    std::fs::write(&forgets, "").unwrap();
    publish().expect(1, &["error[E_SIGNATURE]", "no signatures found", "UNDONE"]);
    assert_eq!(market.tags().len(), 1, "{:?}", market.tags());
    std::fs::remove_file(&forgets).unwrap();
    std::fs::remove_file(market.doubles.copy.path("double/cosign")).unwrap();

    publish().expect(0, &["moved"]);
    let calls = std::fs::read_to_string(market.doubles.copy.path("double/cosign")).unwrap();
    let verify = "verify --output text --certificate-identity https://example.org/w.yml@main \
                  --certificate-oidc-issuer https://example.org";
    let of = |digest: &str| {
        let image = format!("{at}/pytorch-cuda@{digest}");
        ["verify", "sign", "verify"].map(|what| match what {
            "sign" => format!("sign --yes {image} (canary)"),
            _ => format!("{verify} {image} (canary)"),
        })
    };
    let lines: Vec<&str> = calls.lines().collect();
    assert_eq!(lines[..3], of(&digest), "{calls}");
    // The image and its report, each by its digest; the same again signs nothing.
    assert_eq!(lines.len(), 6, "{calls}");
    publish().expect(0, &["was there"]);
    let again = std::fs::read_to_string(market.doubles.copy.path("double/cosign")).unwrap();
    assert_eq!(again.matches("sign --yes").count(), 2, "{again}");
}
