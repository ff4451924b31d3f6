//! `tollkeeper projects`: what keys open, with its hosts and the limits of keys that have none of their own.

use clap::{Args, Subcommand};
use tollkeeper_client::wire::{
    CreateProjectRequest, DeleteProjectRequest, GetProjectRequest, ListProjectsRequest, Project,
    UpdateProjectRequest,
};

use crate::connection::Connection;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::flags::{self, LimitFlag, texts};
use crate::moment;
use crate::output::{self, printable};

/// Make, look at, change and delete projects
#[derive(Debug, Subcommand)]
#[command(after_help = help())]
pub(crate) enum Projects {
    /// Make a project
    Create(Create),
    /// List all projects
    List(List),
    /// Show one project
    Get(Get),
    /// Change a project; what is not named stays as it is
    Update(Update),
    /// Delete a project and all its keys
    Delete(Delete),
}

fn help() -> String {
    format!(
        "\
Examples:
  tollkeeper projects create \"My API\" --slug my-api
  tollkeeper projects create \"My API\" --default-limit per_minute=60/1m --allow-referer '*.example.com'
  tollkeeper projects list
  tollkeeper projects update my-api --protect on
  tollkeeper projects delete my-api --yes

{}",
        exit::HELP
    )
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Create {
    /// What people call it
    name: String,

    /// Its name in URLs; made from the name when left out
    #[arg(long)]
    slug: Option<String>,

    #[command(flatten)]
    hosts: Hosts,

    /// Refuse to delete it
    #[arg(long)]
    protect: bool,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
struct Hosts {
    /// A host whose pages may use its keys; may be given several times
    #[arg(long = "allow-referer", value_name = "HOST")]
    referers: Vec<String>,

    /// A site or program that may use its keys; may be given several times
    #[arg(long = "allow-source", value_name = "HOST")]
    sources: Vec<String>,

    /// A limit for keys without one: NAME=UNITS/TIME; may be given several times
    #[arg(long = "default-limit", value_name = "LIMIT")]
    limits: Vec<LimitFlag>,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct List {
    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Get {
    /// Its id or its slug
    project: String,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Update {
    /// Its id or its slug
    project: String,

    /// What people call it
    #[arg(long)]
    name: Option<String>,

    /// Its name in URLs
    #[arg(long)]
    slug: Option<String>,

    #[command(flatten)]
    hosts: Hosts,

    /// Whether deleting it is refused
    #[arg(long, value_name = "on|off", value_parser = switch)]
    protect: Option<bool>,

    #[command(flatten)]
    with: Answering,
}

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct Delete {
    /// Its id or its slug
    project: String,

    /// Say that all its keys may end with it
    #[arg(long, required = true)]
    yes: bool,

    #[command(flatten)]
    with: Answering,
}

/// Where the server is, and how its answer is printed.
#[derive(Debug, Args)]
struct Answering {
    /// Print the answer's data as JSON, a list as one object per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connection: Connection,
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

impl Projects {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Create(create) => create.run(),
            Self::List(list) => list.run(),
            Self::Get(get) => get.run(),
            Self::Update(update) => update.run(),
            Self::Delete(delete) => delete.run(),
        }
    }
}

impl Create {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let mut ask = CreateProjectRequest::new(self.name.as_str().into());
            ask.slug = self.slug.as_deref().map(Into::into);
            ask.allowed_referers = texts(&self.hosts.referers);
            ask.allowed_sources = texts(&self.hosts.sources);
            ask.default_limits = self.hosts.default_limits();
            ask.delete_protection = self.protect;
            let made = client.create_project(&ask).await?;
            if self.with.json {
                output::json(&made)?;
            } else {
                output::record(&[
                    ("project_id", printable(&made.api_id)),
                    ("slug", printable(&made.slug)),
                ])?;
            }
            Ok(Exit::Done)
        })
    }
}

impl Hosts {
    fn default_limits(&self) -> Option<Vec<tollkeeper_client::wire::DefaultLimit<'_>>> {
        let limits: Vec<_> = self.limits.iter().map(LimitFlag::project_default).collect();
        (!limits.is_empty()).then_some(limits)
    }
}

impl List {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let (mut ask, mut rows) = (ListProjectsRequest::default(), Vec::new());
            loop {
                let page = client.list_projects(&ask).await?;
                if self.with.json {
                    page.rows.iter().try_for_each(output::json)?;
                } else {
                    rows.extend(page.rows.iter().map(row));
                }
                let Some(next) = page.next else { break };
                ask.cursor = Some(next.into());
            }
            output::records(&rows)?;
            Ok(Exit::Done)
        })
    }
}

impl Get {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let ask = GetProjectRequest::new(self.project.as_str().into());
            let project = client.get_project(&ask).await?;
            if self.with.json {
                output::json(&project)?;
            } else {
                output::details(&details(&project))?;
            }
            Ok(Exit::Done)
        })
    }
}

impl Update {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let api_id = flags::project_id(&client, &self.project).await?;
            let mut ask = UpdateProjectRequest::new(api_id.as_str().into());
            ask.name = self.name.as_deref().map(Into::into);
            ask.slug = self.slug.as_deref().map(Into::into);
            ask.allowed_referers = texts(&self.hosts.referers);
            ask.allowed_sources = texts(&self.hosts.sources);
            ask.default_limits = self.hosts.default_limits();
            ask.delete_protection = self.protect;
            client.update_project(&ask).await?;
            self.with.told(&api_id, "updated")
        })
    }
}

impl Delete {
    fn run(&self) -> Result<Exit, Failure> {
        self.with.connection.talk(async |client| {
            let api_id = flags::project_id(&client, &self.project).await?;
            client.delete_project(&DeleteProjectRequest::new(api_id.as_str().into())).await?;
            self.with.told(&api_id, "deleted")
        })
    }
}

impl Answering {
    fn told(&self, api_id: &str, state: &str) -> Result<Exit, Failure> {
        if self.json {
            output::json(&serde_json::json!({}))?;
        } else {
            output::record(&[("project_id", printable(api_id)), ("state", state.to_owned())])?;
        }
        Ok(Exit::Done)
    }
}

fn row(project: &Project<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("project_id", printable(&project.api_id)),
        ("slug", printable(&project.slug)),
        ("name", printable(&project.name)),
        ("protected", project.delete_protection.to_string()),
        ("created", moment::shown(Some(project.created_at))),
    ]
}

fn details(project: &Project<'_>) -> Vec<(&'static str, String)> {
    let mut details = row(project);
    details.push(("allowed_referers", printable(&project.allowed_referers.join(","))));
    details.push(("allowed_sources", printable(&project.allowed_sources.join(","))));
    let limits = project.default_limits.iter();
    let limits: Vec<_> = limits
        .map(|limit| format!("{}={}/{}ms", limit.name, limit.limit, limit.duration))
        .collect();
    details.push(("default_limits", printable(&limits.join(","))));
    details.retain(|(_, value)| !value.is_empty());
    details
}
