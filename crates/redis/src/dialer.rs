//! Opens a connection to one server: TCP, TLS if asked for, greeting in RESP3. Nothing is known of the server yet.
//! The sockets are our own, so that their settings, the one TLS provider and the end of a connection are in our hands.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, RedisConnectionInfo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::address::{Address, Login};
use crate::trouble::Trouble;
use crate::url::Tls;

/// The heartbeat finds a dead peer sooner; these are for the kernel, so that no half-open socket stays for hours.
const KEEPALIVE: Duration = Duration::from_secs(5);
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);

/// All it takes to connect to any server of one kind.
#[derive(Debug)]
pub(crate) struct Dialer {
    greeting: RedisConnectionInfo,
    tls: Option<Tls>,
    trusting: OnceCell<Arc<ClientConfig>>,
    deadline: Duration,
    queue: usize,
}

#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) driver: Driver,
}

/// The task that moves the bytes of a connection. Either ends with the other.
#[derive(Debug)]
pub(crate) struct Driver(JoinHandle<()>);

// === impl Dialer ===

impl Dialer {
    pub(crate) fn new(
        login: &Login,
        db: i64,
        tls: Option<Tls>,
        deadline: Duration,
        queue: usize,
    ) -> Self {
        let mut greeting = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_lib_name("tollkeeper", env!("CARGO_PKG_VERSION"))
            .set_db(db);
        if let Some(password) = &login.password {
            greeting = greeting
                .set_username(login.user.as_deref().unwrap_or("default"))
                .set_password(password);
        }
        Self { greeting, tls, trusting: OnceCell::new(), deadline, queue }
    }

    pub(crate) async fn dial(&self, address: &Address) -> Result<Dialled, Trouble> {
        self.dial_with(address, self.settings()).await
    }

    /// `hear` is called with every push message, from the task that moves the bytes: it must not wait.
    pub(crate) async fn dial_to_hear(
        &self,
        address: &Address,
        hear: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<Dialled, Trouble> {
        let heard = move |info| {
            hear(info);
            Ok::<(), ()>(())
        };
        self.dial_with(address, self.settings().set_push_sender(heard)).await
    }

    /// No deadlines of the library's: each call has its own.
    fn settings(&self) -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(self.queue)
    }

    async fn dial_with(
        &self,
        address: &Address,
        settings: AsyncConnectionConfig,
    ) -> Result<Dialled, Trouble> {
        // Outside of the deadline: the first time it reads the system's certificates from disk.
        let connector = self.connector().await?;
        let opened = timeout(self.deadline, self.open(address, connector, settings));
        opened.await.unwrap_or(Err(Trouble::Silent(self.deadline.as_millis())))
    }

    async fn open(
        &self,
        address: &Address,
        connector: Option<TlsConnector>,
        settings: AsyncConnectionConfig,
    ) -> Result<Dialled, Trouble> {
        let unreachable = |error: std::io::Error| Trouble::Unreachable(error.to_string());
        let host = address.host.as_str();
        let socket = TcpStream::connect((host, address.port)).await.map_err(unreachable)?;
        tune(&socket).map_err(unreachable)?;
        let Some(connector) = connector else {
            return self.greet(socket, settings).await;
        };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| Trouble::Tls(format!("{host}: {error}")))?;
        let encrypted = connector.connect(name, socket).await;
        self.greet(encrypted.map_err(|error| Trouble::Tls(error.to_string()))?, settings).await
    }

    async fn greet(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        settings: AsyncConnectionConfig,
    ) -> Result<Dialled, Trouble> {
        let (connection, driver) =
            MultiplexedConnection::new_with_config(&self.greeting, stream, settings).await?;
        Ok(Dialled { connection, driver: Driver(tokio::spawn(driver)) })
    }

    async fn connector(&self) -> Result<Option<TlsConnector>, Trouble> {
        let Some(Tls { ca }) = &self.tls else {
            return Ok(None);
        };
        let made = self.trusting.get_or_try_init(async || {
            let ca = ca.clone();
            let made = tokio::task::spawn_blocking(move || trusting(ca.as_deref())).await;
            made.unwrap_or_else(|error| Err(error.to_string())).map_err(Trouble::Tls)
        });
        Ok(Some(TlsConnector::from(made.await?.clone())))
    }
}

// === impl Driver ===

impl Driver {
    pub(crate) async fn ended(&mut self) {
        // A handle must not be asked again once it has answered. An error only says that it was aborted.
        if !self.0.is_finished() {
            let _ = (&mut self.0).await;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn tune(socket: &TcpStream) -> std::io::Result<()> {
    // Calls are small and each is waited for; Nagle would hold them back.
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))
}

fn trusting(ca: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots(ca)?)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let found = (!roots.is_empty()).then_some(roots);
        return found
            .ok_or_else(|| "this system has no CA certificates: name a file with ca=".into());
    };
    let unreadable = |why: String| format!("{}: {why}", path.display());
    let certificates =
        CertificateDer::pem_file_iter(path).map_err(|e| unreadable(e.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|e| unreadable(e.to_string()))?;
        roots.add(certificate).map_err(|e| unreadable(e.to_string()))?;
    }
    if roots.is_empty() { Err(unreadable("holds no certificate".into())) } else { Ok(roots) }
}
