//! From a tag to the link of the server that has it, in each layout.

use std::sync::Arc;

use crate::address::Address;
use crate::cluster::Cluster;
use crate::dialer::Dialer;
use crate::error::{CallError, Refusal};
use crate::link::{Link, Plan, ServerView};
use crate::live::{Answer, Manner};
use crate::ring::Ring;
use crate::sentinel::Sentinel;
use crate::tags::{At, Tags};
use crate::url::{Layout, RedisUrl};

#[derive(Debug)]
pub(crate) enum Route {
    Single(Arc<Link>),
    Sentinel(Sentinel),
    Cluster(Cluster),
    Ring { ring: Ring, links: Vec<Arc<Link>> },
}

// === impl Route ===

impl Route {
    pub(crate) fn start(url: &RedisUrl, plan: &Arc<Plan>) -> Self {
        match &url.layout {
            Layout::Single(address) => Self::Single(lone(plan, address, Tags::all())),
            Layout::Sentinel { sentinels, name, login } => {
                let deadline = plan.options.connect_deadline;
                let dialer = Dialer::new(login, 0, url.tls.clone(), deadline, 1);
                Self::Sentinel(Sentinel::start(plan, sentinels.clone(), name.clone(), dialer))
            }
            Layout::Cluster(seeds) => Self::Cluster(Cluster::start(plan, seeds.clone())),
            Layout::Ring(servers) => {
                let ring = Ring::new(servers);
                let tags = |place| At::all().filter(|at| ring.place(*at) == Some(place)).collect();
                let link = |(place, server)| lone(plan, server, tags(place));
                let links = servers.iter().enumerate().map(link).collect();
                Self::Ring { ring, links }
            }
        }
    }

    pub(crate) fn link(&self, at: At) -> Option<Arc<Link>> {
        match self {
            Self::Single(link) => Some(link.clone()),
            Self::Sentinel(sentinel) => Some(sentinel.link.clone()),
            Self::Cluster(cluster) => cluster.link(at),
            Self::Ring { ring, links } => links.get(ring.place(at)?).cloned(),
        }
    }

    /// Where a redirect leads; a value that is no redirect, or one outside of a cluster, is the end.
    pub(crate) fn follow(&self, at: At, answer: Answer) -> Result<Followed, CallError> {
        match (self, answer) {
            (_, Answer::Value(value)) => Ok(Followed::Value(value)),
            (Self::Cluster(cluster), Answer::Moved { slot, to }) => {
                let (link, manner) = cluster.moved(at, slot, &to);
                Ok(Followed::Elsewhere(link, manner))
            }
            (Self::Cluster(cluster), Answer::Ask { to }) => {
                Ok(Followed::Elsewhere(cluster.asked(&to), Manner::Asking))
            }
            (_, elsewhere) => elsewhere.into_value().map(Followed::Value),
        }
    }

    /// What a failed call says about the map.
    pub(crate) fn note(&self, error: &CallError) {
        if let Self::Cluster(cluster) = self
            && matches!(error, CallError::Refused(Refusal::ClusterDown(_) | Refusal::ReadOnly))
        {
            cluster.doubt();
        }
    }

    /// By address, so that a list of them keeps its order.
    pub(crate) fn servers(&self) -> Vec<ServerView> {
        let mut views: Vec<ServerView> = match self {
            Self::Single(link) => vec![link.view()],
            Self::Sentinel(sentinel) => vec![sentinel.link.view()],
            Self::Cluster(cluster) => cluster.links().iter().map(|link| link.view()).collect(),
            Self::Ring { links, .. } => links.iter().map(|link| link.view()).collect(),
        };
        if let Self::Cluster(cluster) = self
            && views.is_empty()
        {
            views.push(ServerView { trouble: cluster.trouble(), ..ServerView::default() });
        }
        views.sort_by(|one, other| one.address.cmp(&other.address));
        views
    }
}

/// Where a call goes on, or that it is done.
#[derive(Debug)]
pub(crate) enum Followed {
    Value(redis::Value),
    Elsewhere(Arc<Link>, Manner),
}

/// A server that nobody moves: who is told of its loss does not matter.
fn lone(plan: &Arc<Plan>, address: &Address, tags: Tags) -> Arc<Link> {
    Link::start(plan, Some(address.clone()), tags, Arc::default())
}
