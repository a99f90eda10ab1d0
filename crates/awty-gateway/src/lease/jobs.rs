//! Finds the jobs from which the gateway may claim checks. A gateway whose role bypasses row security may claim none.

use super::aside::is_of_a_job;
use super::claims::PIECE;
use super::{Activity, Worker};
use crate::db::{Job, Trouble};
use crate::net::guard::addresses;

const NAMES: usize = 20;

impl Worker {
    pub(super) async fn refresh(&self) -> bool {
        let looked = async {
            let standing = self.db.standing().await?;
            let fit = standing.version.is_some() && standing.has_http && !standing.too_mighty;
            let jobs = if fit { self.db.jobs().await? } else { Vec::new() };
            Ok::<_, Trouble>((standing, self.claimable(jobs).await?))
        };
        let (standing, (jobs, refusal)) = match looked.await {
            Ok(found) => found,
            Err(trouble) => {
                self.in_trouble(Activity::Claims, &trouble);
                return false;
            }
        };
        let own = [self.caller.guard().own.clone(), self.db.addresses().await].concat();
        let mut guard = (*self.caller.guard()).clone();
        guard.own = own;
        guard.own.sort();
        guard.own.dedup();
        guard.here = addresses().or(guard.here);
        self.caller.set_guard(guard);
        let mut view = self.locked_view();
        if view.jobs != jobs {
            let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).take(NAMES).collect();
            tracing::info!(count = jobs.len(), jobs = names.join(", "), "these jobs are claimed");
        }
        view.refusal = refusal.filter(|_| jobs.is_empty());
        (view.jobs, view.standing) = (jobs, Some(standing));
        true
    }

    /// Returns the jobs whose checks the gateway can claim, and the error of one job that it left out. The gateway
    /// cannot claim a job's checks if it may not SET ROLE to the job's role.
    async fn claimable(&self, jobs: Vec<Job>) -> Result<(Vec<Job>, Option<String>), Trouble> {
        let (mut good, mut refusal) = (Vec::new(), None);
        for delivery in jobs.chunks(PIECE) {
            let names: Vec<String> = delivery.iter().map(|job| job.name.clone()).collect();
            match self.db.next_claim_in(&names).await {
                Ok(_) => good.extend_from_slice(delivery),
                Err(trouble) if !is_of_a_job(&trouble) => return Err(trouble),
                Err(_) => refusal = self.claimable_of(delivery, &mut good).await?.or(refusal),
            }
        }
        Ok((good, refusal))
    }

    async fn claimable_of(&self, jobs: &[Job], good: &mut Vec<Job>) -> Result<Option<String>, Trouble> {
        let mut refusal = None;
        for job in jobs {
            match self.db.next_claim_in(&[job.name.clone(), job.name.clone()]).await {
                Ok(_) => good.push(job.clone()),
                Err(trouble) if !is_of_a_job(&trouble) => return Err(trouble),
                Err(trouble) => {
                    tracing::warn!(job = job.name, %trouble, "this job cannot be claimed");
                    refusal = Some(trouble.to_string());
                }
            }
        }
        Ok(refusal)
    }
}
