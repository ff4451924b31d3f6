//! A reply to be given again: what the product answers, byte for byte but for the fields that hyper writes itself.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::header::{CONTENT_LENGTH, DATE, HeaderName, HeaderValue};
use tempfile::TempDir;

use super::requests::Requests;
use crate::failure::Failure;

/// The first replies tell of caches that had to be filled; the last of so many does not.
const BEFORE_CAPTURE: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    fields: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

// === impl Reply ===

impl Reply {
    /// Asks the product.
    pub(crate) fn capture(address: &str, requests: &Requests) -> Result<Self, Failure> {
        let named = || Failure::io("the product's reply");
        let socket = TcpStream::connect(address).map_err(named())?;
        let mut answers = BufReader::new(socket.try_clone().map_err(named())?);
        let mut text = String::new();
        for _ in 0..BEFORE_CAPTURE {
            (&socket).write_all(requests.one(address).as_bytes()).map_err(named())?;
            text = read_one(&mut answers)?;
        }
        if !text.starts_with("HTTP/1.1 200") || !text.contains(requests.answered) {
            return Err(Failure::Invalid(format!("the product did not admit a request:\n{text}")));
        }
        Self::parse(&text)
    }

    /// For servers that are only compared with each other.
    pub(crate) fn made_up() -> Self {
        let field =
            (HeaderName::from_static("content-type"), HeaderValue::from_static("application/json"));
        let body = r#"{"meta":{"requestId":"req_0123456789abcdef"},"data":{"success":true,"limit":1000000000,"remaining":999999999,"reset":1700000060000}}"#;
        Self { fields: vec![field], body: Bytes::from_static(body.as_bytes()) }
    }

    pub(crate) fn save_to(&self, scratch: &TempDir) -> Result<PathBuf, Failure> {
        let path = scratch.path().join("reply");
        let mut text = b"HTTP/1.1 200 OK\r\n".to_vec();
        for (name, value) in &self.fields {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        text.extend(b"\r\n");
        text.extend(&self.body);
        fs::write(&path, text).map_err(Failure::io("the captured reply"))?;
        Ok(path)
    }

    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        Self::parse(&fs::read_to_string(path).map_err(Failure::io("the captured reply"))?)
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let unreadable = || Failure::unreadable("a reply", text);
        let (head, body) = text.split_once("\r\n\r\n").ok_or_else(unreadable)?;
        let mut fields = Vec::new();
        for line in head.lines().skip(1) {
            let (name, value) = line.split_once(": ").ok_or_else(unreadable)?;
            let name: HeaderName = name.parse().map_err(|_| unreadable())?;
            if name != DATE && name != CONTENT_LENGTH {
                fields.push((name, value.parse().map_err(|_| unreadable())?));
            }
        }
        Ok(Self { fields, body: Bytes::copy_from_slice(body.as_bytes()) })
    }

    pub(crate) fn give(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        response.headers_mut().reserve(self.fields.len());
        for (name, value) in &self.fields {
            response.headers_mut().append(name.clone(), value.clone());
        }
        response
    }
}

fn read_one(answers: &mut impl BufRead) -> Result<String, Failure> {
    let mut text = String::new();
    let mut length = 0;
    loop {
        let from = text.len();
        answers.read_line(&mut text).map_err(Failure::io("the product's reply"))?;
        let line = text[from..].trim_end().to_ascii_lowercase();
        if let Some(number) = line.strip_prefix("content-length: ") {
            length = number.parse().map_err(|_| Failure::unreadable("a length", number))?;
        }
        if line.is_empty() {
            break;
        }
    }
    answers.take(length).read_to_string(&mut text).map_err(Failure::io("the product's reply"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_reply_is_loaded_as_it_was() -> Result<(), Failure> {
        let scratch = tempfile::tempdir().map_err(Failure::io("a folder"))?;
        let reply = Reply::made_up();
        assert_eq!(Reply::load(&reply.save_to(&scratch)?)?, reply);
        Ok(())
    }

    #[test]
    fn fields_that_hyper_writes_are_left_to_it() {
        let text = "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 2\r\nX-A: b\r\n\r\n{}";
        assert!(
            Reply::parse(text).is_ok_and(|reply| reply.fields.len() == 1 && reply.body == "{}")
        );
    }
}
