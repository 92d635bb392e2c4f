//! Programs of Debian that the host need not have; nothing of the host's apt is changed.

use crate::containers::docker;
use crate::support::{FETCHING, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// `$1` is the folder that everything is kept in. No package is there, as far as this apt knows.
const APT: &str = r#"set -eu; cd "$1"; shift
mkdir -p state/lists/partial cache/archives/partial; : > status
printf 'Dir::State "%s/state"; Dir::State::status "%s/status"; Dir::Cache "%s/cache"; Acquire::Retries "3";' \
    "$PWD" "$PWD" "$PWD" > apt.conf
printf 'Debug::NoLocking "1"; APT::Install-Recommends "0"; APT::Sandbox::User "root";' >> apt.conf
export APT_CONFIG="$PWD/apt.conf"
apt-get update -qq
"#;

fn fetch(folder: &Path, script: &str, packages: &[&str]) {
    std::fs::create_dir_all(folder).unwrap();
    let mut sh = Command::new("sh");
    sh.args(["-c", &format!("{APT}{script}"), "fetch"]).arg(folder).args(packages);
    Outcome::of(sh.output().unwrap()).expect(0, &[]);
}

/// A package of Debian's suite `trixie` from the host's own mirror, unpacked below the test's own folder: what is older on
/// some hosts is the same everywhere.
pub fn unpacked_from_trixie(package: &str) -> PathBuf {
    let _alone = FETCHING.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trixie").join(package);
    let root = folder.join("root");
    if !root.exists() {
        let script = r#"uri=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(COMPONENT) $(CREATED_BY)' \
    | awk '$2 == "Debian" && $3 == "main" && $4 == "Packages" { print $1; exit }')
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri trixie main" > sources.list
printf 'Dir::Etc::sourcelist "%s/sources.list"; Dir::Etc::sourceparts "-";' "$PWD" >> apt.conf
apt-get update -qq; apt-get download -qq "$1"; dpkg-deb --extract ./*.deb unpacked; mv unpacked root"#;
        fetch(&folder, script, &[package]);
    }
    root
}

/// A package of the host's suite, unpacked below the test's own folder.
pub fn unpacked(package: &str) -> PathBuf {
    unpacked_from("", package)
}

/// A package of testing, for what the host's suite does not have.
pub fn unpacked_of_testing(package: &str) -> PathBuf {
    let only_testing = r#"uri=$(env -u APT_CONFIG apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
printf 'deb %s testing main\n' "$uri" > testing.list
printf 'Dir::Etc::sourcelist "%s/testing.list"; Dir::Etc::sourceparts "-";' "$PWD" >> apt.conf
apt-get update -qq
"#;
    unpacked_from(only_testing, package)
}

fn unpacked_from(sources: &str, package: &str) -> PathBuf {
    let _alone = FETCHING.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages").join(package);
    let root = folder.join("root");
    if !root.exists() {
        fetch(
            &folder,
            &format!(
                r#"{sources}apt-get download -qq "$1"; dpkg-deb --extract ./*.deb unpacked; mv unpacked root"#
            ),
            &[package],
        );
    }
    root
}

/// These packages of the host's suite with everything they depend on, unpacked below the test's own folder. No script
/// of a package runs.
pub fn tree(name: &str, packages: &[&str]) -> PathBuf {
    let _alone = FETCHING.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trees").join(name);
    let root = folder.join("root");
    if !root.exists() {
        let script = r#"apt-get install --download-only --yes -qq "$@" >/dev/null
for package in cache/archives/*.deb; do dpkg-deb --extract "$package" unpacked; rm "$package"; done; mv unpacked root"#;
        fetch(&folder, script, packages);
    }
    root
}

/// An image of these packages of the host's suite, with everything they depend on; it stays in the engine.
pub fn image(name: &str, packages: &[&str]) -> String {
    static IMPORTING: Mutex<()> = Mutex::new(());
    let _alone = IMPORTING.lock();
    let image = format!("xtask-tests/{name}:1");
    if docker(&["image", "inspect", &image]).code == Some(0) {
        return image;
    }
    let root = tree(name, packages);
    // No script of a package has run, so no account is there.
    let script = r#"printf 'user:x:1000:0::/tmp:/bin/sh\n' > etc/passwd
mkdir -p tmp; chmod 1777 tmp; tar --create --file ../root.tar ."#;
    Outcome::of(Command::new("sh").args(["-c", script]).current_dir(&root).output().unwrap()).expect(0, &[]);
    let archive = root.with_file_name("root.tar");
    docker(&["import", archive.to_str().unwrap(), &image]).expect(0, &[]);
    std::fs::remove_file(archive).unwrap();
    image
}
