//! `rules.*`: a tenant's rules, changed as a whole. A set of ten thousand is read and checked off the threads that answer,
//! and is in force on this node before its answer leaves.

mod diff;

use bytes::Bytes;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tollkeeper_store::{
    RuleRow, RuleText, RulesApplied, Run, Store, StoreError, Thing, Unlisted, Written,
};
use tollkeeper_wire as wire;
use wire::page::{cursor_at, named_by};

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::reply::Reply;
use super::route::RuleCall;
use super::stored::{bad_cursor, page_reply, page_rows};
use crate::rules::{Apply, CheckedRule, read_apply};
use crate::status::Refusal;

pub async fn handle(which: RuleCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        RuleCall::Apply => apply(call).await,
        RuleCall::List => list(call).await,
        RuleCall::Get => get(call).await,
        RuleCall::Delete => delete(call).await,
        RuleCall::Rollback => rollback(call).await,
    }
}

/// Who asks is known before a body of this size is read, whatever is wrong with it.
async fn apply(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let caller = call.caller().await?;
    permit(&caller, "rules", "*", "apply")?;
    let Wanted { texts, notes, prune, dry_run } = read(call).await?;
    let author = Author::new(call, &caller);
    let unlisted = if prune { Unlisted::Delete } else { Unlisted::Keep };
    let run = if dry_run { Run::Dry } else { Run::Real };
    let done = change(call, |store| async move {
        let done = store.apply_rules(author.by(), texts, unlisted, run).await?;
        let value = Told::new(done.value, notes);
        Ok::<_, StoreError>(Written { value, revision: done.revision })
    })
    .await?;
    done.reply(call, &caller.tenant.id).await
}

/// What changed, as text: that of ten thousand rules is written where nobody waits behind it.
struct Told {
    version: u64,
    text: serde_json::Result<Box<RawValue>>,
}

/// What a body asks for, ready to be stored.
struct Wanted {
    texts: Vec<RuleText>,
    notes: Vec<String>,
    prune: bool,
    dry_run: bool,
}

async fn read(call: &Call<'_>) -> Result<Wanted, Refusal> {
    let body = Bytes::copy_from_slice(call.body);
    let read = move || {
        let Apply { checked, prune, dry_run } = read_apply(&body)?;
        let texts = checked.rules.into_iter().map(text_of).collect();
        Ok::<_, Vec<wire::FieldError>>(Wanted { texts, notes: checked.notes, prune, dry_run })
    };
    let read = call.app.rules.changing().run(read).await;
    call.unless_wrong(read.map_err(|error| Refusal::Unexpected(error.to_string()))?)
}

/// As [`desk::write`] does it, but where long work belongs: between two words with the database thousands of rules are
/// compared.
async fn change<T, F>(call: &Call<'_>, work: impl FnOnce(Store) -> F) -> Result<T, Refusal>
where
    T: Send + 'static,
    F: Future<Output = Result<Written<T>, StoreError>> + Send + 'static,
{
    let (work, backstage) = (work(call.app.store.clone()), call.app.backstage.clone());
    let done = call.app.rules.changing().run(move || backstage.block_on(work)).await;
    let done = done.map_err(|error| Refusal::Unexpected(error.to_string()))?;
    let written = done.map_err(|error| desk::noted(call, &error))?;
    call.app.follow(written.revision).await;
    Ok(written.value)
}

fn text_of(checked: CheckedRule) -> RuleText {
    let CheckedRule { rule, text } = checked;
    RuleText {
        name: rule.name.to_string(),
        body: Value::Object(text).to_string(),
        priority: rule.priority,
        enabled: rule.enabled,
    }
}

async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListRulesRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rules", "*", "list")?;
    let from = request.cursor.as_deref().map(|text| named_by(text).ok_or_else(bad_cursor));
    let (tenant, from) = (caller.tenant.id.clone(), from.transpose()?.map(str::to_owned));
    let rows = page_rows(request.limit);
    let mut page =
        desk::read(
            call,
            |store| async move { store.list_rules(&tenant, from.as_deref(), rows).await },
        )
        .await?;
    page.next_cursor = page.next_cursor.as_deref().map(cursor_at);
    Ok(page_reply(call, &page, |row| wire::Rule(fields_of(&row.body))))
}

async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetRuleRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rules", "*", "get")?;
    let (tenant, name) = (caller.tenant.id.clone(), request.name.to_string());
    let found = desk::read(call, |store| async move { store.rule(&tenant, &name).await }).await?;
    let missing = || Refusal::not_found(Thing::Rule, &request.name);
    Ok(reply(call, shown(found.ok_or_else(missing)?)))
}

async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteRuleRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rules", "*", "delete")?;
    let (author, name) = (Author::new(call, &caller), request.name.to_string());
    let version =
        change(call, |store| async move { store.delete_rule(author.by(), &name).await }).await?;
    call.app.rules.reach(&caller.tenant.id, version).await;
    Ok(reply(call, wire::DeleteRuleReply { version }))
}

async fn rollback(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::RollbackRulesRequest = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "rules", "*", "rollback")?;
    let (author, version) = (Author::new(call, &caller), request.version);
    let done = change(call, |store| async move {
        let done = store.roll_rules_back(author.by(), version).await?;
        let value = Told::new(done.value, Vec::new());
        Ok::<_, StoreError>(Written { value, revision: done.revision })
    })
    .await?;
    done.reply(call, &caller.tenant.id).await
}

/// What is stored was checked when it was; were it not readable, it would show as empty.
fn fields_of(body: &str) -> Map<String, Value> {
    serde_json::from_str(body).unwrap_or_default()
}

fn shown(row: RuleRow) -> wire::RuleReply {
    let rule = fields_of(&row.body);
    let key_pattern = match rule.get("scope") {
        Some(Value::Array(scopes)) => {
            let words: Vec<_> = scopes.iter().filter_map(Value::as_str).collect();
            words.join("+")
        }
        Some(Value::String(scope)) => scope.clone(),
        _ => String::new(),
    };
    wire::RuleReply {
        rule,
        key_pattern,
        rule_id: row.id,
        version: row.version,
        created_at: row.created_at.0,
        updated_at: row.updated_at.map(|at| at.0),
        created_by: row.created_by,
    }
}

// === impl Told ===

impl Told {
    fn new(applied: RulesApplied, notes: Vec<String>) -> Self {
        let version = applied.version;
        Self { version, text: to_raw_value(&diff::reply(applied, notes)) }
    }

    /// Once the rules are in force on this node.
    async fn reply(self, call: &Call<'_>, tenant_id: &str) -> Result<Reply, Refusal> {
        call.app.rules.reach(tenant_id, self.version).await;
        let text = self.text.map_err(|error| Refusal::Unexpected(error.to_string()))?;
        Ok(reply(call, text))
    }
}
