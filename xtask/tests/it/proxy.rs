//! A proxy in front of a registry that fails as it is told to, and notes what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What goes wrong with one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status, with these headers (lines that end with a line break), instead of an answer.
    Status(u16, String),
    /// This instead of an answer.
    Say(&'static str),
    /// The answer ends after this many bytes.
    Cut(usize),
    /// The answer comes later.
    Delay(Duration),
    /// A bit of the answer's last byte is another one.
    Flip,
    /// Nobody listens for this long.
    Down(Duration),
}

/// Which requests it happens to.
struct Rule {
    method: &'static str,
    path: String,
    /// How many such requests pass before it.
    skip: usize,
    /// How many it happens to.
    times: usize,
    fault: Fault,
}

/// A request as it was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub method: String,
    pub path: String,
    /// Bytes of its body.
    pub bytes: u64,
    pub authorization: Option<String>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    seen: Vec<Seen>,
    down_until: Option<Instant>,
    ended: bool,
}

pub struct Proxy {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    /// In front of what listens at a port of this machine.
    pub fn start(upstream: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let proxy = Proxy { port, state: state.clone() };
        std::thread::spawn(move || listen(Some(listener), port, upstream, &state));
        proxy
    }

    /// From now on, `times` requests of a method whose path holds `path` fail, after `skip` that pass.
    pub fn fail(&self, method: &'static str, path: &str, (skip, times): (usize, usize), fault: Fault) {
        let rule = Rule { method, path: path.to_owned(), skip, times, fault };
        self.state.lock().unwrap().rules.push(rule);
    }

    /// Forgets what it was told and what it saw.
    pub fn reset(&self) {
        let mut state = self.state.lock().unwrap();
        state.rules.clear();
        state.seen.clear();
    }

    /// The requests of a method whose path holds a text.
    pub fn seen(&self, method: &str, path: &str) -> Vec<Seen> {
        let state = self.state.lock().unwrap();
        state.seen.iter().filter(|it| it.method == method && it.path.contains(path)).cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.lock().unwrap().ended = true;
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok();
    }
}

fn listen(mut listener: Option<TcpListener>, port: u16, upstream: u16, state: &Arc<Mutex<State>>) {
    loop {
        let down = state.lock().unwrap().down_until.take();
        if let Some(until) = down {
            drop(listener.take());
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            listener = Some(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap());
        }
        let Ok((client, _)) = listener.as_ref().unwrap().accept() else { return };
        if state.lock().unwrap().ended {
            return;
        }
        let (shared, of_thread) = (state.clone(), state.clone());
        let handled = std::thread::spawn(move || handle(client, upstream, &of_thread));
        // What takes the proxy away must be known before the next one is let in.
        if shared.lock().unwrap().rules.iter().any(|it| matches!(it.fault, Fault::Down(_))) {
            handled.join().ok();
        }
    }
}

/// One request; the connection ends with it.
fn handle(mut client: TcpStream, upstream: u16, state: &Arc<Mutex<State>>) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    if reader.fill_buf().ok()?.first() == Some(&0x16) {
        // Somebody tries TLS first.
        client.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").ok()?;
        return None;
    }
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}: ")));
        line.map(|line| line[name.len() + 2..].to_owned())
    };
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let length: u64 = header("content-length").and_then(|it| it.parse().ok()).unwrap_or_default();
    let chunked = header("transfer-encoding").is_some();
    let index = {
        let mut state = state.lock().unwrap();
        let authorization = header("authorization");
        let (method, path) = (method.clone(), path.clone());
        state.seen.push(Seen { at: Instant::now(), method, path, bytes: length, authorization });
        state.seen.len() - 1
    };
    let fault = fault(state, &method, &path);
    if let Some(Fault::Status(code, headers)) = fault {
        std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok();
        let answer = format!("HTTP/1.1 {code} X\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n");
        return client.write_all(answer.as_bytes()).ok();
    }
    if let Some(Fault::Say(text)) = fault {
        let length = text.len();
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}");
        return client.write_all(answer.as_bytes()).ok();
    }
    if let Some(Fault::Down(time)) = fault {
        state.lock().unwrap().down_until = Some(Instant::now() + time);
        return None;
    }
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).ok()?;
    let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    server.write_all(head.as_bytes()).ok()?;
    let sent = match chunked {
        true => forward_chunks(&mut reader, &mut server),
        false => std::io::copy(&mut reader.by_ref().take(length), &mut server).ok(),
    };
    state.lock().unwrap().seen[index].bytes = sent?;
    match fault {
        None => std::io::copy(&mut server, &mut client).map(drop).ok()?,
        Some(Fault::Delay(time)) => {
            std::thread::sleep(time);
            std::io::copy(&mut server, &mut client).map(drop).ok()?;
        }
        Some(Fault::Cut(bytes)) => {
            std::io::copy(&mut server.take(bytes as u64), &mut client).map(drop).ok()?;
        }
        Some(_) => {
            let mut answer = Vec::new();
            server.read_to_end(&mut answer).ok()?;
            *answer.last_mut()? ^= 1;
            client.write_all(&answer).ok()?;
        }
    }
    client.shutdown(Shutdown::Both).ok()
}

/// A body in chunks, whose length nobody told; the bytes of its content.
fn forward_chunks(from: &mut impl BufRead, to: &mut impl Write) -> Option<u64> {
    let mut sent = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok()?;
        let size = u64::from_str_radix(line.trim(), 16).ok()?;
        to.write_all(line.as_bytes()).ok()?;
        std::io::copy(&mut from.take(size + 2), to).ok()?;
        sent += size;
        if size == 0 {
            return Some(sent);
        }
    }
}

fn fault(state: &Arc<Mutex<State>>, method: &str, path: &str) -> Option<Fault> {
    let mut state = state.lock().unwrap();
    for rule in state.rules.iter_mut().filter(|it| it.method == method && path.contains(&it.path)) {
        if rule.skip > 0 {
            rule.skip -= 1;
        } else if rule.times > 0 {
            rule.times -= 1;
            return Some(rule.fault.clone());
        }
    }
    None
}
