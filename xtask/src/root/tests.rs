//! The whole of it, for real.

use super::*;
use crate::layout::verify;

/// A wish for `packages`.
pub fn spec(packages: &[&str]) -> RootSpec {
    RootSpec {
        suite: "trixie".into(),
        packages: packages.iter().map(|p| (*p).to_owned()).collect(),
        unpack: vec![],
        components: vec![],
        user: User { name: "user".into(), uid: 1000, workdir: "/workspace".into() },
        below: None,
        exclude: vec!["/usr/share/man/*".into(), "/usr/share/doc/*".into()],
        keep: vec!["/usr/share/doc/*/copyright".into()],
        platform: Platform::host(),
        epoch: 1_764_460_800,
        sources: None,
    }
}

fn key(spec: &RootSpec, sources: &str) -> String {
    spec.key(&Sources::of_text(sources.into()), None).unwrap()
}

#[test]
fn the_key_depends_on_what_is_wished_and_not_on_its_order() {
    let one = key(&spec(&["a", "b"]), "s");
    assert_eq!(one, key(&spec(&["b", "a", "a"]), "s"));
    assert_ne!(one, key(&spec(&["a"]), "s"));
    assert_ne!(one, key(&spec(&["a", "b"]), "t"));
    assert_ne!(one, key(&RootSpec { epoch: 0, ..spec(&["a", "b"]) }, "s"));
    assert_ne!(one, key(&RootSpec { keep: vec![], ..spec(&["a", "b"]) }, "s"));
}

/// Bootstraps three times, as users of different habits would: in other folders, with another umask, time zone, home, language.
/// `XTASK_TEST_ROOT` is set in the second process, which is this test again.
#[test]
#[ignore = "bootstraps for a minute"]
fn the_same_wish_makes_the_same_bytes() {
    const AGAIN: &str = "XTASK_TEST_ROOT";
    let wish = spec(&["ca-certificates", "python3", "tini"]);
    let layer =
        PackageLayer { packages: vec!["less".into(), "openssh-server".into()], ..PackageLayer::default() };
    let dir = tempfile::tempdir().unwrap();
    let say = |line: &str| eprintln!("{line}");
    if let Some(state) = std::env::var_os(AGAIN) {
        let root = provide(&wish, Path::new(&state), true, &say).unwrap();
        let layer = provide(&wish.with(&layer), Path::new(&state), true, &say).unwrap();
        println!("DIGEST={}, LAYER={}", root.digest, layer.digest);
        return;
    }
    let one = provide(&wish, dir.path(), true, &say).unwrap();
    verify(&one.dir, true).unwrap();
    assert!(one.packages.contains_key("tini") && !one.cached);
    assert!(provide(&wish, dir.path(), false, &say).unwrap().cached);
    let added = provide(&wish.clone().with(&layer), dir.path(), true, &say).unwrap();
    verify(&added.dir, true).unwrap();
    assert!(added.packages.contains_key("less") && !added.packages.contains_key("tini"), "{added:?}");
    assert!(added.bytes < one.bytes / 4, "{added:?}");
    let tar = dir.path().join("layer.tar");
    layout::unpack(&added, &tar).unwrap();
    let names =
        crate::runner::Step::new("what is in it", ["tar", "-tf", tar.to_str().unwrap()]).read().unwrap();
    let has = |name: &str| names.lines().any(|line| line == name);
    assert!(has("./usr/bin/less") && has("./usr/sbin/sshd") && has("./etc/passwd"), "{names}");
    for stranger in
        ["./tmp/", "./proc/", "./etc/resolv.conf", "ssh_host_", "start-stop-daemon", "./var/lib/apt/lists/"]
    {
        // The folders that something is mounted on are there, and nothing of what is mounted.
        let is_there = |line: &str| line.contains(stranger) && line != stranger;
        assert!(!names.lines().any(is_there), "{stranger}: {names}");
    }
    let state = dir.path().join("another folder").join("of another length");
    let this = std::env::current_exe().unwrap();
    let script = "umask 077; exec \"$0\" --ignored --exact --nocapture root::tests::the_same_wish_makes_the_same_bytes";
    let two = crate::runner::Step::new("again", ["sh", "-c", script, this.to_str().unwrap()])
        .env(AGAIN, state.to_str().unwrap())
        .env("TZ", "Pacific/Auckland")
        .env("HOME", "/nonexistent")
        .env("LANG", "de_DE.UTF-8")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .read()
        .unwrap();
    let same = format!("DIGEST={}, LAYER={}", one.digest, added.digest);
    assert!(two.contains(&same), "{same}\n{two}");
    // From sources of the user's that give the same packages, as a snapshot of the lock's date does.
    let snapshot = dir.path().join("snapshot.list");
    let text = Sources::of(&wish, dir.path()).unwrap().text;
    std::fs::write(&snapshot, format!("# another file with the same packages\n{text}")).unwrap();
    let three = provide(&RootSpec { sources: Some(snapshot), ..wish }, dir.path(), false, &say).unwrap();
    assert!(!three.cached);
    assert_eq!(three.digest, one.digest);
}
