//! What happens inside a root beside installing packages: shell scripts for mmdebstrap's hooks.
//!
//! Change [`super::RECIPE`] with anything here that changes what is written.

use super::{RootSpec, Sources};
use crate::catalog::User;
use crate::faults::strip_credentials;
use crate::runner::quote;
use std::path::Path;

/// What apt does when a Dockerfile installs more: no suggestions, no translations, and nothing left behind in the layer.
const APT: &str = "Acquire::Languages \"none\";\nAPT::Install-Recommends \"false\";\n\
    APT::Keep-Downloaded-Packages \"false\";\nDir::Cache::pkgcache \"\";\nDir::Cache::srcpkgcache \"\";\n";

/// Before any package: what dpkg leaves out, now and when a Dockerfile installs more.
pub fn setup(spec: &RootSpec) -> String {
    let exclude = spec.exclude.iter().map(|pattern| format!("path-exclude={pattern}\n"));
    let paths: String =
        exclude.chain(spec.keep.iter().map(|pattern| format!("path-include={pattern}\n"))).collect();
    let head = "# An image is written once and discarded when it tears.\nforce-unsafe-io\n";
    put("etc/dpkg/dpkg.cfg.d/90container", &format!("{head}{paths}"))
}

/// Where the layer of further packages lies inside the root until it is fetched.
pub const PACKED: &str = "/tmp/layer.tar";

/// After roots were laid down: their sources go, mmdebstrap brings its own; and the moment is noted.
pub fn laid() -> String {
    let sources = "rm -f \"$1\"/etc/apt/sources.list \"$1\"/etc/apt/sources.list.d/debian.sources";
    format!("{sources} && touch \"$1\"/tmp/laid")
}

/// Fetches a package, checked by apt as ever, and unpacks it without installing it; a line for the list of what is there.
pub fn unpack(package: &str) -> String {
    let package = quote(package);
    format!(
        r#"set -eu; cd "$1/tmp"; APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get download {package}; dpkg-deb --extract ./*.deb "$1"
dpkg-deb --show --showformat='\nPackage: ${{Package}}\nStatus: install ok installed\nArchitecture: ${{Architecture}}\nVersion: ${{Version}}\n' ./*.deb >> unpacked
rm ./*.deb"#
    )
}

/// Where the list of what was only unpacked lies.
pub const UNPACKED: &str = "/tmp/unpacked";

/// At the very end, on top of roots that were laid down: what changed since then, with the folders it is in, as a tar
/// in the order of the names. A file counts by the time of its last change, which nothing can set.
pub fn pack(spec: &RootSpec) -> String {
    // mmdebstrap lays a program over its namesake while it works, and cleans up after the last hook.
    let not_ours =
        ["./tmp/*", "./proc/*", "./sys/*", "./dev/*", "./run/*", "*/start-stop-daemon*", "./etc/resolv.conf"];
    let skipped: Vec<String> = not_ours.iter().map(|path| format!("! -path {}", quote(path))).collect();
    format!(
        r#"set -eu; export LC_ALL=C; cd "$1"
rm -f var/cache/ldconfig/aux-cache var/lib/dbus/machine-id
[ ! -s etc/machine-id ] || : > etc/machine-id
find . -xdev -cnewer tmp/laid {} ! -path ./tmp |
    awk '{{ path = $0; while (path != ".") {{ print path; sub("/[^/]*$", "", path) }} }}' | sort -u > tmp/added
tar --create --file .{PACKED} --no-recursion --verbatim-files-from --files-from tmp/added     --numeric-owner --xattrs --format=pax --clamp-mtime --mtime=@{}     --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime"#,
        skipped.join(" "),
        spec.epoch
    )
}

/// After the essential packages are extracted: nothing starts services in an image's build.
pub fn extracted() -> String {
    let policy = "usr/sbin/policy-rc.d";
    format!("{} && chmod 755 \"$1/{policy}\"", put(policy, "#!/bin/sh\nexit 101\n"))
}

/// At the end: out goes what was left out too late, what is the host's, and what tells when and where it was made.
pub fn customize(spec: &RootSpec, sources: &Sources) -> String {
    let sources = sources.staying();
    let text = strip_credentials(&image_sources(sources));
    let name = match sources.form {
        "sources" => "etc/apt/sources.list.d/debian.sources",
        _ => "etc/apt/sources.list",
    };
    let mut steps = vec!["set -eu".to_owned()];
    steps.extend(spec.below.is_none().then(|| user(&spec.user)));
    steps.extend(left_out(spec));
    steps.extend([
        "rm -f \"$1\"/etc/hostname \"$1\"/etc/resolv.conf \"$1\"/etc/apt/apt.conf.d/99mmdebstrap".to_owned(),
        "rm -f \"$1\"/etc/apt/sources.list \"$1\"/etc/apt/sources.list.d/*".to_owned(),
        put(name, &text),
        put("etc/apt/apt.conf.d/90container", APT),
    ]);
    for key in foreign_keys(sources) {
        let (from, to) = (quote(&key.display().to_string()), quote(&image_key(key)));
        steps.push(format!("install -D -m 644 {from} \"$1\"{to}"));
    }
    steps.extend([
        // A key that many containers share is no secret; each makes its own when it starts.
        "rm -f \"$1\"/etc/ssh/ssh_host_*".to_owned(),
        "find \"$1\"/var/log -type f -delete".to_owned(),
        // Without the folders for downloads, whose owner depends on whether apt could give up its rights here.
        "rm -rf \"$1\"/var/lib/apt/lists/* \"$1\"/var/cache/apt/*".to_owned(),
        // Not in /tmp: there mmdebstrap keeps the configuration without which its apt would clean up the host's.
        "find \"$1\"/var/tmp -mindepth 1 -delete".to_owned(),
        "rm -rf \"$1\"/var/cache/debconf/*-old \"$1\"/var/lib/dpkg/*-old \"$1\"/root/.cache".to_owned(),
    ]);
    steps.join("\n")
}

/// Makes the user. Group 0 owns what the user may write, so that any other uid of that group can write it too.
fn user(user: &User) -> String {
    let User { name, uid, workdir } = user;
    format!(
        "chroot \"$1\" useradd --uid {uid} --gid 0 --create-home --no-log-init --shell /bin/bash {name}\n\
         chroot \"$1\" install -d -m 0775 -o {uid} -g 0 {workdir}\n\
         chroot \"$1\" chmod -R g=u /home/{name}"
    )
}

/// Removes what the essential packages brought before dpkg could leave it out. dpkg's patterns are those of `find`:
/// a star matches slashes too. Folders go when nothing in them is kept. `/tmp` is mmdebstrap's, as below.
fn left_out(spec: &RootSpec) -> Option<String> {
    let any = |patterns: &[String]| {
        let tests: Vec<String> =
            patterns.iter().map(|p| format!("-path {}", quote(&format!(".{p}")))).collect();
        format!("\\( {} \\)", tests.join(" -o "))
    };
    if spec.exclude.is_empty() {
        return None;
    }
    let keep = match spec.keep.is_empty() {
        true => String::new(),
        false => format!(" ! {}", any(&spec.keep)),
    };
    let matching = any(&spec.exclude);
    Some(format!(
        "(cd \"$1\" && find . -depth -xdev ! -path './tmp/*' {matching}{keep} \\( ! -type d -o -empty \\) -delete)"
    ))
}

/// The sources that stay in the image, with keys where the image has them.
fn image_sources(sources: &Sources) -> String {
    let mut text = sources.text.clone();
    for key in foreign_keys(sources) {
        text = text.replace(&key.display().to_string(), &image_key(key));
    }
    text
}

/// Keyrings that no package of the image brings.
fn foreign_keys(sources: &Sources) -> impl Iterator<Item = &std::path::PathBuf> {
    let debians = |key: &Path| {
        let name = key.file_name().unwrap_or_default().to_string_lossy().into_owned();
        key.starts_with("/usr/share/keyrings") && name.starts_with("debian-archive-")
    };
    sources.keys.iter().filter(move |key| !debians(key))
}

fn image_key(key: &Path) -> String {
    format!("/etc/apt/keyrings/{}", key.file_name().unwrap_or_default().to_string_lossy())
}

/// A command that writes a text to a file inside the root.
fn put(path: &str, text: &str) -> String {
    format!("printf %s {} > \"$1/{path}\"", quote(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Step;
    use std::path::PathBuf;

    fn spec() -> RootSpec {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        RootSpec {
            exclude: words("/usr/share/man/* /usr/share/doc/* /usr/bin/*-lto-dump-*"),
            keep: words("/usr/share/doc/*/copyright"),
            // The user is made with a root, and not with what is laid on it.
            below: Some(Box::new(super::super::tests::spec(&[]))),
            ..super::super::tests::spec(&[])
        }
    }

    fn sources(text: &str) -> Sources {
        Sources::of_text(text.to_owned())
    }

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn run(script: &str, root: &Path) {
        let root = root.display().to_string();
        Step::new("hook", ["sh", "-c", script, "hook", &root]).read().unwrap();
    }

    fn skeleton() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for sub in [
            "etc/dpkg/dpkg.cfg.d",
            "etc/apt/apt.conf.d",
            "etc/apt/sources.list.d",
            "usr/sbin",
            "tmp",
            "var/tmp",
            "var/log",
        ] {
            std::fs::create_dir_all(dir.path().join(sub)).unwrap();
        }
        dir
    }

    #[test]
    fn dpkg_is_told_what_to_leave_out() {
        let dir = skeleton();
        run(&setup(&spec()), dir.path());
        let config = std::fs::read_to_string(dir.path().join("etc/dpkg/dpkg.cfg.d/90container")).unwrap();
        assert!(
            config
                .contains("\npath-exclude=/usr/bin/*-lto-dump-*\npath-include=/usr/share/doc/*/copyright\n")
        );
        run(&extracted(), dir.path());
        run(dir.path().join("usr/sbin/policy-rc.d; test $? = 101").to_str().unwrap(), dir.path());
    }

    #[test]
    fn the_end_removes_what_is_left_out_or_not_the_images() {
        let dir = skeleton();
        let gone = [
            "usr/share/man/man1/a.1",
            "usr/share/doc/a/NEWS",
            "usr/share/doc/b/x/y",
            "usr/bin/x86_64-lto-dump-14",
            "etc/hostname",
            "etc/resolv.conf",
            "etc/apt/apt.conf.d/99mmdebstrap",
            "var/log/apt/term.log",
            "var/cache/debconf/templates.dat-old",
            "var/lib/dpkg/status-old",
            "var/lib/apt/lists/partial/x",
            "var/cache/apt/pkgcache.bin",
            "etc/apt/sources.list.d/0000main.list",
        ];
        let stay = [
            "usr/share/doc/a/copyright",
            "usr/bin/a",
            "usr/share/manual",
            "var/lib/dpkg/status",
            "tmp/mmdebstrap.apt.conf.x",
        ];
        gone.iter().chain(&stay).for_each(|file| write(dir.path(), file, ""));
        run(&customize(&spec(), &sources("deb https://u:p@m.example.org/debian trixie main\n")), dir.path());
        for file in gone {
            assert!(!dir.path().join(file).exists(), "{file}");
        }
        for file in stay {
            assert!(dir.path().join(file).exists(), "{file}");
        }
        assert!(!dir.path().join("usr/share/doc/b").exists(), "empty folders go");
        assert!(dir.path().join("usr/share/man").exists(), "but not the one a pattern stands in");
        let list = std::fs::read_to_string(dir.path().join("etc/apt/sources.list")).unwrap();
        assert_eq!(list, "deb https://m.example.org/debian trixie main\n");
    }

    #[test]
    fn the_key_of_a_company_comes_along() {
        let (dir, keys) = (skeleton(), tempfile::tempdir().unwrap());
        let key = keys.path().join("company.gpg");
        std::fs::write(&key, "key").unwrap();
        let text = format!("Types: deb\nURIs: http://m.example.org\nSigned-By: {}\n", key.display());
        let sources = sources(&text);
        assert_eq!((sources.form, sources.keys.clone()), ("sources", vec![key]));
        run(&customize(&spec(), &sources), dir.path());
        let read = |path: &str| std::fs::read_to_string(dir.path().join(path)).unwrap();
        assert!(
            read("etc/apt/sources.list.d/debian.sources")
                .contains("Signed-By: /etc/apt/keyrings/company.gpg\n")
        );
        assert_eq!(read("etc/apt/keyrings/company.gpg"), "key");
        let debians = Sources {
            keys: vec![PathBuf::from("/usr/share/keyrings/debian-archive-keyring.gpg")],
            ..sources
        };
        assert_eq!(foreign_keys(&debians).count(), 0);
    }

    #[test]
    fn nothing_is_searched_where_nothing_is_left_out() {
        assert_eq!(left_out(&RootSpec { exclude: vec![], ..spec() }), None);
    }
}
