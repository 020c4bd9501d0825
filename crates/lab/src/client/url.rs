//! Connection URLs: `postgresql://user:password@host:port,host:port/database?parameter=value`, or `host=a,b port=1,2 user=u dbname=d` as libpq takes it.

use super::ClientError;

/// Where to connect, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host names or addresses, and ports: the first that serves is taken. At least one.
    pub hosts: Vec<(String, u16)>,
    /// What is wanted of the one that is taken.
    pub target: Target,
    /// How long one of them may take, seconds; `None`: as long as it likes, if it is the only one.
    pub connect_seconds: Option<u64>,
    /// User.
    pub user: String,
    /// Password, if one is given.
    pub password: Option<String>,
    /// Database.
    pub database: String,
    /// Start-up parameters.
    pub parameters: Vec<(String, String)>,
}

/// `target_session_attrs`: which of several servers will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The first that answers.
    #[default]
    Any,
    /// One that takes writes.
    ReadWrite,
    /// One that does not.
    ReadOnly,
    /// One that does not, or else any.
    PreferStandby,
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
        if rest.is_none() && text.contains('=') {
            return Self::parse_words(text);
        }
        let rest = rest.ok_or_else(|| wrong(text, "it does not begin with postgresql://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decode(password))),
            None => (login, None),
        };
        let hosts: Option<Vec<(String, u16)>> = address.split(',').map(split_port).collect();
        let hosts = hosts.ok_or_else(|| wrong(text, "the port is no number"))?;
        let user = if user.is_empty() { "root".into() } else { decode(user) };
        let database = if path.is_empty() { user.clone() } else { decode(path) };
        let (target, connect_seconds) = (Target::Any, None);
        let parameters = Vec::new();
        let mut url = Url { hosts, target, connect_seconds, user, password, database, parameters };
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| wrong(text, "a parameter has no value"))?;
            url.parameter(name, decode(value))?;
        }
        Ok(url)
    }

    /// `host=a,b port=1,2 user=u dbname=d`; a value may stand in single quotes.
    fn parse_words(text: &str) -> Result<Url, ClientError> {
        let mut url = Url::parse("postgresql://")?;
        let (mut rest, mut named) = (text.trim_start(), false);
        while !rest.is_empty() {
            let (name, value) = rest.split_once('=').ok_or_else(|| wrong(text, "a parameter has no value"))?;
            let (value, after) = match value.strip_prefix('\'') {
                Some(quoted) => quoted.split_once('\'').ok_or_else(|| wrong(text, "a quote is not closed"))?,
                None => value.split_once(char::is_whitespace).unwrap_or((value, "")),
            };
            named |= name.trim() == "dbname";
            url.parameter(name.trim(), value.to_owned())?;
            rest = after.trim_start();
        }
        if !named {
            url.database = url.user.clone();
        }
        Ok(url)
    }

    /// The hosts that `host` and `port` name: one port for each, or one for all.
    fn set_ports(&mut self, value: &str) -> Result<(), ClientError> {
        let ports: Result<Vec<u16>, _> = value.split(',').map(str::parse).collect();
        let ports =
            ports.map_err(|_| ClientError::Usage(format!("port={value}: write numbers, with commas between")))?;
        if ports.len() != 1 && ports.len() != self.hosts.len() {
            return Err(ClientError::Usage(format!(
                "port={value}: there are {} hosts: give one port for all, or one for each, after the hosts",
                self.hosts.len()
            )));
        }
        let ports = ports.iter().cycle();
        self.hosts.iter_mut().zip(ports).for_each(|((_, known), port)| *known = *port);
        Ok(())
    }

    fn parameter(&mut self, name: &str, value: String) -> Result<(), ClientError> {
        match name {
            "sslmode" if matches!(value.as_str(), "disable" | "allow" | "prefer") => {}
            "sslmode" => {
                return Err(ClientError::Usage(format!(
                    "sslmode={value}: this client has no TLS; use sslmode=disable"
                )));
            }
            "host" => {
                let port = self.hosts.first().map_or(5432, |(_, port)| *port);
                self.hosts = value.split(',').map(|host| (host.to_owned(), port)).collect();
            }
            "port" => self.set_ports(&value)?,
            "target_session_attrs" => {
                self.target = match value.as_str() {
                    "any" => Target::Any,
                    "read-write" | "primary" => Target::ReadWrite,
                    "read-only" | "standby" => Target::ReadOnly,
                    "prefer-standby" => Target::PreferStandby,
                    _ => {
                        return Err(ClientError::Usage(format!(
                            "target_session_attrs={value}: write any, read-write, read-only, primary, standby or prefer-standby"
                        )));
                    }
                }
            }
            "connect_timeout" => {
                let seconds: u64 = value
                    .parse()
                    .map_err(|_| ClientError::Usage(format!("connect_timeout={value}: write a number of seconds")))?;
                self.connect_seconds = (seconds > 0).then_some(seconds);
            }
            "user" => self.user = value,
            "password" => self.password = Some(value),
            "dbname" => self.database = value,
            "gssencmode" => {}
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
        assert_eq!((url.hosts.as_slice(), url.database.as_str()), (&[("::1".to_owned(), 77)][..], "d/b"));
        assert_eq!(url.parameters, [("application_name".to_owned(), "x y".to_owned())]);
    }

    #[test]
    fn defaults() {
        let url = Url::parse("postgres://").unwrap();
        assert_eq!((url.user.as_str(), url.database.as_str()), ("root", "root"));
        assert_eq!(url.hosts, [("localhost".to_owned(), 5432)]);
    }

    #[test]
    fn several_hosts() {
        let hosts = |of: &[(&str, u16)]| of.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect::<Vec<_>>();
        let all = hosts(&[("a", 1), ("::1", 2), ("c", 5432)]);
        let url = Url::parse("postgres://u@a:1,[::1]:2,c/d?target_session_attrs=read-write&connect_timeout=3").unwrap();
        assert_eq!((url.hosts, url.target, url.connect_seconds), (all, Target::ReadWrite, Some(3)));
        let url = Url::parse("postgres:///d?host=a,b&port=1,2").unwrap();
        assert_eq!(url.hosts, hosts(&[("a", 1), ("b", 2)]));
        let url = Url::parse("host=a,b port=7 user='some one' target_session_attrs=standby").unwrap();
        assert_eq!((url.hosts, url.user.as_str()), (hosts(&[("a", 7), ("b", 7)]), "some one"));
        assert_eq!((url.database.as_str(), url.target), ("some one", Target::ReadOnly));
    }

    #[test]
    fn refusals() {
        for bad in [
            "localhost",
            "postgresql://h:x/d",
            "postgresql://h/d?sslmode=require",
            "postgresql://h/d?x",
            "host=a,b port=1,2,3",
            "host='a",
        ] {
            assert!(matches!(Url::parse(bad), Err(ClientError::Usage(_))), "{bad}");
        }
    }
}
