//! The whole of it, for real.

use super::layout::verify;
use super::*;

fn spec(packages: &[&str]) -> RootSpec {
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
    spec.key(&Sources::of_text(sources.into())).unwrap()
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
    let dir = tempfile::tempdir().unwrap();
    let say = |line: &str| eprintln!("{line}");
    if let Some(state) = std::env::var_os(AGAIN) {
        let layout = provide(&wish, Path::new(&state), true, &say).unwrap();
        println!("DIGEST={}", layout.digest);
        return;
    }
    let one = provide(&wish, dir.path(), true, &say).unwrap();
    verify(&one.dir, true).unwrap();
    assert!(one.packages.contains_key("tini") && !one.cached);
    assert!(provide(&wish, dir.path(), false, &say).unwrap().cached);
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
    assert!(two.contains(&format!("DIGEST={}", one.digest)), "{}\n{two}", one.digest);
    // From sources of the user's that give the same packages, as a snapshot of the lock's date does.
    let snapshot = dir.path().join("snapshot.list");
    let text = Sources::of(&wish, dir.path()).unwrap().text;
    std::fs::write(&snapshot, format!("# another file with the same packages\n{text}")).unwrap();
    let three = provide(&RootSpec { sources: Some(snapshot), ..wish }, dir.path(), false, &say).unwrap();
    assert!(!three.cached);
    assert_eq!(three.digest, one.digest);
}
