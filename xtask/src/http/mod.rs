//! HTTP for what this program itself asks of indexes and registries: the host's CA and proxy, and one way to try again.

mod ca;
mod failure;
mod retry;

pub use ca::bundle as ca_bundle;
pub use failure::{Cause, Failure};
pub use retry::{Clock, Policy, RealClock, Retry, Until};

use anyhow::Result;
use std::io::Read;
use std::time::Duration;
use ureq::http::{HeaderMap, Request as Head};
use ureq::{Agent, AsSendBody, Proxy, SendBody};

pub use ureq::http::Method;

/// Without a word for this long, a connection is given up. A whole transfer may take any time.
const SILENCE: Duration = Duration::from_secs(60);
/// For the name and for the connection, each.
const CONNECT: Duration = Duration::from_secs(10);
/// No answer that is read whole is longer.
const WHOLE: u64 = 64 << 20;
/// Of what stands in an answer that is a failure.
const EXCERPT: u64 = 500;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// GET, HEAD, POST, …
    pub method: Method,
    /// Where.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Body,
}

/// What is sent; it can be sent again.
#[derive(Clone, Debug)]
pub enum Body {
    /// Nothing.
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// An answer below 400.
pub struct Answer<B> {
    /// 200, 206, 304, …
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// What came: a reader, or all of it.
    pub body: B,
}

/// An answer whose body is still to be read.
pub type Stream = Answer<Box<dyn Read + Send>>;

/// A client of this host: its CA, its proxy.
pub struct Client {
    agent: Agent,
}

impl Request {
    /// A request without a body.
    pub fn new(method: Method, url: impl Into<String>) -> Request {
        Request { method, url: url.into(), headers: Vec::new(), body: Body::Empty }
    }

    /// Asks for what is there.
    pub fn get(url: impl Into<String>) -> Request {
        Request::new(Method::GET, url)
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Request {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends something.
    pub fn body(self, body: Body) -> Request {
        Request { body, ..self }
    }
}

impl<B> Answer<B> {
    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Client {
    /// A client with the CA bundle and the proxy (`HTTPS_PROXY`, `NO_PROXY`, …) that the environment names.
    ///
    /// Errors: `E_TLS` when the named bundle is not there.
    pub fn new() -> Result<Client> {
        let tls = ureq::tls::TlsConfig::builder().root_certs(ca::roots()?).build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(Proxy::try_from_env())
            .http_status_as_error(false)
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE));
        Ok(Client { agent: config.build().new_agent() })
    }

    /// One try; the body of the answer is still to be read.
    pub fn once(&self, request: &Request) -> Result<Stream, Failure> {
        answered(match &request.body {
            Body::Empty => self.run(request, ()),
            Body::Bytes(bytes) => self.run(request, bytes.as_slice()),
        })
    }

    /// One try to send what is read, which has `size` bytes, in place of the request's own body.
    pub fn send(&self, request: &Request, body: &mut dyn Read, size: u64) -> Result<Stream, Failure> {
        let request = request.clone().header("content-length", size.to_string());
        answered(self.run(&request, SendBody::from_reader(body)))
    }

    /// One try, read to its end: at most 64 MiB.
    pub fn whole(&self, request: &Request) -> Result<Answer<Vec<u8>>, Failure> {
        let answer = self.once(request)?;
        let mut body = Vec::new();
        answer.body.take(WHOLE).read_to_end(&mut body).map_err(|error| Failure::of_io(&error))?;
        Ok(Answer { status: answer.status, headers: answer.headers, body })
    }

    fn run(
        &self,
        request: &Request,
        body: impl AsSendBody,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let mut head = Head::builder().method(&request.method).uri(&request.url);
        for (name, value) in &request.headers {
            head = head.header(name, value);
        }
        let head = head.body(body)?;
        let loopback = head.uri().host().is_some_and(is_loopback);
        let config = self.agent.configure_request(head);
        // No proxy of another machine reaches this one.
        let config = if loopback { config.proxy(None) } else { config };
        self.agent.run(config.build())
    }
}

/// What was answered, or why nothing was; an answer of 400 or more is a failure.
fn answered(answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Stream, Failure> {
    let (parts, body) = answer.map_err(|error| Failure::of_error(&error))?.into_parts();
    let (status, body) = (parts.status.as_u16(), body.into_reader());
    if status >= 400 {
        let mut said = Vec::new();
        // Whatever it says, the status stands.
        body.take(EXCERPT).read_to_end(&mut said).ok();
        return Err(Failure::of_status(status, &parts.headers, &String::from_utf8_lossy(&said)));
    }
    Ok(Answer { status, headers: parts.headers, body: Box::new(body) })
}

/// Whether a host, without its port, is this machine.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
