//! Who calls, with which rights, and what was called.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::failure::{Failure, about};
use crate::resource::{ALL, REVIEWS, Resource};

/// The user of calls without a token.
const ANONYMOUS: &str = "system:anonymous";

/// A call about objects, as RBAC sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The user.
    pub user: String,
    /// The verb, as in `list`.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource's plural.
    pub resource: &'static str,
    /// The subresource, as in `eviction`.
    pub subresource: Option<String>,
    /// The namespace, for calls within one.
    pub namespace: Option<String>,
    /// The object's name, for calls about one.
    pub name: Option<String>,
    /// Whether nothing was to be changed, which RBAC does not look at.
    pub is_dry_run: bool,
    /// The field selector, which RBAC does not look at; empty without one.
    pub field_selector: String,
}

impl Call {
    /// The resource as rules name it, as in `pods/eviction`.
    pub fn full_resource(&self) -> String {
        let subresource = self.subresource.iter().map(|name| format!("/{name}"));
        subresource.fold(self.resource.to_owned(), |all, name| all + &name)
    }
}

/// One rule of a role.
#[derive(Debug, Clone)]
struct Rule {
    groups: Vec<String>,
    resources: Vec<String>,
    verbs: Vec<String>,
    names: Vec<String>,
    /// The namespace of the role; none for a cluster role.
    namespace: Option<String>,
}

/// What roles allow.
#[must_use]
#[derive(Debug, Clone, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Every right.
    pub fn all() -> Self {
        Self::of_cluster_role(&json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]))
    }

    /// The `rules` of a `ClusterRole`.
    pub fn of_cluster_role(rules: &Value) -> Self {
        Self::parse(rules, None)
    }

    /// The `rules` of a `Role` in this namespace.
    pub fn of_role(namespace: &str, rules: &Value) -> Self {
        Self::parse(rules, Some(namespace))
    }

    fn parse(rules: &Value, namespace: Option<&str>) -> Self {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let rule = |rule: &Value| Rule {
            groups: texts(&rule["apiGroups"]),
            resources: texts(&rule["resources"]),
            verbs: texts(&rule["verbs"]),
            names: texts(&rule["resourceNames"]),
            namespace: namespace.map(str::to_owned),
        };
        Self(rules.as_array().expect("a list of rules").iter().map(rule).collect())
    }

    /// These rules and others.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether they allow a call.
    pub fn allow(&self, call: &Call) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|item| item == "*" || item == word);
        let any_of_subresource = call.subresource.iter().map(|name| format!("*/{name}")).next();
        self.0.iter().any(|rule| {
            has(&rule.groups, call.group)
                && (has(&rule.resources, &call.full_resource())
                    || any_of_subresource.as_ref().is_some_and(|word| has(&rule.resources, word)))
                && has(&rule.verbs, call.verb)
                && (rule.names.is_empty() || call.name.as_ref().is_some_and(|name| rule.names.contains(name)))
                && (rule.namespace.is_none() || rule.namespace == call.namespace)
        })
    }
}

#[derive(Debug)]
struct User {
    token: String,
    rules: Rules,
}

/// Users, their tokens and rights, and the calls so far.
#[derive(Debug, Default)]
pub(crate) struct Access {
    users: BTreeMap<String, User>,
    calls: Vec<Call>,
}

impl Access {
    /// Adds a user with these rights, or replaces the rights of one. Returns the token.
    pub(crate) fn grant(&mut self, name: &str, rules: Rules) -> String {
        let user = User { token: new_token(name), rules: Rules::default() };
        let user = self.users.entry(name.to_owned()).or_insert(user);
        user.rules = rules;
        user.token.clone()
    }

    /// Makes the user's token invalid and returns the next one, which has not been handed to anybody.
    pub(crate) fn renew_token(&mut self, name: &str) -> String {
        let user = self.users.get_mut(name).expect("a known user");
        user.token = new_token(name);
        user.token.clone()
    }

    /// The user of an `authorization` header; [`None`] without one.
    pub(crate) fn authenticate(&self, authorization: Option<&str>) -> Result<String, Failure> {
        let Some(authorization) = authorization else { return Ok(ANONYMOUS.to_owned()) };
        let token = authorization.strip_prefix("Bearer ").ok_or_else(Failure::unauthorized)?;
        let found = self.users.iter().find(|(_, user)| user.token == token);
        found.map(|(name, _)| name.clone()).ok_or_else(Failure::unauthorized)
    }

    /// Records a call of an object, and refuses it to those without the right.
    pub(crate) fn authorize(&mut self, call: &Call, resource: &Resource) -> Result<(), Failure> {
        self.calls.push(call.clone());
        let is_review = *resource == REVIEWS && call.verb == "create";
        let is_allowed = self.users.get(&call.user).is_some_and(|user| is_review || user.rules.allow(call));
        if is_allowed { Ok(()) } else { Err(forbidden(call, resource)) }
    }

    /// The review of the rights of `user` that it asks for.
    pub(crate) fn review(&self, user: &str, mut review: Value) -> Value {
        const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let asked = &review["spec"]["resourceAttributes"];
        let text = |key: &str| asked[key].as_str().filter(|text| !text.is_empty());
        let known = |known: &&Resource| {
            known.group == text("group").unwrap_or_default() && Some(known.plural) == text("resource")
        };
        let call = || {
            let resource = ALL.iter().find(known)?;
            Some(Call {
                user: user.to_owned(),
                verb: VERBS.into_iter().find(|verb| Some(*verb) == text("verb"))?,
                group: resource.group,
                resource: resource.plural,
                subresource: text("subresource").map(str::to_owned),
                namespace: text("namespace").map(str::to_owned),
                name: text("name").map(str::to_owned),
                is_dry_run: false,
                field_selector: String::new(),
            })
        };
        let rules = self.users.get(user).map(|user| &user.rules);
        let is_allowed = call().zip(rules).is_some_and(|(call, rules)| rules.allow(&call));
        review["status"] = json!({ "allowed": is_allowed });
        review
    }

    /// The calls so far, those that were refused included.
    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Forgets the calls so far.
    pub(crate) fn forget_calls(&mut self) {
        self.calls.clear();
    }
}

/// Refuses a path that is no object's to callers without a token.
pub(crate) fn authorize_path(user: &str, path: &str) -> Result<(), Failure> {
    if user == ANONYMOUS {
        let message = format!("forbidden: User \"{user}\" cannot get path \"{path}\"");
        return Err(Failure::new(403, "Forbidden", message).details(json!({})));
    }
    Ok(())
}

fn new_token(name: &str) -> String {
    format!("{name}.{}", Uuid::new_v4().simple())
}

/// 403, as RBAC words it.
pub(crate) fn forbidden(call: &Call, resource: &Resource) -> Failure {
    let name = call.name.clone().unwrap_or_default();
    let what =
        if name.is_empty() { resource.qualified() } else { format!("{} \"{name}\"", resource.qualified()) };
    let place = match &call.namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let message = format!(
        "{what} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {place}",
        call.user,
        call.verb,
        call.full_resource(),
        call.group
    );
    Failure::new(403, "Forbidden", message).details(about(resource, resource.plural, &name))
}
