//! `projects.*`: what keys are made for. Every change is in force before its answer leaves.

use tollkeeper_core::{HostPattern, Limit, Quota, Width};
use tollkeeper_store::{LimitTerms, NewProject, Project, ProjectPatch, Thing};
use tollkeeper_wire as wire;

use super::call::{Call, permit};
use super::desk::{self, Author, reply};
use super::ratelimit::limit_of;
use super::reply::Reply;
use super::route::ProjectCall;
use super::stored::{owned, page_reply, page_rows};
use super::verify::duration_ms;
use crate::status::Refusal;

/// Of a project that was not told otherwise: a key that somebody forgot about cannot be used without end.
const DEFAULT_LIMITS: [(&str, u64, u64); 2] =
    [("default_minute", 60, 60_000), ("default_day", 10_000, 86_400_000)];

pub async fn handle(which: ProjectCall, call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match which {
        ProjectCall::Create => create(call).await,
        ProjectCall::Get => get(call).await,
        ProjectCall::List => list(call).await,
        ProjectCall::Update => update(call).await,
        ProjectCall::Delete => delete(call).await,
    }
}

async fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::CreateProjectRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "projects", "*", "create")?;
    let (author, new) = (Author::new(call, &caller), new_project(&request)?);
    let protect = request.delete_protection.then_some(true);
    let made = desk::write(call, |store| async move {
        let made = store.create_project(author.by(), new).await?;
        if protect.is_none() {
            return Ok(made);
        }
        let patch = ProjectPatch { delete_protection: protect, ..ProjectPatch::default() };
        store.update_project(author.by(), &made.value.id, patch).await
    })
    .await?;
    Ok(reply(call, wire::CreateProjectReply { api_id: made.id.into(), slug: made.slug.into() }))
}

async fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::GetProjectRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    let (tenant, named) = (caller.tenant.clone(), request.project.to_string());
    let cache = call.app.cache.clone();
    let found = desk::read(call, |store| async move {
        match cache {
            Some(cache) => cache.project(&tenant, &named).await,
            None => store.project(&tenant.id, &named).await,
        }
    })
    .await?;
    // Whoever may not read it gets the same answer whether it is there or not.
    let id = found.as_ref().map_or(&*request.project, |project| &project.id);
    permit(&caller, "projects", id, "get")?;
    let missing = || Refusal::not_found(Thing::Project, &request.project);
    Ok(reply(call, shown(&found.ok_or_else(missing)?)))
}

async fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::ListProjectsRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "projects", "*", "list")?;
    let (tenant, cursor) = (caller.tenant.id.clone(), owned(request.cursor.as_ref()));
    let rows = page_rows(request.limit);
    let page = desk::read(call, |store| async move {
        store.list_projects(&tenant, cursor.as_deref(), rows).await
    })
    .await?;
    Ok(page_reply(call, &page, shown))
}

async fn update(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::UpdateProjectRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "projects", &request.api_id, "update")?;
    let (author, patch) = (Author::new(call, &caller), patch_of(&request)?);
    let id = request.api_id.to_string();
    desk::write(call, |store| async move { store.update_project(author.by(), &id, patch).await })
        .await?;
    Ok(reply(call, wire::Empty {}))
}

async fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let request: wire::DeleteProjectRequest<'_> = call.request()?;
    let caller = call.caller().await?;
    permit(&caller, "projects", &request.api_id, "delete")?;
    let (author, id) = (Author::new(call, &caller), request.api_id.to_string());
    desk::write(call, |store| async move { store.delete_project(author.by(), &id).await }).await?;
    Ok(reply(call, wire::Empty {}))
}

fn new_project(request: &wire::CreateProjectRequest<'_>) -> Result<NewProject, Refusal> {
    let limits = request.default_limits.as_deref().map(default_terms);
    Ok(NewProject {
        name: request.name.to_string(),
        slug: owned(request.slug.as_ref()),
        allowed_referers: hosts(request.allowed_referers.as_deref()).unwrap_or_default(),
        allowed_sources: hosts(request.allowed_sources.as_deref()).unwrap_or_default(),
        default_limits: limits.transpose()?.unwrap_or_else(usual_limits),
    })
}

fn patch_of(request: &wire::UpdateProjectRequest<'_>) -> Result<ProjectPatch, Refusal> {
    Ok(ProjectPatch {
        name: owned(request.name.as_ref()),
        slug: owned(request.slug.as_ref()),
        allowed_referers: hosts(request.allowed_referers.as_deref()),
        allowed_sources: hosts(request.allowed_sources.as_deref()),
        default_limits: request.default_limits.as_deref().map(default_terms).transpose()?,
        delete_protection: request.delete_protection,
    })
}

/// A limit of a project always applies by itself.
fn default_terms(limits: &[wire::DefaultLimit<'_>]) -> Result<Vec<LimitTerms>, Refusal> {
    let terms = |one: &wire::DefaultLimit<'_>| {
        let limit = limit_of(one.limit, one.duration, wire::Algorithm::default(), None)?;
        Ok(default_limit(&one.name, limit))
    };
    limits.iter().map(terms).collect()
}

fn default_limit(name: &str, limit: Limit) -> LimitTerms {
    let name = name.to_owned();
    LimitTerms { name, limit, auto_apply: true, consistency: None, on_outage: None }
}

fn usual_limits() -> Vec<LimitTerms> {
    let limit = |(name, quota, width): (&str, u64, u64)| {
        let limit = Limit::sliding_window(Quota::new(quota)?, Width::from_millis(width)?);
        Some(default_limit(name, limit))
    };
    DEFAULT_LIMITS.into_iter().filter_map(limit).collect()
}

/// The wire has checked their spelling.
fn hosts(given: Option<&[wire::Text<'_>]>) -> Option<Vec<HostPattern>> {
    given.map(|given| given.iter().filter_map(|host| HostPattern::parse(host)).collect())
}

fn shown(project: &Project) -> wire::Project<'_> {
    let spelled = |hosts: &[HostPattern]| -> Vec<Box<str>> {
        hosts.iter().map(|host| host.to_string().into()).collect()
    };
    wire::Project {
        api_id: project.id.as_str().into(),
        name: project.name.as_str().into(),
        slug: project.slug.as_str().into(),
        delete_protection: project.delete_protection,
        created_at: project.created_at.0,
        allowed_referers: spelled(&project.allowed_referers).into(),
        allowed_sources: spelled(&project.allowed_sources).into(),
        default_limits: project.default_limits.iter().map(shown_limit).collect(),
    }
}

fn shown_limit(terms: &LimitTerms) -> wire::DefaultLimitReply<'_> {
    wire::DefaultLimitReply {
        name: terms.name.as_str().into(),
        limit: terms.limit.quota.get(),
        duration: duration_ms(terms.limit.algorithm),
    }
}
