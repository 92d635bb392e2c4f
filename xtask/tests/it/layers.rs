//! What is in the layers, whether a later one hides it or not: every blob of every image is read, none is started.

use crate::containers::{docker, image, saved};
use std::collections::BTreeSet;
use std::io::{BufReader, Read};
use tar::{Archive, EntryType};

/// Programs of Debian's that run as somebody else. Where `no-new-privileges` is set, they do not.
const SETUID: [&str; 13] = [
    "usr/bin/chage",
    "usr/bin/chfn",
    "usr/bin/chsh",
    "usr/bin/expiry",
    "usr/bin/gpasswd",
    "usr/bin/mount",
    "usr/bin/newgrp",
    "usr/bin/passwd",
    "usr/bin/ssh-agent",
    "usr/bin/su",
    "usr/bin/umount",
    "usr/lib/openssh/ssh-keysign",
    "usr/sbin/unix_chkpwd",
];

/// What everybody may write: the folders for that.
const WRITABLE: [&str; 3] = ["run/lock", "tmp", "var/tmp"];

/// Keys that packages bring to try themselves with.
const KEYS: [&str; 1] = ["opt/venv/lib/python3.13/site-packages/tornado/test/test.key"];

/// Files in which people and programs keep what nobody else may know.
const CREDENTIALS: [&str; 10] = [
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "authorized_keys",
    "id_ed25519",
    "id_rsa",
    "jupyter_cookie_secret",
    "pip.conf",
    "uv.toml",
];

/// Where nothing may lie.
const EMPTY: [&str; 8] = [
    "home/user/.cache/",
    "root/.cache/",
    "run/secrets/",
    "tmp/",
    "var/cache/apt/archives/",
    "var/lib/apt/lists/",
    "var/log/apt/",
    "var/tmp/",
];

/// What was found in the layers, and which exceptions were needed.
#[derive(Default)]
struct Scan {
    files: usize,
    wrong: BTreeSet<String>,
    needed: BTreeSet<String>,
}

impl Scan {
    /// Every layer in what `docker save` gives.
    fn image(&mut self, archive: impl Read) {
        for entry in Archive::new(archive).entries().unwrap() {
            let mut blob = BufReader::with_capacity(1 << 20, entry.unwrap());
            let start = std::io::BufRead::fill_buf(&mut blob).unwrap();
            if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
                let layer = zstd::stream::read::Decoder::with_buffer(blob).unwrap();
                self.layer(BufReader::with_capacity(1 << 20, layer));
            } else if start.starts_with(&[0x1f, 0x8b]) {
                let layer = flate2::bufread::MultiGzDecoder::new(blob);
                self.layer(BufReader::with_capacity(1 << 20, layer));
            } else if start.get(257..262) == Some(b"ustar") {
                self.layer(blob);
            }
        }
    }

    fn layer(&mut self, layer: impl Read) {
        for entry in Archive::new(layer).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().trim_start_matches("./").to_owned();
            let path = path.trim_end_matches('/');
            let (kind, mode, size) =
                (entry.header().entry_type(), entry.header().mode().unwrap(), entry.size());
            let mut text = Vec::new();
            if kind == EntryType::Regular && size < 65536 {
                entry.read_to_end(&mut text).unwrap();
            }
            self.files += 1;
            if let Some(what) = self.judge(path, kind, mode, &text) {
                self.wrong.insert(format!("{what}: {path}"));
            }
        }
    }

    fn judge(&mut self, path: &str, kind: EntryType, mode: u32, text: &[u8]) -> Option<&'static str> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let allowed = |needed: &mut BTreeSet<String>, list: &[&str]| {
            let allowed = list.contains(&path);
            if allowed {
                needed.insert(path.to_owned());
            }
            allowed
        };
        let is_file = kind != EntryType::Directory;
        if name.starts_with(".wh.") {
            return Some("removes what a lower layer still holds");
        }
        if name.starts_with("ssh_host_") {
            return Some("host key");
        }
        if path.split('/').any(|part| part == ".git") {
            return Some("of a repository");
        }
        if is_file && (CREDENTIALS.contains(&name) || path.contains("/.ssh/")) {
            return Some("credentials");
        }
        // apt's own lock and folder are there in some roots.
        if is_file && EMPTY.iter().any(|folder| path.starts_with(folder)) && name != "lock" {
            return Some("left behind");
        }
        if matches!(kind, EntryType::Char | EntryType::Block) {
            return Some("device");
        }
        if is_file && mode & 0o6000 != 0 && !allowed(&mut self.needed, &SETUID) {
            return Some("runs as somebody else");
        }
        if kind != EntryType::Symlink && mode & 0o002 != 0 && !allowed(&mut self.needed, &WRITABLE) {
            return Some("writable for everybody");
        }
        if holds_secret(text) && !allowed(&mut self.needed, &KEYS) {
            return Some("secret");
        }
        None
    }
}

/// Private keys, and tokens that are known by how they begin; those that manuals print end in a word of their own.
fn holds_secret(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let is_key = |line: &str| line.starts_with("-----BEGIN ") && line.ends_with(" PRIVATE KEY-----");
    let is_token = |word: &str| {
        let starts = ["ghp_", "github_pat_", "glpat-", "hf_", "pypi-AgE", "AKIA", "xoxb-"];
        word.len() >= 20
            && starts.iter().any(|start| word.starts_with(start))
            && word.chars().any(|c| c.is_ascii_digit())
            && !word.ends_with("EXAMPLE")
    };
    text.lines().any(is_key)
        || text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').any(is_token)
}

/// R7, R11, R12, R14
#[test]
#[ignore = "needs the image"]
fn no_layer_holds_what_must_not_be_there() {
    let images = ["runtime", "devel", "debug", "mlflow"].map(image);
    let mut scan = Scan::default();
    saved(&images, |archive| scan.image(archive));
    assert!(scan.files > 50_000, "only {} files were read", scan.files);
    assert!(scan.wrong.is_empty(), "{:#?}", scan.wrong);
    // What is allowed is what is there.
    let allowed: BTreeSet<String> =
        [&SETUID[..], &WRITABLE, &KEYS].concat().into_iter().map(str::to_owned).collect();
    assert_eq!(scan.needed, allowed);
}

/// The scan sees what it looks for.
#[test]
fn what_must_not_be_in_a_layer_is_found() {
    let key = b"-----BEGIN OPENSSH PRIVATE KEY-----\nx\n".as_slice();
    let bad: [(&str, u32, &[u8], &str); 12] = [
        ("root/.ssh/config", 0o600, b"", "credentials"),
        ("./etc/ssh/ssh_host_rsa_key", 0o600, b"", "host key"),
        ("opt/x/.git/config", 0o644, b"", "of a repository"),
        ("root/.netrc", 0o600, b"", "credentials"),
        ("root/.cache/pip/x", 0o644, b"", "left behind"),
        ("tmp/x", 0o644, b"", "left behind"),
        ("usr/bin/own", 0o4755, b"", "runs as somebody else"),
        ("usr/bin/group", 0o2755, b"", "runs as somebody else"),
        ("opt/open", 0o666, b"", "writable for everybody"),
        ("etc/.wh.shadow", 0o644, b"", "removes what a lower layer still holds"),
        ("opt/key", 0o644, key, "secret"),
        ("opt/token", 0o644, b"TOKEN='hf_0123456789abcdefghij'", "secret"),
    ];
    let good: [(&str, u32, &[u8], &str); 4] = [
        ("opt/manual", 0o644, b"id AKIAIOSFODNN7EXAMPLE", ""),
        ("usr/bin/su", 0o4755, b"", ""),
        ("usr/bin/x", 0o755, b"", ""),
        ("opt/text", 0o644, b"hf_hub_download_or_not", ""),
    ];
    let mut layer = tar::Builder::new(Vec::new());
    for (path, mode, text, _) in bad.iter().chain(&good) {
        let mut header = tar::Header::new_ustar();
        header.set_mode(*mode);
        header.set_size(text.len() as u64);
        layer.append_data(&mut header, path, *text).unwrap();
    }
    let layer = layer.into_inner().unwrap();
    let wanted: BTreeSet<String> =
        bad.iter().map(|(path, _, _, what)| format!("{what}: {}", path.trim_start_matches("./"))).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &layer).unwrap();
    for blob in [layer.clone(), zstd::encode_all(&layer[..], 1).unwrap(), gzip.finish().unwrap()] {
        let mut image = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(blob.len() as u64);
        image.append_data(&mut header, "blobs/sha256/x", &blob[..]).unwrap();
        let mut scan = Scan::default();
        scan.image(&image.into_inner().unwrap()[..]);
        assert_eq!((scan.wrong, scan.files), (wanted.clone(), bad.len() + good.len()));
    }
}

/// R11, R12, R13: what every container of an image starts with.
#[test]
#[ignore = "needs the image"]
fn the_configuration_of_every_image_is_safe() {
    for variant in ["runtime", "devel", "debug", "mlflow"] {
        let json = docker(&["image", "inspect", &image(variant)]).expect(0, &[]).stdout.clone();
        let config: serde_json::Value = serde_json::from_str(&json).unwrap();
        let config = &config[0]["Config"];
        assert_eq!(config["User"], "1000:0", "{variant}");
        assert_eq!(config["WorkingDir"], "/workspace", "{variant}");
        assert_eq!(config["Healthcheck"]["Test"], serde_json::json!(["CMD", "/usr/local/bin/healthcheck"]));
        assert_eq!(
            config["Entrypoint"],
            serde_json::json!(["/usr/bin/tini", "-g", "--", "/usr/local/bin/entrypoint"])
        );
        assert!(config["ExposedPorts"].is_null(), "{variant}");
        assert!(config["Volumes"].is_null(), "{variant}");
        for variable in config["Env"].as_array().unwrap() {
            let name = variable.as_str().unwrap().split('=').next().unwrap();
            let is_bad = ["TOKEN", "PASSWORD", "SECRET", "KEY", "DEBIAN_FRONTEND", "LD_"]
                .iter()
                .any(|bad| name.contains(bad));
            assert!(!is_bad, "{variant} sets {name}");
        }
    }
}
