//! Which run an operator means.

use std::borrow::Cow;

use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::routes::runs as routes;
use os_upgrade_api_types::routes::state::{self, State};

use crate::Failure;
use crate::rest::Client;

/// The shortest beginning of a run's id that stands for the id.
const ID_CHARS_MIN: usize = 8;
/// How many of the newest runs are searched for an id that begins so.
const SEARCHED_MAX: u32 = 500;

/// The ids of the newest runs.
async fn ids(client: &Client) -> anyhow::Result<Vec<String>> {
    let call = routes::LIST.call().with("keys", "true").with("limit", SEARCHED_MAX.to_string());
    Ok(client.read::<Page<String>>(call).await?.items)
}

/// The id of the active run, else of the last one. The state knows them before the history does.
pub(super) async fn newest(client: &Client) -> Result<String, Failure> {
    let fields = "current-upgrade-info/id,last-targeted-info/id,last-upgrade-info/id";
    let call = state::READ.call().with("fields", fields);
    let State { current_upgrade_info, last_upgrade_info, last_targeted_info, .. } = client.read(call).await?;
    let current = current_upgrade_info.map(|run| run.id);
    let ended = || last_targeted_info.or(last_upgrade_info).map(|run| run.id);
    let newest = current.or_else(ended).map(Cow::into_owned);
    newest.ok_or_else(|| anyhow::anyhow!("there has been no run").into())
}

/// The id that `named` stands for.
pub(super) async fn find(client: &Client, named: &str) -> Result<String, Failure> {
    if named == "last" {
        return newest(client).await;
    }
    let ids = ids(client).await?;
    matching(named, &ids).map_err(Failure::Usage)
}

/// The one of `ids` that begins with `named`; `named` itself if none does, since older runs are not searched.
fn matching(named: &str, ids: &[String]) -> Result<String, String> {
    if named.chars().count() < ID_CHARS_MIN {
        return Err(format!(
            "{named:?} is no run: give at least {ID_CHARS_MIN} characters of its id, or `last`; a host comes after it"
        ));
    }
    let mut found = ids.iter().filter(|id| id.starts_with(named));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(format!("several runs begin with {named:?}: give more of the id")),
        (Some(id), None) => Ok(id.clone()),
        (None, _) => Ok(named.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_by_the_beginning_of_their_id() {
        let ids = ["019aa3f0-0001-7000", "019aa3f0-0002-7000", "019bbbbb-0000-7000"].map(ToOwned::to_owned);
        let matching = |named| matching(named, &ids);
        assert_eq!(matching("019aa3f0-0002").as_deref(), Ok("019aa3f0-0002-7000"));
        assert_eq!(matching("019bbbbb").as_deref(), Ok("019bbbbb-0000-7000"));
        assert_eq!(matching("018ccccc-0000-7000").as_deref(), Ok("018ccccc-0000-7000"));
        assert!(matching("019aa3f0").unwrap_err().starts_with("several runs"));
        assert!(matching("019b").unwrap_err().contains("at least 8"));
    }
}
