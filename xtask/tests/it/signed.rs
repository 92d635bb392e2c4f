//! What is published is signed with a key, by cosign of Debian.

use crate::debian;
use crate::publish::Market;
use crate::support::{Outcome, project};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Signed by digest, verified by cosign itself, and once is enough; without a good signature no name moves.
#[test]
#[ignore = "needs Debian's docker-registry and cosign"]
fn what_is_published_is_signed() {
    let market = Market::new();
    let digest = market.push("runtime", "a");
    market.smoke("runtime", &[]).expect(0, &[]);
    let bin = cosign();
    let keys = tempfile::tempdir().unwrap();
    let cosign = |args: &[&str]| {
        let mut command = Command::new(bin.join("cosign"));
        command.args(args).current_dir(keys.path()).env("COSIGN_PASSWORD", "canary-password");
        Outcome::of(command.output().unwrap())
    };
    cosign(&["generate-key-pair"]).expect(0, &[]);
    cosign(&["generate-key-pair", "--output-key-prefix", "other"]).expect(0, &[]);
    let path = path();
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

/// The folder of cosign.
pub fn cosign() -> PathBuf {
    debian::unpacked_of_testing("cosign").join("usr/bin")
}

/// A PATH with cosign, and a double of docker.
pub fn path() -> String {
    let doubles = project().join("xtask/tests/it/doubles");
    format!("{}:{}:{}", doubles.display(), cosign().display(), std::env::var("PATH").unwrap())
}
