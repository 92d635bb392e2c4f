//! How one is let in: what a registry asks for in `WWW-Authenticate`, and the token that it takes.

use super::credentials::Credentials;
use crate::http::{Body, Cause, Client, Failure, Method, Request};
use serde::Deserialize;

/// What a registry wants before it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Name and password with each request.
    Basic,
    /// A token from somewhere else.
    Bearer {
        /// Where it is had.
        realm: String,
        /// What it is for.
        service: Option<String>,
        /// What it lets one do.
        scope: Option<String>,
    },
}

impl Challenge {
    /// From the lines of an answer 401; a token is taken before a password.
    pub(super) fn parse(lines: &[String]) -> Option<Challenge> {
        let bearer = lines.iter().find_map(|line| Some(parameters(after(line, "bearer ")?)));
        if let Some(parameters) = bearer {
            let get =
                |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
            return Some(Challenge::Bearer {
                realm: get("realm")?,
                service: get("service"),
                scope: get("scope"),
            });
        }
        lines.iter().any(|line| after(line, "basic").is_some()).then_some(Challenge::Basic)
    }
}

fn after<'a>(line: &'a str, scheme: &str) -> Option<&'a str> {
    line.get(..scheme.len())?.eq_ignore_ascii_case(scheme).then(|| &line[scheme.len()..])
}

/// `key="value",key=value`; a value in quotes may hold commas.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let (value, end) = match after.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some((value, end)) => (value, end),
                None => break,
            },
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((key.trim_matches([' ', ',']).to_lowercase(), value.trim().to_owned()));
        rest = end;
    }
    found
}

/// The answer of a token server: one of the two names is used.
#[derive(Deserialize)]
struct Answer {
    token: Option<String>,
    access_token: Option<String>,
}

/// Fetches a token for a scope, as somebody or as nobody. See distribution's token authentication specification.
pub(super) fn fetch(
    client: &Client,
    credentials: Option<&Credentials>,
    (realm, service, scope): (&str, Option<&str>, &str),
) -> Result<String, Failure> {
    let secure = realm.starts_with("https://") || is_this_machine(realm);
    if !secure {
        let said = format!("the registry sends its users' passwords to `{realm}`, without TLS");
        return Err(Failure::new(Cause::Tls, said));
    }
    let service = service.map(|service| format!("service={}&", encode(service))).unwrap_or_default();
    let query = format!("{service}scope={}", encode(scope));
    let request = match credentials {
        Some(Credentials::Refresh(token)) => {
            let body =
                format!("grant_type=refresh_token&client_id=xtask&refresh_token={}&{query}", encode(token));
            Request::new(Method::POST, realm)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(Body::Bytes(body.into_bytes()))
        }
        _ => {
            let sign = if realm.contains('?') { '&' } else { '?' };
            let request = Request::get(format!("{realm}{sign}{query}"));
            match credentials.and_then(Credentials::basic) {
                Some(basic) => request.header("authorization", basic),
                None => request,
            }
        }
    };
    let answer = client.whole(&request)?;
    let parsed: Option<Answer> = serde_json::from_slice(&answer.body).ok();
    let token = parsed.and_then(|answer| answer.token.or(answer.access_token));
    token.ok_or_else(|| Failure::new(Cause::Status(401), "the token server gives no token"))
}

fn is_this_machine(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    crate::http::is_loopback(host)
}

/// A value as it stands in a query.
pub(super) fn encode(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let parse = |lines: &[&str]| {
            Challenge::parse(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
        };
        let bearer = parse(&[
            r#"Bearer realm="https://a.example.org/token",service="r.example.org",scope="repository:x/y:pull,push""#,
        ]);
        let expected = Challenge::Bearer {
            realm: "https://a.example.org/token".to_owned(),
            service: Some("r.example.org".to_owned()),
            scope: Some("repository:x/y:pull,push".to_owned()),
        };
        assert_eq!(bearer, Some(expected));
        assert_eq!(parse(&["Basic realm=\"x\""]), Some(Challenge::Basic));
        assert!(matches!(
            parse(&["basic", "bearer realm=https://x, error=y"]),
            Some(Challenge::Bearer { .. })
        ));
        assert_eq!(parse(&["Negotiate"]), None);
        assert_eq!(parse(&[]), None);
    }

    #[test]
    fn no_password_goes_over_a_plain_line() {
        let client = Client::new().unwrap();
        let failure = fetch(&client, None, ("http://a.example.org/token", None, "s")).unwrap_err();
        assert_eq!(failure.cause, Cause::Tls);
        assert!(
            is_this_machine("http://127.0.0.1:5001/token")
                && !is_this_machine("http://a.example.org/127.0.0.1")
        );
    }

    #[test]
    fn what_stands_in_a_query_is_encoded() {
        assert_eq!(encode("repository:a/b:pull,push ü"), "repository%3Aa%2Fb%3Apull%2Cpush%20%C3%BC");
    }
}
