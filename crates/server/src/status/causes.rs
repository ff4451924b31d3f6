//! What went wrong deeper down, as a refusal: the engine's errors and the store's. Their own text goes to the log.

use tollkeeper_decide::{OriginError, WarmError};
use tollkeeper_store::{Fault, StoreError};
use tollkeeper_wire::FieldError;

use super::Refusal;

impl From<WarmError> for Refusal {
    fn from(error: WarmError) -> Self {
        match error {
            WarmError::NamespaceMissing(name) => Self::NamespaceMissing(name),
            WarmError::NamespaceGone(name) => Self::NamespaceGone(name),
            WarmError::Forbidden { resource, id, action } => {
                Self::Forbidden { needs: format!("{resource}.{id}.{action}") }
            }
            WarmError::LimitUnknown(name) => Self::LimitUnknown(name),
            WarmError::TooManyLimits { most } => Self::TooManyLimits { most },
            WarmError::Origin(error) => error.into(),
        }
    }
}

impl From<FieldError> for Refusal {
    fn from(fault: FieldError) -> Self {
        Self::Fields(vec![fault])
    }
}

impl From<OriginError> for Refusal {
    fn from(error: OriginError) -> Self {
        match error {
            OriginError::Spared => Self::KeysFlooded,
            OriginError::NotReset => Self::NotReset,
            OriginError::NulText => Self::nul_text(),
            OriginError::Full(_) => Self::DiskFull(error.to_string()),
            OriginError::Silent(_) => Self::Unavailable(error.to_string()),
        }
    }
}

impl Refusal {
    /// Behind the checks of every text of a body: what slips past them is the caller's to mend all the same.
    fn nul_text() -> Self {
        Self::Fields(vec![FieldError::new(
            "body",
            "A text holds the character U+0000, which cannot be stored.",
            "Leave it out.",
        )])
    }

    /// What a store's refusal means for whoever asked about this override of this namespace.
    pub fn of_store(error: &StoreError, namespace: &str, identifier: &str) -> Self {
        match error {
            StoreError::NamespaceNotFound => Self::NamespaceMissing(namespace.to_owned()),
            StoreError::NamespaceGone => Self::NamespaceGone(namespace.to_owned()),
            StoreError::OverrideNotFound => Self::OverrideMissing(identifier.to_owned()),
            other => Self::from(other),
        }
    }
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NotFound { what, named } => {
                Self::NotFound { what: *what, named: named.clone() }
            }
            StoreError::Taken { what } => Self::Taken { what: *what },
            StoreError::Protected => Self::Protected,
            StoreError::Revoked => {
                Self::Precondition("This key was revoked for good: create another one.")
            }
            StoreError::OperatorKey => Self::Precondition(
                "The operator's key is the one in the settings: change it there.",
            ),
            StoreError::CreditsUnlimited => Self::Fields(vec![FieldError::new(
                "body",
                "This key has no limit on credits.",
                "Set a number of credits first.",
            )]),
            StoreError::CreditsBeyond { max } => Self::Fields(vec![FieldError::new(
                "body.value",
                format!("The key would have more than {max} credits, which is the most."),
                format!("Add less, or `set` it to at most {max}; `null` is without end."),
            )]),
            StoreError::TooManyRules { count, max } => Self::Fields(vec![FieldError::new(
                "body.rules",
                format!("There would be {count} rules in all, and a tenant has at most {max}."),
                "Delete some, put several limits into one rule, or send `prune`.",
            )]),
            StoreError::RulesTooLarge { bytes, max } => Self::Fields(vec![FieldError::new(
                "body.rules",
                format!("All rules would take {bytes} bytes, and a tenant's take at most {max}."),
                "Delete some, or write them shorter.",
            )]),
            other if other.is_of_the_disk() => Self::DiskFull(chain(other)),
            StoreError::Fault(Fault::NulText) => Self::nul_text(),
            other if other.is_transient() => Self::Unavailable(chain(other)),
            other => Self::Unexpected(chain(other)),
        }
    }
}

/// An error and everything below it, for the log.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_one_by_every_way_it_is_met() {
        let met = || StoreError::Fault(Fault::Full);
        for refusal in [Refusal::from(&met()), Refusal::from(OriginError::from(met()))] {
            assert!(matches!(refusal, Refusal::DiskFull(_)), "{refusal:?}");
        }
    }

    #[test]
    fn a_text_that_the_database_cannot_store_is_the_callers_mistake_by_every_way_it_is_met() {
        let met = || StoreError::Fault(Fault::NulText);
        for refusal in [Refusal::from(&met()), Refusal::from(OriginError::from(met()))] {
            assert!(
                matches!(&refusal, Refusal::Fields(faults) if faults.len() == 1),
                "{refusal:?}"
            );
        }
    }
}
