//! Wheels from an index that is served here and does not always do what it should.

use super::*;
use crate::wheels::Group;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};

/// What is served: a page, and a file of which some answers are cut or spoilt.
struct Served {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

/// Serves an index whose page names one file; `file` gives each answer for it, by the number of the request.
fn serve(page: String, file: impl Fn(usize, &str) -> Vec<u8> + Send + 'static) -> Served {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://u:p@{}/simple", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let notes = asked.clone();
    std::thread::spawn(move || {
        let mut files = 0;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
            notes.lock().unwrap().push(head.clone());
            let answer = match head.starts_with("GET /simple/a/ ") {
                true => format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
                    page.len()
                )
                .into(),
                false => {
                    files += 1;
                    file(files, &head)
                }
            };
            stream.write_all(&answer).ok();
        }
    });
    Served { url, asked }
}

fn answer(head: &str, promised: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {promised}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

const BYTES: &[u8] = b"the bytes of a wheel";

fn wheel() -> Wheel {
    let sha256 = digest::of_bytes(BYTES).trim_start_matches("sha256:").to_owned();
    let (name, version, file) = ("a".to_owned(), "1".to_owned(), "a-1-py3-none-any.whl".to_owned());
    Wheel { name, version, file, bytes: BYTES.len() as u64, sha256 }
}

fn page() -> String {
    format!("<a href='../../f/a.whl#sha256={}'>a-1-py3-none-any.whl</a>", wheel().sha256)
}

fn provide(url: &str, cache: &Path) -> Result<Files> {
    let indexes = [url.to_owned()];
    let fetch = Fetch { indexes: &indexes, cache, say: &|_| (), came: &|_| () };
    fetch.provide(&[&wheel()])
}

#[test]
fn what_was_broken_off_is_gone_on_with_and_what_is_there_is_not_asked_for() {
    let cache = tempfile::tempdir().unwrap();
    let served = serve(page(), |request, _| match request {
        1 => answer("200 OK", BYTES.len(), &BYTES[..7]),
        _ => answer(
            &format!("206 Partial\r\ncontent-range: bytes 7-{}/{}", BYTES.len() - 1, BYTES.len()),
            BYTES.len() - 7,
            &BYTES[7..],
        ),
    });
    let files = provide(&served.url, cache.path()).unwrap();
    assert_eq!(fs::read(&files[&wheel().sha256]).unwrap(), BYTES);
    let asked = served.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 3, "{asked:#?}");
    assert!(asked[2].to_lowercase().contains("range: bytes=7-"), "{}", asked[2]);
    assert!(asked.iter().all(|head| head.to_lowercase().contains("authorization: basic")), "{asked:#?}");
    provide(&served.url, cache.path()).unwrap();
    assert_eq!(served.asked.lock().unwrap().len(), 3);
    // One that somebody was at is fetched anew.
    fs::write(&files[&wheel().sha256], "other bytes").unwrap();
    let whole = serve(page(), |_, _| answer("200 OK", BYTES.len(), BYTES));
    provide(&whole.url, cache.path()).unwrap();
    assert_eq!(fs::read(&files[&wheel().sha256]).unwrap(), BYTES);
}

#[test]
fn other_bytes_and_a_file_that_is_not_there_are_refused() {
    let cache = tempfile::tempdir().unwrap();
    let other = serve(page(), |_, _| answer("200 OK", BYTES.len(), b"THE BYTES OF A WHEEL"));
    let error = provide(&other.url, cache.path()).unwrap_err().to_string();
    assert!(error.contains("error[E_WHEEL_HASH]: a-1-py3-none-any.whl") && !error.contains("u:p"), "{error}");
    let none = serve("<a href='b.whl#sha256=00'>b.whl</a>".to_owned(), |_, _| Vec::new());
    let error = provide(&none.url, cache.path()).unwrap_err().to_string();
    assert!(error.contains("E_WHEEL_HASH") && error.contains("no index"), "{error}");
    for status in ["404 Not Found", "410 Gone"] {
        let gone = serve(page(), move |_, _| answer(status, 0, b""));
        let error = provide(&gone.url, cache.path()).unwrap_err().to_string();
        let what = format!("its index names it and does not have it: answer {}", &status[..3]);
        let said = ["error[E_WHEEL_HASH]: a-1-py3-none-any.whl: ", &what, "`cargo xtask lock --update`"];
        assert!(said.iter().all(|it| error.contains(it)) && !error.contains("mirror"), "{error}");
        assert_eq!(gone.asked.lock().unwrap().len(), 2);
    }
    assert!(!place(cache.path(), &wheel()).exists());
}

#[test]
fn credentials_leave_the_address_for_the_header() {
    let (address, header) = without_credentials("https://u:p%40x@index.example.org/simple");
    assert_eq!(address, "https://index.example.org/simple");
    assert_eq!(header.unwrap(), format!("Basic {}", STANDARD.encode("u:p@x")));
    assert_eq!(without_credentials("https://index.example.org/a@b").1, None);
}

/// A fetch that pauses before it asks again, and somebody else fails meanwhile.
#[test]
fn a_failure_of_others_ends_the_fetch_and_is_the_one_that_is_told() {
    let cache = tempfile::tempdir().unwrap();
    let busy = || answer("503 Busy\r\nretry-after: 600", 0, b"");
    let served = serve(page(), move |_, _| busy());
    let arrivals = Arrivals::default();
    let fail = |_: &str| arrivals.fail(anyhow::anyhow!("a layer cannot be made"));
    let indexes = [served.url.clone()];
    let fetch = Fetch { indexes: &indexes, cache: cache.path(), say: &fail, came: &|_| () };
    fetch.bring(&[&wheel()], &arrivals);
    assert_eq!(served.asked.lock().unwrap().len(), 2);
    // Nothing new is begun.
    fetch.bring(&[&wheel()], &arrivals);
    assert_eq!(served.asked.lock().unwrap().len(), 2);
    assert_eq!(arrivals.into_files().unwrap_err().to_string(), "a layer cannot be made");
}

#[test]
fn a_wheel_that_fails_ends_those_who_wait_for_it() {
    let cache = tempfile::tempdir().unwrap();
    let other = serve(page(), |_, _| answer("200 OK", BYTES.len(), b"THE BYTES OF A WHEEL"));
    let group = Group { name: "a".to_owned(), wheels: vec![wheel()], others: Vec::new() };
    let arrivals = Arrivals::of(&[&group]);
    let indexes = [other.url.clone()];
    let fetch = Fetch { indexes: &indexes, cache: cache.path(), say: &|_| (), came: &|_| () };
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| arrivals.next().is_none());
        fetch.bring(&[&wheel()], &arrivals);
        assert!(waits.join().unwrap());
    });
    let error = arrivals.into_files().unwrap_err().to_string();
    assert!(error.contains("E_WHEEL_HASH"), "{error}");
}
