//! Bases of tiny wheels, with doubles of everything outside: killed anywhere, on a disk that is full anywhere, packed
//! either way, and for a platform that is not this machine's.

use crate::full_disk::on_a_full_disk;
use crate::order::Doubles;
use crate::support::Outcome;
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// ELF's number for 64-bit Arm.
const AARCH64: u8 = 183;

/// A checkout whose default release has three wheels, and a cache that has them. Each has a layer of its own.
pub struct Tiny {
    pub doubles: Doubles,
}

pub fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A library of a machine's by ELF's number for it, with bytes that no packer makes smaller.
fn library(machine: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(length as u64).fill(&mut bytes);
    bytes[..5].copy_from_slice(b"\x7fELF\x02");
    bytes[18..20].copy_from_slice(&[machine, 0]);
    bytes
}

/// A wheel with a library, deflated, and a source.
fn wheel(name: &str, library: &[u8]) -> Vec<u8> {
    let source = format!("NAME = {name:?}\n").repeat(20);
    let record = format!("{name}/__init__.py,,\n{name}/lib{name}.so,,\n{name}-1.dist-info/RECORD,,\n");
    let files = [
        (format!("{name}/__init__.py"), source.as_bytes()),
        (format!("{name}/lib{name}.so"), library),
        (format!("{name}-1.dist-info/WHEEL"), b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"),
        (format!("{name}-1.dist-info/RECORD"), record.as_bytes()),
    ];
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in files {
        let file = archive.new_file(EntryPath::verbatim(name.as_bytes()));
        let file = file.compression_method(CompressionMethod::DEFLATE).unix_permissions(0o644);
        let (mut entry, config) = file.start().unwrap();
        let mut writer =
            config.wrap(flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast()));
        writer.write_all(bytes).unwrap();
        let (deflate, end) = writer.finish().unwrap();
        deflate.finish().unwrap();
        entry.finish(end).unwrap();
    }
    archive.finish().unwrap()
}

impl Tiny {
    /// A release with libraries of about `length` bytes.
    pub fn new(length: usize) -> Tiny {
        let doubles = Doubles::new();
        let mut wheels = Vec::new();
        for (more, name) in ["numpy", "nvidia_cublas", "torch"].into_iter().enumerate() {
            let bytes = wheel(name, &library(AARCH64, length + more));
            let file = format!("{name}-1-py3-none-any.whl");
            let folder = doubles.copy.path("cache/wheels").join(hex(&bytes));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(&file), &bytes).unwrap();
            let name = name.replace('_', "-");
            // What is told of the size is what room is asked for, and none is to be asked for here.
            wheels
                .push(json!({"name": name, "version": "1", "file": file, "bytes": 1, "sha256": hex(&bytes)}));
        }
        let lock = doubles.copy.path("images/lock.json");
        let mut locked: Value = serde_json::from_slice(&std::fs::read(&lock).unwrap()).unwrap();
        for platform in ["linux/amd64", "linux/arm64"] {
            locked["releases"]["2.15"]["wheels"][platform] = json!(wheels);
        }
        std::fs::write(lock, locked.to_string()).unwrap();
        doubles.copy.edit("own_above_mb: 100 ", "own_above_mb: 0 ");
        doubles.copy.edit("nvidia_own_above_mb: 288", "nvidia_own_above_mb: 0");
        doubles.run(&["render"], &[]).expect(0, &[]);
        Tiny { doubles }
    }

    pub fn command(&self, more: &[&str]) -> Command {
        self.doubles.command(&[&["build", "--base-only"], more].concat(), &[("XTASK_BASE_BUILDER", "layers")])
    }

    pub fn run(&self, more: &[&str]) -> Outcome {
        Outcome::of(self.command(more).output().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.doubles.copy.path(name)
    }

    /// What the record tells of the layers that a codec made for a platform, by their names.
    fn recorded(&self, platform: &str, codec: &str) -> BTreeMap<String, Value> {
        let text = std::fs::read(self.path("images/layers.json")).unwrap();
        let record: Value = serde_json::from_slice(&text).unwrap();
        serde_json::from_value(record["2.15"][platform][codec].clone()).unwrap()
    }

    /// Every file of the cache with its checksum, but for locks. Blobs are proved to be what their names tell.
    pub fn cache(&self) -> BTreeMap<PathBuf, String> {
        let folder = self.path("cache");
        let mut found = BTreeMap::new();
        let mut left = vec![folder.clone()];
        while let Some(at) = left.pop() {
            for entry in std::fs::read_dir(at).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    left.push(path);
                } else if path.extension().is_none_or(|it| it != "lock") {
                    let digest = hex(&std::fs::read(&path).unwrap());
                    let is_blob = path.parent().unwrap().ends_with("blobs/sha256");
                    assert!(!is_blob || path.ends_with(&digest), "{}", path.display());
                    found.insert(path.strip_prefix(&folder).unwrap().to_owned(), digest);
                }
            }
        }
        found
    }

    /// Whether a layer is under way.
    fn is_writing(&self) -> bool {
        std::fs::read_dir(self.path("cache/layers/work")).is_ok_and(|mut work| work.next().is_some())
    }

    fn blob(&self, digest: &str) -> Vec<u8> {
        std::fs::read(self.path("cache/layers/blobs").join(digest.replace(':', "/"))).unwrap()
    }

    fn document(&self, digest: &Value) -> Value {
        serde_json::from_slice(&self.blob(digest.as_str().unwrap())).unwrap()
    }
}

/// What a layer holds, unpacked by other code than the one that packed it.
fn unpacked(layer: &Value, blob: &[u8]) -> Vec<u8> {
    let mut tar = Vec::new();
    match layer["mediaType"].as_str().unwrap().rsplit('+').next() {
        Some("zstd") => tar = zstd::decode_all(blob).unwrap(),
        Some("gzip") => drop(flate2::read::MultiGzDecoder::new(blob).read_to_end(&mut tar).unwrap()),
        _ => tar.extend(blob),
    }
    tar
}

/// Kills at moments that are spread over the whole run; what is there afterwards is whole or not there.
#[test]
fn a_conversion_that_was_killed_is_gone_on_with_and_leaves_nothing() {
    let reference = Tiny::new(1_000_000);
    let start = Instant::now();
    let digest = reference.run(&[]).expect(0, &[]).stdout.clone();
    let whole = start.elapsed();
    let cache = reference.cache();
    for point in 0..=5 {
        let tiny = Tiny::new(1_000_000);
        let mut run = tiny.command(&["--quiet"]).stdout(Stdio::null()).spawn().unwrap();
        match point {
            // However fast this machine is: in the midst of a layer.
            0 => while !tiny.is_writing() && run.try_wait().unwrap().is_none() {},
            _ => std::thread::sleep(whole.mul_f64(f64::from(point) / 6.0)),
        }
        run.kill().unwrap();
        run.wait().unwrap();
        let again = tiny.run(&[]);
        assert_eq!(again.expect(0, &[]).stdout, digest, "{point}");
        assert_eq!(tiny.cache(), cache, "{point}");
    }
}

#[test]
#[ignore = "mounts a file system"]
fn a_conversion_on_a_full_disk_is_one_refusal_wherever_it_comes_to_its_end() {
    let mut ends = BTreeSet::new();
    let reference = Tiny::new(300_000);
    let digest = reference.run(&[]).expect(0, &[]).stdout.clone();
    // The layers and what is noted of them are less than three hundred pages.
    for pages in (0..320).step_by(32) {
        let tiny = Tiny::new(300_000);
        let (cache, kept) = (tiny.path("cache"), tiny.path("kept"));
        let outcome = on_a_full_disk(&tiny.command(&[]), &cache, pages, &kept);
        let at = outcome.stderr.lines().find(|line| line.starts_with("error")).unwrap_or("good").to_owned();
        match outcome.code {
            Some(0) => {}
            _ => drop(outcome.expect(3, &["error[E_DISK]: ", "help: free some space"])),
        }
        ends.insert(at.replace(tiny.doubles.copy.dir.path().to_str().unwrap(), ""));
        std::fs::remove_dir_all(&cache).unwrap();
        std::fs::rename(&kept, &cache).unwrap();
        assert_eq!(tiny.run(&[]).expect(0, &[]).stdout, digest, "{pages} pages: {outcome:#?}");
        assert_eq!(tiny.cache(), reference.cache(), "{pages} pages");
    }
    assert!(ends.len() > 2 && ends.contains("good"), "{ends:#?}");
}

#[test]
fn a_base_is_of_a_release_and_variants_are_only_known_or_refused() {
    let tiny = Tiny::new(100_000);
    let digest = tiny.run(&[]).expect(0, &["base of 2.15 for "]).stdout.clone();
    for variants in [&["--variant", "devel", "--variant", "runtime"][..], &["--all", "--release", "2.15"]] {
        assert_eq!(tiny.run(variants).expect(0, &[]).stdout, digest, "{variants:?}");
    }
    let calls = tiny.doubles.all_calls();
    let refused = [("--variant", "runtme", "runtime"), ("--release", "2.51", "2.15")];
    for (flag, wrong, meant) in refused {
        let said = [&format!("error[E_UNKNOWN_NAME]: {flag}: "), &format!("did you mean `{meant}`?")];
        tiny.run(&[flag, wrong]).expect(2, &said.map(|it| it.as_str()));
    }
    assert_eq!(tiny.doubles.all_calls(), calls);
}

#[test]
fn both_codecs_pack_the_same_layers() {
    let tiny = Tiny::new(100_000);
    let host = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };
    let [spliced, packed] = ["splice", "zstd"].map(|codec| {
        let digest = json!(tiny.run(&["--codec", codec]).expect(0, &[]).stdout.trim());
        let manifest = tiny.document(&digest);
        let config = tiny.document(&manifest["config"]["digest"]);
        let layers = manifest["layers"].as_array().unwrap().clone();
        let ids = config["rootfs"]["diff_ids"].as_array().unwrap().clone();
        assert_eq!((layers.len(), ids.len()), (5, 5));
        for (layer, id) in layers.iter().zip(&ids) {
            let tar = unpacked(layer, &tiny.blob(layer["digest"].as_str().unwrap()));
            assert_eq!(*id, format!("sha256:{}", hex(&tar)), "{codec}: {layer}");
        }
        // The root's own layer is packed as it ever is.
        let kinds: BTreeSet<String> =
            layers[1..].iter().map(|layer| layer["mediaType"].to_string()).collect();
        (ids, kinds)
    });
    assert_eq!(spliced.0, packed.0);
    let kind = |name: &str| BTreeSet::from([format!("\"application/vnd.oci.image.layer.v1.tar+{name}\"")]);
    assert_eq!((spliced.1, packed.1), (kind("gzip"), kind("zstd")));
    let [splice, zstd] = ["splice", "zstd-1"].map(|codec| tiny.recorded(host, codec));
    assert_eq!(splice.len(), 4);
    for (name, layer) in &splice {
        assert_eq!(layer["diff_id"], zstd[name]["diff_id"], "{name}");
        assert_ne!(layer["digest"], zstd[name]["digest"], "{name}");
    }
}

/// A root for 64-bit Arm as somebody would bring it along: one layer, with an interpreter in it.
fn root(dir: &Path) {
    let blobs = dir.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8], kind: &str| {
        std::fs::write(blobs.join(hex(bytes)), bytes).unwrap();
        json!({"mediaType": kind, "digest": format!("sha256:{}", hex(bytes)), "size": bytes.len()})
    };
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    tar.append_data(&mut header, "usr/bin/python3.13", &b""[..]).unwrap();
    let tar = tar.into_inner().unwrap();
    let layer = put(&tar, "application/vnd.oci.image.layer.v1.tar");
    let config = json!({"architecture": "arm64", "os": "linux", "rootfs": {"type": "layers",
        "diff_ids": [format!("sha256:{}", hex(&tar))]}, "history": [{"created_by": "elsewhere"}]});
    let config = put(config.to_string().as_bytes(), "application/vnd.oci.image.config.v1+json");
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string();
    let entry = put(manifest.as_bytes(), "application/vnd.oci.image.manifest.v1+json");
    std::fs::write(dir.join("index.json"), json!({"schemaVersion": 2, "manifests": [entry]}).to_string())
        .unwrap();
}

#[test]
fn a_base_for_another_platform_stands_on_a_root_that_was_brought_along() {
    let tiny = Tiny::new(100_000);
    let layout = tiny.path("arm64");
    root(&layout);
    let args = ["--platform", "linux/arm64", "--root-layout", layout.to_str().unwrap()];
    let outcome = tiny.run(&args);
    let digest = json!(outcome.expect(0, &["base of 2.15 for linux/arm64: "]).stdout.trim());
    let dry = tiny.run(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(dry.expect(0, &[]).stdout, outcome.stdout);
    let manifest = tiny.document(&digest);
    let config = tiny.document(&manifest["config"]["digest"]);
    assert_eq!((&config["architecture"], &config["os"]), (&json!("arm64"), &json!("linux")));
    assert!(config["config"]["Env"].to_string().contains("VIRTUAL_ENV=/opt/venv"), "{config}");
    let layers = manifest["layers"].as_array().unwrap();
    let mut machines = Vec::new();
    for (layer, id) in layers.iter().zip(config["rootfs"]["diff_ids"].as_array().unwrap()) {
        let tar = unpacked(layer, &tiny.blob(layer["digest"].as_str().unwrap()));
        assert_eq!(*id, format!("sha256:{}", hex(&tar)), "{layer}");
        for entry in tar::Archive::new(&tar[..]).entries().unwrap() {
            let mut start = Vec::new();
            entry.unwrap().take(20).read_to_end(&mut start).unwrap();
            machines.extend(start.strip_prefix(b"\x7fELF").map(|rest| rest[14]));
        }
    }
    assert_eq!((layers.len(), machines), (5, vec![AARCH64; 3]));
    let entry = std::fs::read_to_string(tiny.path("cache/layers/index.json")).unwrap();
    assert!(entry.contains(r#""platform":{"architecture":"arm64","os":"linux","variant":"v8"}"#), "{entry}");
    // What is refused is refused before an engine is asked for anything.
    let calls = tiny.doubles.all_calls();
    tiny.run(&["--root-layout", layout.to_str().unwrap(), "--platform", "linux/amd64"])
        .expect(2, &["error[E_PLATFORM]: --root-layout ", "no image for linux/amd64"]);
    tiny.run(&["--base-builder", "dockerfile"]).expect(2, &["error[E_USAGE]: --base-only: "]);
    assert_eq!(tiny.doubles.all_calls(), calls);
}
