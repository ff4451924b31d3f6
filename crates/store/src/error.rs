//! What a caller of the store can meet. Texts say what to do next and hold no SQL;
//! what the database itself said is the source, for logs only.

use std::path::PathBuf;

use tollkeeper_decide::OriginError;

use crate::Fault;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the database {} cannot be opened", path.display())]
    Unopenable {
        path: PathBuf,
        #[source]
        fault: Fault,
    },
    #[error(
        "the database {} is in use by another server: stop that one, or give this one a file of its own with \
         TOLLKEEPER_DATABASE_URL. Several servers share limits over Redis, each with its own file, or over PostgreSQL",
        path.display()
    )]
    FileInUse { path: PathBuf },
    #[error("the database at {at} cannot be used")]
    Unreachable {
        at: String,
        #[source]
        fault: Fault,
    },
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("this tenant has no {what} '{named}'")]
    NotFound { what: Thing, named: String },
    #[error("there is already {} {what} with this {}", what.article(), what.told_apart_by())]
    Taken { what: Thing },
    #[error("this project is protected against deletion: take deleteProtection off first")]
    Protected,
    #[error("this key was revoked for good; make another one")]
    Revoked,
    #[error("the operator's key is the one in the settings: change it there")]
    OperatorKey,
    #[error("this key has no limit on credits: set a number first")]
    CreditsUnlimited,
    #[error("a key has at most {max} credits, and these would be more")]
    CreditsBeyond { max: u64 },
    #[error("this tenant has no such namespace")]
    NamespaceNotFound,
    #[error("this namespace was deleted; its name cannot be used again")]
    NamespaceGone,
    #[error("this namespace has no override for exactly this identifier")]
    OverrideNotFound,
    #[error("this root key already belongs to somebody; give TOLLKEEPER_ROOT_KEY another value")]
    RootKeyTaken,
    #[error(
        "the database was written under another secret: give this node the TOLLKEEPER_SECRET of the nodes that use it, or a database of its own"
    )]
    OtherSecret,
    #[error("a tenant has at most {max} rules, and these would be {count}")]
    TooManyRules { count: usize, max: usize },
    #[error("the rules of a tenant take at most {max} bytes, and these would take {bytes}")]
    RulesTooLarge { bytes: usize, max: usize },
}

/// What was looked for, or is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    Tenant,
    Project,
    Key,
    Identity,
    Permission,
    Role,
    RootKey,
    Limit,
    Rule,
    RuleVersion,
}

// === impl Thing ===

impl Thing {
    pub fn article(self) -> &'static str {
        if self == Self::Identity { "an" } else { "a" }
    }

    /// What no two of them share, as the API calls it.
    pub fn told_apart_by(self) -> &'static str {
        match self {
            Self::Tenant | Self::Project | Self::Permission => "slug",
            Self::Identity => "externalId",
            Self::Key | Self::RootKey => "text",
            Self::Role | Self::Limit | Self::Rule => "name",
            Self::RuleVersion => "number",
        }
    }
}

impl std::fmt::Display for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tenant => "tenant",
            Self::Project => "project",
            Self::Key => "key",
            Self::Identity => "identity",
            Self::Permission => "permission",
            Self::Role => "role",
            Self::RootKey => "root key",
            Self::Limit => "limit",
            Self::Rule => "rule",
            Self::RuleVersion => "version of the rules",
        })
    }
}

// === impl StoreError ===

impl StoreError {
    /// The same call may succeed when it is made again.
    pub fn is_transient(&self) -> bool {
        self.fault().is_some_and(Fault::is_transient)
    }

    /// The disk under the database is full or fails.
    pub fn is_of_the_disk(&self) -> bool {
        self.fault().is_some_and(Fault::is_of_the_disk)
    }

    /// What was to be written can never be.
    pub fn is_of_the_rows(&self) -> bool {
        self.fault().is_some_and(Fault::is_of_the_rows)
    }

    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Unopenable { fault, .. }
            | Self::Unreachable { fault, .. }
            | Self::Fault(fault) => Some(fault),
            _ => None,
        }
    }

    pub(crate) fn no(what: Thing, named: &str) -> Self {
        Self::NotFound { what, named: named.to_owned() }
    }

    /// What it means where the only thing that can be in the way is another row of that name.
    pub(crate) fn taken_as(self, taken: Self) -> Self {
        match &self {
            Self::Fault(Fault::Database(sqlx::Error::Database(from)))
                if from.is_unique_violation() =>
            {
                taken
            }
            _ => self,
        }
    }

    pub(crate) fn taken(self, what: Thing) -> Self {
        self.taken_as(Self::Taken { what })
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Fault(error.into())
    }
}

impl From<StoreError> for OriginError {
    /// With all its causes: its text is for the log only.
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::Fault(Fault::NulText)) {
            return Self::NulText;
        }
        let causes = std::iter::successors(std::error::Error::source(&error), |it| it.source());
        let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        if error.is_of_the_disk() { Self::Full(text.into()) } else { Self::new(text) }
    }
}
