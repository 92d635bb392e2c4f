//! Wheels that are made here, good and bad, on their whole way into a layer.

use super::install::{Venv, install};
use super::layer::{self, Codec};
use super::tree::{self, Content, Tree};
use super::zip::Archive;
use rawzip::path::EntryPath;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A file of a wheel that is made here: its name, its bytes and its mode.
type File<'a> = (&'a str, &'a [u8], u32);

const INFO: [File; 2] = [
    ("a-1.dist-info/WHEEL", b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\n", 0o644),
    ("a-1.dist-info/RECORD", b"a/__init__.py,sha256=x,1\na-1.dist-info/RECORD,,\n", 0o644),
];

/// A wheel `a-1` of the files that make one and of others.
pub(super) fn wheel(dir: &Path, others: &[File]) -> PathBuf {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, bytes, mode) in INFO.iter().chain(others) {
        // What is big enough is deflated, so that both ways are gone.
        let is_deflated = bytes.len() > 40;
        let method = if is_deflated { CompressionMethod::DEFLATE } else { CompressionMethod::STORE };
        let file = archive.new_file(EntryPath::verbatim(name.as_bytes()));
        let (mut entry, config) = file.compression_method(method).unix_permissions(*mode).start().unwrap();
        if is_deflated {
            let deflate = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
            let mut writer = config.wrap(deflate);
            writer.write_all(bytes).unwrap();
            let (deflate, end) = writer.finish().unwrap();
            deflate.finish().unwrap();
            entry.finish(end).unwrap();
        } else {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(bytes).unwrap();
            let (_, end) = writer.finish().unwrap();
            entry.finish(end).unwrap();
        }
    }
    let path = dir.join("a-1-py3-none-any.whl");
    std::fs::write(&path, archive.finish().unwrap()).unwrap();
    path
}

fn venv() -> Venv {
    Venv { folder: "/opt/venv".into(), python: "3.13".into() }
}

fn refused(others: &[File]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let opened = Archive::open(&wheel(dir.path(), others));
    opened.and_then(|archive| install(&archive, &venv()).map(|_| ())).unwrap_err().to_string()
}

#[test]
fn what_no_wheel_may_hold_is_refused_with_the_wheel_and_the_entry() {
    let cases: [(&[File], &str, &str); 9] = [
        (&[("../evil", b"x", 0o644)], "../evil", "leads out of the wheel"),
        (&[("a/../../evil", b"x", 0o644)], "a/../../evil", "leads out of the wheel"),
        (&[("/etc/passwd", b"x", 0o644)], "/etc/passwd", "absolute"),
        (&[("a\\b", b"x", 0o644)], "a\\b", "may hold"),
        (&[("C:/b", b"x", 0o644)], "C:/b", "may hold"),
        (&[("a/link", b"/etc/passwd", 0o120_777)], "a/link", "no plain file"),
        (&[("a/x", b"1", 0o644), ("a/x", b"2", 0o644)], "a/x", "there twice"),
        (&[("a-1.data/other/x", b"1", 0o644)], "a-1.data/other/x", "no installer knows"),
        (
            &[("a-1.dist-info/entry_points.txt", b"[console_scripts]\n../sh=a:f\n", 0o644)],
            "entry_points",
            "no name",
        ),
    ];
    for (files, entry, what) in cases {
        let error = refused(files);
        let all = ["error[E_WHEEL]", "a-1-py3-none-any.whl", entry, what];
        assert!(all.iter().all(|part| error.contains(part)), "{entry}: {error}");
    }
    assert!(refused(&[("b-1.dist-info/WHEEL", b"", 0o644)]).contains("2 `.dist-info` folders"));
}

/// A wheel in which one byte of the file's content, of its CRC or of its size is another.
#[test]
fn bytes_that_are_not_those_of_the_directory_are_refused() {
    let text = b"a text that is long enough to be deflated, and then some more of it: 0123456789".repeat(9);
    let dir = tempfile::tempdir().unwrap();
    let path = wheel(dir.path(), &[("a/data", &text, 0o644)]);
    let whole = std::fs::read(&path).unwrap();
    let central = whole.windows(4).enumerate().rfind(|(_, it)| *it == b"PK\x01\x02").unwrap().0;
    let start = Archive::open(&path).unwrap().entries.iter().find(|it| it.name == "a/data").unwrap().start;
    for (what, at) in [("CRC", central + 16), ("size", central + 24), ("content", start as usize + 30)] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let archive = Archive::open(&path).unwrap();
        for codec in [Codec::Splice, Codec::Zstd(1)] {
            let tree = install(&archive, &venv()).unwrap();
            let to = dir.path().join(format!("{what}{codec}"));
            let error = layer::write(&tree, codec, &to).unwrap_err().to_string();
            assert!(error.contains("E_WHEEL") && error.contains("a/data"), "{what} {codec}: {error}");
        }
    }
    std::fs::write(&path, &whole[..whole.len() - 30]).unwrap();
    assert!(Archive::open(&path).unwrap_err().to_string().contains("no whole zip archive"));
}

const GOOD: [File; 9] = [
    ("a/__init__.py", b"import a.deflated # and more, so that it is deflated", 0o644),
    ("a/tool", b"x", 0o755),
    ("a/libx.a", b"!<arch>", 0o644),
    ("a-1.data/scripts/run", b"#!python\nprint()\n", 0o644),
    ("a-1.data/scripts/tool", b"\x7fELF", 0o755),
    ("a-1.data/data/share/man/a.1", b"man", 0o644),
    ("a-1.data/platlib/a/extra.py", b"1", 0o644),
    ("a-1.data/headers/a.h", b"h", 0o644),
    ("a-1.dist-info/entry_points.txt", b"[console_scripts]\ngo = a.b:main.run\n", 0o644),
];

fn bytes_of(tree: &Tree, path: &str) -> String {
    match &tree[Path::new(path)].content {
        Content::Made(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        Content::Packed(archive, entry) => String::from_utf8(archive.read(entry).unwrap()).unwrap(),
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn files_go_where_the_specification_says() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(&wheel(dir.path(), &GOOD)).unwrap();
    let tree = install(&archive, &venv()).unwrap();
    let shown: Vec<_> = tree
        .iter()
        .map(|(path, node)| {
            (path.to_str().unwrap().replace("opt/venv/lib/python3.13/site-packages", "…"), node.mode)
        })
        .collect();
    let expected = [
        ("opt/venv/bin/go", 0o775),
        ("opt/venv/bin/run", 0o775),
        ("opt/venv/bin/tool", 0o775),
        ("opt/venv/include/site/python3.13/a/a.h", 0o664),
        ("…/a/__init__.py", 0o664),
        ("…/a/extra.py", 0o664),
        ("…/a/libx.a", 0o664),
        ("…/a/tool", 0o775),
        ("…/a-1.dist-info/INSTALLER", 0o664),
        ("…/a-1.dist-info/RECORD", 0o664),
        ("…/a-1.dist-info/REQUESTED", 0o664),
        ("…/a-1.dist-info/WHEEL", 0o664),
        ("…/a-1.dist-info/entry_points.txt", 0o664),
        ("opt/venv/share/man/a.1", 0o664),
    ];
    assert_eq!(shown, expected.map(|(path, mode)| (path.to_owned(), mode)));
    assert_eq!(bytes_of(&tree, "opt/venv/bin/run"), "#!/opt/venv/bin/python\nprint()\n");
    assert!(bytes_of(&tree, "opt/venv/bin/go").ends_with("from a.b import main\nif __name__ == \"__main__\":\n    if sys.argv[0].endswith(\"-script.pyw\"):\n        sys.argv[0] = sys.argv[0][:-11]\n    elif sys.argv[0].endswith(\".exe\"):\n        sys.argv[0] = sys.argv[0][:-4]\n    sys.exit(main.run())\n"));
    let record = bytes_of(&tree, "opt/venv/lib/python3.13/site-packages/a-1.dist-info/RECORD");
    let paths: Vec<_> = record.lines().map(|line| line.split(',').next().unwrap()).collect();
    let expected = [
        "../../../bin/go",
        "../../../bin/run",
        "a-1.dist-info/INSTALLER",
        "a-1.dist-info/RECORD",
        "a-1.dist-info/REQUESTED",
        "a/__init__.py",
    ];
    assert_eq!(paths, expected);
}

/// What a layer holds, as tar reads it: path, type, mode, and text.
fn listed(tar: &[u8]) -> Vec<(String, char, u32, String)> {
    let mut archive = tar::Archive::new(tar);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let header = entry.header().clone();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        let path = entry.path().unwrap().display().to_string();
        let link = entry.link_name().unwrap().map(|to| to.display().to_string());
        let mut text = Vec::new();
        entry.read_to_end(&mut text).unwrap();
        let text = link.unwrap_or_else(|| format!("{} {:?}", text.len(), text.first()));
        (path, header.entry_type().as_byte() as char, header.mode().unwrap(), text)
    });
    entries.collect()
}

/// The whole way: gzip reads what is spliced, both codecs hold the same tar, its hash is the diff id, and twice gives the
/// same bytes.
#[test]
fn a_layer_is_a_tar_whatever_packs_it() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!("a/{}/{}.txt", "d".repeat(120), "n".repeat(140));
    let library = vec![7; 70_000];
    let files = [
        &GOOD[..],
        &[(&long, b"long", 0o644), ("a/lib1.so", &library, 0o755), ("a/lib1.so.2", &library, 0o755)],
    ]
    .concat();
    let archive = Archive::open(&wheel(dir.path(), &files)).unwrap();
    let mut tree = tree::with_folders(install(&archive, &venv()).unwrap(), Path::new("opt"));
    tree::slim(&mut tree, &Tree::new()).unwrap();
    let written = |codec: Codec, name: &str| {
        let path = dir.path().join(name);
        let written = layer::write(&tree, codec, &path).unwrap();
        (written, std::fs::read(path).unwrap())
    };
    let (spliced, gzip) = written(Codec::Splice, "1");
    assert_eq!((&spliced, &gzip), (&written(Codec::Splice, "2").0, &written(Codec::Splice, "3").1));
    let mut tar = Vec::new();
    flate2::read::MultiGzDecoder::new(&gzip[..]).read_to_end(&mut tar).unwrap();
    let (zstandard, zstd) = written(Codec::Zstd(1), "4");
    assert_eq!(zstd::decode_all(&zstd[..]).unwrap(), tar);
    let diff_id =
        Sha256::digest(&tar).iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    assert_eq!((&spliced.diff_id, &zstandard.diff_id), (&diff_id, &diff_id));
    assert_eq!((spliced.size, spliced.unpacked), (gzip.len() as u64, tar.len() as u64));
    let found = listed(&tar);
    let site = "opt/venv/lib/python3.13/site-packages";
    let has = |path: &str, kind: char, mode: u32, text: &str| {
        let wanted = (format!("{site}/{path}"), kind, mode, text.to_owned());
        assert!(found.contains(&wanted), "{wanted:?} in {found:#?}");
    };
    has("a/", '5', 0o775, "0 None");
    has("a/__init__.py", '0', 0o664, "52 Some(105)");
    has(&long, '0', 0o664, "4 Some(108)");
    has("a/lib1.so.2", '2', 0o777, "lib1.so");
    assert!(!found.iter().any(|it| it.0.ends_with(".a") || it.0 == "opt/"), "{found:#?}");
}

#[test]
fn two_wheels_may_not_bring_different_files_to_one_place() {
    let [one, two, three] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let open = |dir: &tempfile::TempDir, text: &[u8]| {
        Archive::open(&wheel(dir.path(), &[("a/same", b"s", 0o644), ("a/x", text, 0o644)])).unwrap()
    };
    let (first, same, other) = (open(&one, b"1"), open(&two, b"1"), open(&three, b"2"));
    let joined = |a, b| tree::join([install(a, &venv()).unwrap(), install(b, &venv()).unwrap()]);
    assert!(joined(&first, &same).is_ok());
    let error = joined(&first, &other).unwrap_err().to_string();
    assert!(error.contains("E_WHEEL") && error.contains("a/x"), "{error}");
}
