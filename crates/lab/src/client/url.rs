//! Connection URLs: `postgresql://user:password@host:port/database?parameter=value`.

use super::ClientError;

/// Where to connect, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// Password, if one is given.
    pub password: Option<String>,
    /// Database.
    pub database: String,
    /// Start-up parameters.
    pub parameters: Vec<(String, String)>,
}

fn wrong(url: &str, why: &str) -> ClientError {
    ClientError::Usage(format!("{url:?} is no connection URL: {why}; write postgresql://user@host:port/database"))
}

impl Url {
    /// Reads a URL. Missing parts: port 5432, user `root`, the user's name as database.
    ///
    /// # Errors
    /// [`ClientError::Usage`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Url, ClientError> {
        let rest = text.strip_prefix("postgresql://").or_else(|| text.strip_prefix("postgres://"));
        let rest = rest.ok_or_else(|| wrong(text, "it does not begin with postgresql://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password))),
            None => (login, None),
        };
        let (host, port) = split_port(address).ok_or_else(|| wrong(text, "the port is no number"))?;
        let user = if user.is_empty() { "root".into() } else { decode(user) };
        let database = if path.is_empty() { user.clone() } else { decode(path) };
        let mut url = Url { host, port, user, password, database, parameters: Vec::new() };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| wrong(text, "a parameter has no value"))?;
            url.parameter(name, decode(value))?;
        }
        Ok(url)
    }

    fn parameter(&mut self, name: &str, value: String) -> Result<(), ClientError> {
        match name {
            "sslmode" if matches!(value.as_str(), "disable" | "allow" | "prefer") => {}
            "sslmode" => {
                return Err(ClientError::Usage(format!(
                    "sslmode={value}: this client has no TLS; use sslmode=disable"
                )));
            }
            "host" => self.host = value,
            "user" => self.user = value,
            "password" => self.password = Some(value),
            "dbname" => self.database = value,
            "connect_timeout" | "gssencmode" | "target_session_attrs" => {}
            _ => self.parameters.push((name.to_owned(), value)),
        }
        Ok(())
    }
}

fn split_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = match address.strip_prefix('[').and_then(|a| a.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or("")),
        None => address.split_once(':').unwrap_or((address, "")),
    };
    let host = if host.is_empty() { "localhost".to_owned() } else { decode(host) };
    let port = if port.is_empty() { 5432 } else { port.parse().ok()? };
    Some((host, port))
}

/// Percent-decoding; what is no escape stays.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let url = Url::parse("postgresql://a%40b:p:w@[::1]:77/d%2Fb?application_name=x%20y&sslmode=disable").unwrap();
        assert_eq!((url.user.as_str(), url.password.as_deref()), ("a@b", Some("p:w")));
        assert_eq!((url.host.as_str(), url.port, url.database.as_str()), ("::1", 77, "d/b"));
        assert_eq!(url.parameters, [("application_name".to_owned(), "x y".to_owned())]);
    }

    #[test]
    fn defaults() {
        let url = Url::parse("postgres://").unwrap();
        assert_eq!(
            (url.user.as_str(), url.host.as_str(), url.port, url.database.as_str()),
            ("root", "localhost", 5432, "root")
        );
    }

    #[test]
    fn refusals() {
        for bad in ["localhost", "postgresql://h:x/d", "postgresql://h/d?sslmode=require", "postgresql://h/d?x"] {
            assert!(matches!(Url::parse(bad), Err(ClientError::Usage(_))), "{bad}");
        }
    }
}
