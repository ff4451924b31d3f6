//! `projects.*`: projects with their hosts and default limits.

use tollkeeper_wire::{
    CreateProjectReply, CreateProjectRequest, DeleteProjectRequest, GetProjectRequest,
    ListProjectsRequest, Project, UpdateProjectRequest,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    pub async fn create_project(
        &self,
        ask: &CreateProjectRequest<'_>,
    ) -> Result<CreateProjectReply<'static>, ClientError> {
        self.call("projects.create", ask).await
    }

    pub async fn get_project(
        &self,
        ask: &GetProjectRequest<'_>,
    ) -> Result<Project<'static>, ClientError> {
        self.call("projects.get", ask).await
    }

    pub async fn list_projects(
        &self,
        ask: &ListProjectsRequest<'_>,
    ) -> Result<Page<Project<'static>>, ClientError> {
        self.page("projects.list", ask).await
    }

    pub async fn update_project(&self, ask: &UpdateProjectRequest<'_>) -> Result<(), ClientError> {
        self.done("projects.update", ask).await
    }

    pub async fn delete_project(&self, ask: &DeleteProjectRequest<'_>) -> Result<(), ClientError> {
        self.done("projects.delete", ask).await
    }
}
