//! Secrets put through every input, and looked for in everything that is left or shown: arguments (the process list shows
//! them to everybody), words, results, logs, locks. What containers do with theirs is in `jupyter`, `mlflow` and `ssh`; that
//! no layer holds one of a build's is in `reproducible`.

use crate::order::Doubles;
use std::path::Path;
use std::process::Command;

/// Variables that hold a secret, or an address with one in it. Each has its own canary.
const INPUTS: &[(&str, &str)] = &[
    ("UV_DEFAULT_INDEX", "https://user:canary-1@index.example.org/simple"),
    ("UV_EXTRA_INDEX_URL", "https://canary-2@extra.example.org/simple"),
    ("PIP_INDEX_URL", "https://user:canary-3@index.example.org/simple"),
    ("HTTPS_PROXY", "http://user:canary-4@proxy.example.org:3128"),
    ("http_proxy", "http://user:canary-5@proxy.example.org:3128"),
    ("JUPYTER_TOKEN", "canary-6"),
    ("SSH_PRIVATE_KEY", "canary-7"),
    ("AWS_SECRET_ACCESS_KEY", "canary-8"),
    ("GH_TOKEN", "canary-9"),
    ("COSIGN_PASSWORD", "canary-10"),
];

/// Doubles with a CA, a login of docker's and pip's own configuration that hold canaries too.
fn doubles() -> Doubles {
    let doubles = Doubles::new();
    let home = doubles.copy.path("home");
    for (file, text) in [
        ("ca.pem", "canary-11\n"),
        ("docker/config.json", r#"{"auths":{"registry.example.org":{"auth":"canary-12"}}}"#),
        (
            ".config/pip/pip.conf",
            "[global]\nextra-index-url = https://user:canary-13@pip.example.org/simple\n",
        ),
        ("sources.list", "deb [trusted=yes] https://user:canary-14@debian.example.org/debian trixie main\n"),
    ] {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    doubles
}

/// Files below a folder that name a canary.
fn tell(folder: &Path) -> Vec<String> {
    let grep =
        Command::new("grep").args(["--recursive", "--text", "canary-[0-9]"]).arg(folder).output().unwrap();
    String::from_utf8_lossy(&grep.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn no_secret_of_any_input_is_shown_or_left() {
    let doubles = doubles();
    let path = |name: &str| doubles.copy.path("home").join(name).display().to_string();
    let files = [
        ("HOME", doubles.copy.path("home").display().to_string()),
        ("DOCKER_CONFIG", path("docker")),
        ("SSL_CERT_FILE", path("ca.pem")),
        ("XTASK_APT_SOURCES", path("sources.list")),
    ];
    let mut env: Vec<(&str, &str)> = INPUTS.to_vec();
    env.extend(files.iter().map(|(name, value)| (*name, value.as_str())));
    let build = ["build", "--all", "--release", "2.15"];
    let commands: &[&[&str]] = &[
        &["build", "--all", "--release", "2.15", "--dry-run"],
        &["build", "--all", "--release", "2.15", "--dry-run", "--json"],
        &[&build[..], &["--verbose"]].concat(),
        &["build", "--all", "--release", "2.15", "--json", "--no-cache"],
        &["plan", "--all", "--release", "2.15", "--json"],
        &["smoke", "--variant", "runtime", "--json"],
        &["engine", "status", "--json"],
        &["matrix"],
    ];
    for command in commands {
        let outcome = doubles.run(command, &env);
        let said = format!("{}{}", outcome.expect(0, &[]).stdout, outcome.stderr);
        assert!(!said.contains("canary-"), "{command:?}: {said}");
    }
    // The secrets did come where they are used, as files.
    let calls = doubles.all_calls();
    for secret in ["id=ca,src=", "id=pip,src=", "id=uv,src="] {
        assert!(calls.contains(secret), "{secret}: {calls}");
    }
    assert!(!calls.contains("canary-"), "{calls}");
    assert_eq!(tell(&doubles.copy.path("target")), Vec::<String>::new());
    assert_eq!(tell(&doubles.copy.path("images")), Vec::<String>::new());
    // The double of docker noted its environment, which only its owner can read: what is looked for can be found.
    assert!(!tell(&doubles.copy.path("double/bake.env")).is_empty());
}

#[test]
fn no_secret_is_told_by_a_failure() {
    let said = INPUTS.iter().map(|(_, value)| format!("error: Failed to fetch: `{value}`\n"));
    let said: String = said.filter(|line| line.contains("://")).collect();
    let doubles = doubles().say("bake", &said).say("bake.rc", "1");
    let outcome = doubles.run(&["build", "--variant", "runtime", "--verbose"], INPUTS);
    outcome.expect(3, &["error[E_NETWORK]: build", "https://index.example.org/simple"]);
    assert!(!outcome.stderr.contains("canary-"), "{outcome:#?}");
    assert_eq!(tell(&doubles.copy.path("target")), Vec::<String>::new());
}
