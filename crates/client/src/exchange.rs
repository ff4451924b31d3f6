//! One request and its answer over HTTP: timeouts, envelopes, and a bound on what is read back.
//! It knows no endpoint, follows no redirect and sends nothing twice.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tollkeeper_wire::Failure;

use crate::error::ClientError;
use crate::secret::Secret;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const WHOLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer is a page of a hundred rows; whatever is longer is not ours.
const ANSWER_BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    http: reqwest::Client,
    base: String,
    bearer: HeaderValue,
}

impl Exchange {
    pub(crate) fn new(base_url: &str, root_key: Secret) -> Result<Self, ClientError> {
        let base = parse_base(base_url).ok_or(ClientError::Unfit {
            what: "the server's URL",
            expected: "http://HOST:PORT or https://HOST",
        })?;
        let bearer = root_key.into_bearer().ok_or(ClientError::Unfit {
            what: "the root key",
            expected: "printable ASCII characters",
        })?;
        let http = connector(&base)
            .map_err(|source| ClientError::Unreachable { url: base_url.to_owned(), source })?;
        Ok(Self { http, base: base.as_str().trim_end_matches('/').to_owned(), bearer })
    }

    pub(crate) async fn post<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        method: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let url = format!("{}/v2/{method}", self.base);
        let request = self.http.post(&url).header(AUTHORIZATION, self.bearer.clone()).json(body);
        self.send(url, request).await
    }

    /// An answer that is not in the envelope, and one header of it.
    pub(crate) async fn post_text<B: Serialize + Sync>(
        &self,
        method: &str,
        body: &B,
        header: &str,
    ) -> Result<(Vec<u8>, Option<String>), ClientError> {
        let url = format!("{}/v2/{method}", self.base);
        let request = self.http.post(&url).header(AUTHORIZATION, self.bearer.clone()).json(body);
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(source) => {
                return Err(ClientError::Unreachable { url, source: source.without_url() });
            }
        };
        let status = answer.status();
        let value = answer.headers().get(header).and_then(|value| value.to_str().ok());
        let value = value.map(str::to_owned);
        let body = read(answer, &url).await?;
        if status.is_success() {
            Ok((body, value))
        } else {
            Err(refusal(url, status.as_u16(), &body))
        }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let url = format!("{}/v2/{path}", self.base);
        let request = self.http.request(Method::GET, &url);
        self.send(url, request).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        url: String,
        request: RequestBuilder,
    ) -> Result<T, ClientError> {
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(source) => {
                return Err(ClientError::Unreachable { url, source: source.without_url() });
            }
        };
        let status = answer.status();
        let body = read(answer, &url).await?;
        if !status.is_success() {
            return Err(refusal(url, status.as_u16(), &body));
        }
        serde_json::from_slice(&body).map_err(|error| ClientError::Garbled {
            url,
            status: status.as_u16(),
            what: format!("the body is not the expected answer ({error})"),
        })
    }
}

fn parse_base(base_url: &str) -> Option<Url> {
    let base = Url::parse(base_url).ok()?;
    let plain = base.query().is_none() && base.fragment().is_none() && base.username().is_empty();
    (matches!(base.scheme(), "http" | "https") && base.has_host() && plain).then_some(base)
}

fn connector(base: &Url) -> Result<reqwest::Client, reqwest::Error> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(WHOLE_TIMEOUT)
        // A redirect could carry the root key to somebody else.
        .redirect(reqwest::redirect::Policy::none())
        // The HTTP library would by itself repeat what the server's side of the protocol calls unprocessed.
        .retry(reqwest::retry::never())
        .user_agent(concat!("tollkeeper-client/", env!("CARGO_PKG_VERSION")));
    if is_loopback(base) {
        // A proxy that the environment names for the outside cannot reach a server on this machine.
        builder = builder.no_proxy();
    }
    if base.scheme() == "http" {
        // Reading the system's certificates takes longer than the ask, and fails on machines without any.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

async fn read(mut answer: Response, url: &str) -> Result<Vec<u8>, ClientError> {
    let status = answer.status().as_u16();
    let mut body = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= ANSWER_BYTES_MAX => {
                body.extend_from_slice(&chunk);
            }
            Ok(Some(_)) => {
                let what = format!("the body is longer than {ANSWER_BYTES_MAX} bytes");
                return Err(ClientError::Garbled { url: url.to_owned(), status, what });
            }
            Ok(None) => return Ok(body),
            Err(source) => {
                return Err(ClientError::Unreachable {
                    url: url.to_owned(),
                    source: source.without_url(),
                });
            }
        }
    }
}

fn refusal(url: String, status: u16, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Failure<'static>>(body) {
        Ok(Failure { meta, error }) => ClientError::Refused {
            status,
            title: error.title.clone().into_owned(),
            detail: error.detail.clone().into_owned(),
            kind: error.kind.clone().into_owned(),
            request_id: meta.request_id.into_owned(),
            errors: error.into_errors(),
        },
        Err(_) => ClientError::Garbled {
            url,
            status,
            what: "the body is not a problem report".to_owned(),
        },
    }
}
