//! The rows of `projects.*`.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProjectCall {
    Create,
    Get,
    List,
    Update,
    Delete,
}

pub const ROUTES: &[Route] = &[
    change::<wire::CreateProjectRequest<'static>>(
        "/v2/projects.create",
        Endpoint::Projects(ProjectCall::Create),
        "projects.*.create",
        "Make a project: what keys belong to, with hosts that may use them and limits for keys without any.",
        Answers::Data(wire::CreateProjectReply::SHAPE),
    ),
    post::<wire::GetProjectRequest<'static>>(
        "/v2/projects.get",
        Endpoint::Projects(ProjectCall::Get),
        "projects.<api id|*>.get",
        "One project, by id or by slug.",
        Answers::Data(wire::Project::SHAPE),
    ),
    post::<wire::ListProjectsRequest<'static>>(
        "/v2/projects.list",
        Endpoint::Projects(ProjectCall::List),
        "projects.*.list",
        "All projects, page by page.",
        Answers::Page(wire::Project::SHAPE),
    ),
    change::<wire::UpdateProjectRequest<'static>>(
        "/v2/projects.update",
        Endpoint::Projects(ProjectCall::Update),
        "projects.<api id|*>.update",
        "Change a project; in force with the next verification.",
        Answers::Data(wire::Empty::SHAPE),
    ),
    change::<wire::DeleteProjectRequest<'static>>(
        "/v2/projects.delete",
        Endpoint::Projects(ProjectCall::Delete),
        "projects.<api id|*>.delete",
        "Delete a project; its keys are unknown from then on.",
        Answers::Data(wire::Empty::SHAPE),
    ),
];
