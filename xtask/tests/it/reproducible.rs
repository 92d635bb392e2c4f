//! The same bytes whenever and wherever they are built, given the same lock and the same Debian packages. The root's own
//! proof is in `src/root/tests.rs`.

use crate::containers::{docker, image};
use crate::support::Outcome;
use crate::support::{Copy, command_in, project};
use serde_json::{Value, json};
use std::process::Command;

const VARIANTS: [&str; 2] = ["devel", "mlflow"];

/// What an image is: its layers, its configuration and its history, without the commit, which is a label.
fn described(image: &str) -> Value {
    let inspected = docker(&["image", "inspect", image]);
    let mut inspected: Value = serde_json::from_str(&inspected.expect(0, &[]).stdout).unwrap();
    let it = &mut inspected[0];
    let labels = it["Config"]["Labels"].as_object_mut().unwrap();
    assert!(labels.remove("org.opencontainers.image.revision").is_some());
    let history = docker(&[
        "history",
        "--no-trunc",
        "--human=false",
        "--format",
        "{{.CreatedAt}} {{.CreatedBy}}",
        image,
    ]);
    let history: Vec<&str> = history.expect(0, &[]).stdout.lines().collect();
    json!({"layers": it["RootFS"]["Layers"], "config": it["Config"], "created": it["Created"], "history": history})
}

/// Built again, cold, beside what `cargo xtask ci` has built: in another folder, with other times and rights of the files,
/// another home, time zone and umask, and secrets in every input. Equal layers hold none of them.
#[test]
#[ignore = "needs the images"]
fn a_cold_build_elsewhere_gives_the_same_layers() {
    let copy = Copy::new();
    copy.edit("repository: pytorch-cuda", "repository: pytorch-cuda-cold");
    copy.xtask(&["render"]).expect(0, &[]);
    let spoil = "find . -exec touch --date=2001-02-03 {} +; chmod -R go-rwx templates images/2.15/devel images/2.15/mlflow; \
        mkdir home; echo canary-1 | cat - \"$CA\" > home/ca.pem";
    let ca = std::env::var("SSL_CERT_FILE").unwrap_or_else(|_| "/dev/null".to_owned());
    let spoiled = Command::new("sh").args(["-c", spoil]).env("CA", ca).current_dir(copy.dir.path()).output();
    Outcome::of(spoiled.unwrap()).expect(0, &[]);
    let (home, ca) = (copy.path("home"), copy.path("home/ca.pem"));
    // The layers of the base are proved by their record; here they are taken from where they are.
    let cache = std::env::var("XDG_CACHE_HOME")
        .unwrap_or_else(|_| std::env::home_dir().unwrap().join(".cache").display().to_string());
    let env = [
        ("HOME", home.to_str().unwrap()),
        ("XDG_CACHE_HOME", &cache),
        ("SSL_CERT_FILE", ca.to_str().unwrap()),
        ("TZ", "Asia/Tokyo"),
        ("LC_ALL", "C.UTF-8"),
        ("JUPYTER_TOKEN", "canary-2"),
        ("SSH_PUBLIC_KEY", "canary-3"),
    ];
    let state = project().join("target/xtask").display().to_string();
    let state = std::env::var("XTASK_STATE").unwrap_or(state);
    let variants = VARIANTS.iter().flat_map(|variant| ["--variant", variant]);
    let args: Vec<&str> = ["build", "--no-cache", "--state", &state].into_iter().chain(variants).collect();
    let xtask = command_in(copy.dir.path(), &args, &env);
    let mut sh = Command::new("sh");
    sh.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(xtask.get_program()).args(xtask.get_args());
    let built = Outcome::of(sh.envs(env).current_dir(copy.dir.path()).output().unwrap());
    built.expect(0, &["tagged pytorch-cuda-cold:2.15-devel"]);
    let cold = VARIANTS.map(|variant| described(&format!("pytorch-cuda-cold:2.15-{variant}")));
    for name in
        docker(&["image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "pytorch-cuda-cold"]).stdout.lines()
    {
        docker(&["image", "rm", name]).expect(0, &[]);
    }
    for (variant, cold) in VARIANTS.iter().zip(cold) {
        let ours = described(&image(variant));
        for part in ["layers", "history", "config", "created"] {
            assert_eq!(ours[part], cold[part], "{variant}: {part}");
        }
    }
}
