//! Says in a banner why a list of late or due work may be incomplete.

use super::fail::Fail;
use super::parts::{Mark, is_late, mark, remedy};
use super::visit::Reading;
use super::words::{absolute, moment};
use crate::db::views;
use maud::{Markup, html};
use serde_json::Value;

pub struct Stop(Value);

impl Stop {
    pub async fn read(reading: &Reading) -> Result<Self, Fail> {
        Ok(Stop(views::stop(reading).await?))
    }

    /// `database` is the state of the database that the visit has read already.
    pub async fn of(reading: &Reading, mut database: Value) -> Result<Self, Fail> {
        database["behind"] = views::rules_behind(reading).await?;
        Ok(Stop(database))
    }

    fn is_off(&self) -> bool {
        self.0["enabled"] == false || self.0["held"] == true
    }

    pub fn why(&self) -> Option<&str> {
        self.0["why"].as_str()
    }

    /// Returns a time as text. Rows that became late after the returned time may have no alert yet.
    pub fn behind(&self) -> Option<String> {
        let behind = &self.0["behind"];
        let lasts = self.why().is_some() || is_late(behind);
        moment(behind).filter(|_| lasts).map(|at| absolute(at, crate::clock::now()))
    }

    pub fn banner(&self) -> Markup {
        self.with(None)
    }

    /// Returns the banner. `list` says which list may be incomplete, such as "this list".
    pub fn banner_of(&self, list: &str) -> Markup {
        let sentence = match self.behind() {
            Some(since) => Some(format!("Rows that became late since {since} are not in {list}.")),
            None if self.is_off() => Some(format!("Rows that become late meanwhile are not in {list}.")),
            None => None,
        };
        self.with(sentence)
    }

    fn with(&self, sentence: Option<String>) -> Markup {
        html! {
            @if self.why().is_some() || sentence.is_some() {
                section.notice role="status" {
                    p {
                        @if let Some(why) = self.why() { (mark(Mark::Bad, "Something is stopped:")) " " (why) ". " }
                        @else { (mark(Mark::Late, "Checks of rules wait:")) " a worker has not run them yet. " }
                        @if let Some(sentence) = sentence { (sentence) }
                    }
                    @if let Some(fix) = self.0["fix"].as_str() { (remedy(fix)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_says_since_when_it_is_incomplete() {
        let told = |stop: Value| Stop(stop).banner_of("this list").into_string();
        let ago = |seconds| (crate::clock::now() - chrono::TimeDelta::seconds(seconds)).to_rfc3339();
        let off = told(json!({"why": "awty.enabled is off", "fix": "ALTER;", "enabled": false, "behind": ago(5)}));
        assert!(off.contains("awty.enabled is off. Rows that became late since "), "{off}");
        assert!(off.contains(" are not in this list.") && off.contains("<code>ALTER;</code>"), "{off}");
        let off = told(json!({"why": "awty.enabled is off", "enabled": false, "behind": null}));
        assert!(off.contains("Rows that become late meanwhile are not in this list."), "{off}");
        let standby = told(json!({"why": "this server is a standby", "fix": "checks run on its primary"}));
        assert!(standby.contains("<p>What to do: checks run on its primary.</p>"), "{standby}");
        let paused = told(json!({"why": "job \"mail\" is paused", "enabled": true, "behind": null}));
        assert!(paused.contains("is paused. </p>"), "{paused}");
        let busy = told(json!({"why": null, "enabled": true, "behind": ago(60)}));
        assert!(busy.contains("a worker has not run them yet. Rows that became late since "), "{busy}");
        assert_eq!(told(json!({"why": null, "enabled": true, "behind": ago(5)})), "");
        assert_eq!(Stop(json!({"why": null, "behind": ago(60)})).banner().into_string(), "");
    }
}
