//! What this node knows of a key's credits and storage does not yet: told before anybody looks at the balance,
//! given back before somebody lowers it.

use super::super::call::Call;
use crate::status::Refusal;

/// As many keys as are told of in one round anyway. Where more than these spend between two rounds, a balance
/// is true a second later.
const REPORTS_MAX: usize = 1_000;

/// Whoever reads the balance afterwards has a true one. What is in hand here goes on being spent.
pub async fn tell(call: &Call<'_>, key_id: &str) -> Result<(), Refusal> {
    let purse = call.app.decider.purse();
    if purse.look(key_id).spent > 0 {
        purse.report(REPORTS_MAX, call.now).await?;
    }
    Ok(())
}

/// Whoever raises the balance afterwards has a true one, and nobody who is being served meanwhile is refused.
/// Where nothing is left there is nobody to refuse, and that nothing is left must be forgotten.
pub async fn before_more(call: &Call<'_>, key_id: &str) -> Result<(), Refusal> {
    call.app.decider.purse().forget_empty(key_id).await?;
    tell(call, key_id).await
}

/// Whoever sets or lowers the balance afterwards has all of it: nothing is spent here on top of the new one.
pub async fn give_back(call: &Call<'_>, key_id: &str) -> Result<(), Refusal> {
    Ok(call.app.decider.purse().give_back(key_id).await?)
}
