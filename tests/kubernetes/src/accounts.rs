//! Tokens of service accounts. What roles allow an account is looked up when its token is issued.

use serde_json::{Value, json};

use crate::access::{Access, Rules};
use crate::failure::Failure;
use crate::resource::{ROLE_BINDINGS, ROLES};
use crate::store::{Key, Store};

/// Issues a token, with the rights that roles of its namespace give the account by now.
pub(crate) fn issue_token(access: &mut Access, store: &Store, account: &Key) -> Result<Value, Failure> {
    let Key { resource, namespace, name } = account;
    if store.get(account).is_none() {
        return Err(Failure::not_found(resource, name));
    }
    let user = format!("system:serviceaccount:{namespace}:{name}");
    let token = access.grant(&user, rules(store, namespace, name));
    Ok(json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": { "name": name, "namespace": namespace },
        "spec": {}, "status": { "token": token },
    }))
}

fn rules(store: &Store, namespace: &str, account: &str) -> Rules {
    let is_account = |subject: &Value| {
        (&subject["kind"], &subject["name"], &subject["namespace"])
            == (&json!("ServiceAccount"), &json!(account), &json!(namespace))
    };
    let has_account = |binding: &Value| {
        binding["subjects"].as_array().is_some_and(|subjects| subjects.iter().any(is_account))
    };
    let mut rules = Rules::default();
    for binding in store.list(ROLE_BINDINGS, Some(namespace)).iter().filter(|binding| has_account(binding)) {
        let role = &binding["roleRef"];
        let name = role["name"].as_str().filter(|_| role["kind"] == "Role").unwrap_or_default();
        if let Some(role) = store.get(&Key::new(ROLES, namespace, name)) {
            rules = rules.and(Rules::of_role(namespace, &role["rules"]));
        }
    }
    rules
}
