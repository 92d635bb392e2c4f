//! The client against a server on loopback that behaves as it is told to.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};

/// A server that gives one answer a connection, byte for byte, and returns what it was asked.
fn server(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            for line in head.to_lowercase().lines() {
                length = line.strip_prefix("content-length: ").map_or(length, |it| it.parse().unwrap());
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            asked.push(head + &String::from_utf8(body).unwrap());
            stream.write_all(answer.as_bytes()).unwrap();
        }
        asked
    });
    (url, asked)
}

fn get(answer: &'static [&'static str]) -> Result<Answer<Vec<u8>>, Failure> {
    let (url, asked) = server(answer);
    let result = Client::new().unwrap().whole(&Request::get(url));
    asked.join().unwrap();
    result
}

#[test]
fn what_is_sent_arrives_whole_each_time() {
    for sent in ["bytes", ""] {
        let body = Body::Bytes(sent.as_bytes().to_vec());
        let (url, asked) =
            server(&["HTTP/1.1 201 Created\r\ncontent-length: 0\r\nx-y: z\r\nconnection: close\r\n\r\n"; 2]);
        let client = Client::new().unwrap();
        let request = Request::new(Method::PUT, url).header("a", "b").body(body);
        for _ in 0..2 {
            let answer = client.whole(&request).unwrap();
            assert_eq!((answer.status, answer.header("x-y")), (201, Some("z")));
        }
        for asked in asked.join().unwrap() {
            assert!(asked.starts_with("PUT /x HTTP/1.1\r\n") && asked.contains("a: b\r\n"), "{asked}");
            assert!(asked.ends_with(&format!("\r\n\r\n{sent}")), "{asked}");
        }
    }
}

#[test]
fn an_answer_that_ends_too_early_is_no_answer() {
    let cut = get(&["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"]).err().unwrap();
    assert_eq!(cut.cause, Cause::Reset, "{cut}");
    let cut = get(&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"]).err().unwrap();
    assert_eq!(cut.cause, Cause::Reset, "{cut}");
    let cut = get(&["HTTP/1.1 200 OK\r\nconte"]).err().unwrap();
    assert_eq!(cut.cause, Cause::Reset, "{cut}");
    let cut = get(&[""]).err().unwrap();
    assert_eq!(cut.cause, Cause::Reset, "{cut}");
}

#[test]
fn a_refusal_keeps_what_the_next_step_needs() {
    let failure = get(&[
        "HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 4\r\nwww-authenticate: Bearer realm=\"r\"\r\n\r\nslow",
    ]);
    let failure = failure.err().unwrap();
    assert_eq!(failure.cause, Cause::Status(429));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(failure.challenges, ["Bearer realm=\"r\""]);
    let error = failure.error("somewhere").to_string();
    assert!(
        error.contains("error[E_RATE_LIMIT]: somewhere: answer 429: slow, which asks to wait 7 s"),
        "{error}"
    );
}

#[test]
fn who_is_not_there_is_told_apart() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let client = Client::new().unwrap();
    let cause = |url: String| client.whole(&Request::get(url)).err().unwrap().cause;
    assert_eq!(cause(format!("http://127.0.0.1:{port}/")), Cause::Refused);
    assert_eq!(cause("http://no-such-host.invalid/".to_owned()), Cause::Name);
    // A server without TLS.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let plain = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).ok();
    });
    let told = client.whole(&Request::get(url)).err().unwrap();
    plain.join().unwrap();
    assert_eq!(told.cause, Cause::Tls, "{told}");
}

#[test]
fn loopback_has_several_names() {
    assert!(["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "::1"].into_iter().all(is_loopback));
    assert!(["localhost.example.org", "128.0.0.1", "example.org", ""].into_iter().all(|it| !is_loopback(it)));
}
