//! Wheels that come one after the other: layers are made while others are still awaited, and whatever ends one ends both.

use crate::bases::{Tiny, hex};
use crate::support::Outcome;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How the index answers who wants torch; the other wheels come at once.
#[derive(Clone, Copy)]
enum Torch {
    /// When the layers of the two others are made.
    Late,
    /// Never, within the time of a test.
    Never,
    /// It is gone when the layers of the two others are made.
    Gone,
}

/// A release whose wheels are at an index.
struct Far {
    tiny: Tiny,
    index: String,
}

impl Far {
    fn new(torch: Torch) -> Far {
        let tiny = Tiny::new(100_000);
        let (cache, wheels) = (tiny.path("cache"), tiny.path("served"));
        std::fs::create_dir(&wheels).unwrap();
        for folder in std::fs::read_dir(cache.join("wheels")).unwrap() {
            let file = std::fs::read_dir(folder.unwrap().path()).unwrap().next().unwrap().unwrap();
            std::fs::rename(file.path(), wheels.join(file.file_name())).unwrap();
        }
        std::fs::remove_dir_all(cache.join("wheels")).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let index = format!("http://{}/simple", listener.local_addr().unwrap());
        let folders = Arc::new((wheels, cache));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let folders = folders.clone();
                std::thread::spawn(move || serve(&stream.unwrap(), &folders.0, &folders.1, torch));
            }
        });
        Far { tiny, index }
    }

    fn command(&self) -> Command {
        let mut command = self.tiny.command(&[]);
        command.env("UV_DEFAULT_INDEX", &self.index).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Answers one request: every page of the index names all wheels.
fn serve(mut stream: &TcpStream, wheels: &Path, cache: &Path, torch: Torch) {
    let mut head = String::new();
    let mut lines = BufReader::new(stream);
    while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (mut status, mut body) = ("200 OK", Vec::new());
    match path.strip_prefix("/files/") {
        Some(file) => {
            body = std::fs::read(wheels.join(file)).unwrap();
            let is_there = match torch {
                _ if !file.starts_with("torch") => true,
                Torch::Late => others_are_made(cache),
                Torch::Gone => !others_are_made(cache),
                Torch::Never => {
                    std::thread::sleep(Duration::from_secs(600));
                    false
                }
            };
            if !is_there {
                (status, body) = ("404 Not Found", Vec::new());
            }
        }
        None => {
            for entry in std::fs::read_dir(wheels).unwrap().flatten() {
                let (name, hash) = (entry.file_name(), hex(&std::fs::read(entry.path()).unwrap()));
                let name = name.to_str().unwrap();
                writeln!(body, "<a href=\"/files/{name}#sha256={hash}\">{name}</a>").unwrap();
            }
        }
    }
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), &body].concat()).ok();
}

/// How many layers are made.
fn made(cache: &Path) -> usize {
    let notes = std::fs::read_dir(cache.join("layers/notes")).into_iter().flatten().flatten();
    notes.filter(|note| note.path().extension().is_some_and(|it| it == "json")).count()
}

/// Whether the layers of the other wheels are made, after some time for it.
fn others_are_made(cache: &Path) -> bool {
    let start = Instant::now();
    while made(cache) < 2 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    made(cache) == 2
}

#[test]
fn layers_are_made_while_a_wheel_is_awaited_and_are_the_same() {
    let far = Far::new(Torch::Late);
    let outcome = Outcome::of(far.command().output().unwrap());
    outcome.expect(0, &["3 wheels, ", "; 2 of 3 layers were made meanwhile"]);
    let near = Tiny::new(100_000);
    assert_eq!(near.run(&[]).expect(0, &[]).stdout, outcome.stdout);
    assert_eq!(near.cache(), far.tiny.cache());
}

#[test]
fn a_wheel_that_is_gone_is_told_and_what_was_made_is_kept() {
    let far = Far::new(Torch::Gone);
    let outcome = Outcome::of(far.command().output().unwrap());
    outcome
        .expect(3, &["error[E_WHEEL_HASH]: torch-1-py3-none-any.whl: ", "404", "cargo xtask lock --update"]);
    assert_eq!(made(&far.tiny.path("cache")), 2, "{outcome:#?}");
}

#[test]
fn a_signal_ends_who_waits_for_a_wheel() {
    let far = Far::new(Torch::Never);
    let run = far.command().spawn().unwrap();
    assert!(others_are_made(&far.tiny.path("cache")));
    Command::new("kill").args(["-s", "TERM", &run.id().to_string()]).status().unwrap();
    let outcome = Outcome::of(run.wait_with_output().unwrap());
    outcome.expect(143, &["interrupted by SIGTERM: what ran was ended, finished steps are kept"]);
    assert_eq!(made(&far.tiny.path("cache")), 2);
}
