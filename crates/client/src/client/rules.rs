//! `rules.*`: which requests are limited how.

use tollkeeper_wire::{
    ApplyRulesReply, ApplyRulesRequest, DeleteRuleReply, DeleteRuleRequest, GetRuleRequest,
    ListRulesRequest, RollbackRulesRequest, Rule, RuleReply,
};

use crate::client::{Client, Page};
use crate::error::ClientError;

impl Client {
    pub async fn apply_rules(
        &self,
        ask: &ApplyRulesRequest,
    ) -> Result<ApplyRulesReply, ClientError> {
        self.call("rules.apply", ask).await
    }

    pub async fn list_rules(&self, ask: &ListRulesRequest<'_>) -> Result<Page<Rule>, ClientError> {
        self.page("rules.list", ask).await
    }

    pub async fn get_rule(&self, ask: &GetRuleRequest<'_>) -> Result<RuleReply, ClientError> {
        self.call("rules.get", ask).await
    }

    pub async fn delete_rule(
        &self,
        ask: &DeleteRuleRequest<'_>,
    ) -> Result<DeleteRuleReply, ClientError> {
        self.call("rules.delete", ask).await
    }

    pub async fn roll_rules_back(
        &self,
        ask: &RollbackRulesRequest,
    ) -> Result<ApplyRulesReply, ClientError> {
        self.call("rules.rollback", ask).await
    }
}
