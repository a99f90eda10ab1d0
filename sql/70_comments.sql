-- awty, part 7: what each object is, for \d+, \df+ and everything else that shows comments.

COMMENT ON SCHEMA awty IS 'Are we there yet? Jobs, their pending checks and the history, with the functions that change them';

-- awty.job

COMMENT ON TABLE awty.job IS 'What is registered: one row per job; awty.register() and awty.alter() write it';
COMMENT ON COLUMN awty.job.name IS 'Name of the job, 1 to 63 bytes';
COMMENT ON COLUMN awty.job.function_schema IS 'Schema of its function';
COMMENT ON COLUMN awty.job.function_name IS 'Name of its function; looked up again, with its exact signature, at each run';
COMMENT ON COLUMN awty.job.role IS 'Runs as this role, with its rights and no more';
COMMENT ON COLUMN awty.job.set_based IS 'The function takes an array of checks and answers with an array of times';
COMMENT ON COLUMN awty.job.slot IS 'A coarser slot for this job, a multiple of awty.slot; NULL: awty.slot';
COMMENT ON COLUMN awty.job.timeout IS 'Time of one run, 1 ms to 1 day; then it is cancelled, and ended if it ignores that';
COMMENT ON COLUMN awty.job.max_checks IS 'Checks in all, 1 to 1000000; asking for more ends a check as exhausted';
COMMENT ON COLUMN awty.job.max_horizon IS 'Furthest ahead that a check may lie, 1 s to 36525 days';
COMMENT ON COLUMN awty.job.max_attempts IS 'Failed runs in a row, 1 to 1000, before a check ends as failed or timed_out';
COMMENT ON COLUMN awty.job.retry_after IS 'Wait after a failed run, 1 ms to 366 days, doubled each time, at slots';
COMMENT ON COLUMN awty.job.on_missed IS 'A slot that passed while nothing could run: run it late, move it to the next_slot, or skip it (ends as missed)';
COMMENT ON COLUMN awty.job.max_lateness IS 'A check later than this ends as expired instead of running, 1 us to 36525 days; NULL: never';
COMMENT ON COLUMN awty.job.keep_history IS 'Which finished checks are archived: all, those that ran at least once, or none';
COMMENT ON COLUMN awty.job.allowed IS 'Roles that may schedule the job, besides members of its own; see awty.allow()';
COMMENT ON COLUMN awty.job.paused IS 'No runs until awty.resume()';
COMMENT ON COLUMN awty.job.resumed_at IS 'When it was last resumed; slots before that were missed';
COMMENT ON COLUMN awty.job.registered_by IS 'Who registered it';
COMMENT ON COLUMN awty.job.registered_at IS 'When it was registered';

-- awty.future_job

COMMENT ON TABLE awty.future_job IS 'What is pending, and nothing else: one row per check; a job function is given its row';
COMMENT ON COLUMN awty.future_job.id IS 'Number of the check, never used again, also not by the check that replaces this one';
COMMENT ON COLUMN awty.future_job.job IS 'Name of the job that asks';
COMMENT ON COLUMN awty.future_job.entity_name IS 'What is asked about, usually a table; 1 to 255 bytes';
COMMENT ON COLUMN awty.future_job.entity_key IS 'Which one, usually its primary key as text; 1 to 1024 bytes';
COMMENT ON COLUMN awty.future_job.args IS 'Passed through to the function; at most 1 MB';
COMMENT ON COLUMN awty.future_job.first_check_at IS 'The first slot; never changes';
COMMENT ON COLUMN awty.future_job.next_check_at IS 'The slot at which the check is due';
COMMENT ON COLUMN awty.future_job.check_count IS 'Checks done before this one';
COMMENT ON COLUMN awty.future_job.attempt IS 'Failed runs in a row';
COMMENT ON COLUMN awty.future_job.held IS 'Not run until awty.release(): it was running each time the server went down, awty.max_crashes times';
COMMENT ON COLUMN awty.future_job.scheduled_by IS 'Who scheduled it';
COMMENT ON COLUMN awty.future_job.scheduled_at IS 'When it was scheduled';
COMMENT ON SEQUENCE awty.future_job_id_seq IS 'Numbers of checks';

-- awty.future_job_history

COMMENT ON TABLE awty.future_job_history IS 'What is finished: one row per check, written in the transaction that ends it; kept for awty.history_retention';
COMMENT ON TABLE awty.future_job_history_default IS 'History of days that have no partition of their own';
COMMENT ON COLUMN awty.future_job_history.id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty.future_job_history.job IS 'Name of the job that asked';
COMMENT ON COLUMN awty.future_job_history.entity_name IS 'What was asked about';
COMMENT ON COLUMN awty.future_job_history.entity_key IS 'Which one';
COMMENT ON COLUMN awty.future_job_history.args IS 'What was passed to the function';
COMMENT ON COLUMN awty.future_job_history.first_check_at IS 'The first slot';
COMMENT ON COLUMN awty.future_job_history.next_check_at IS 'The last slot at which the check was due';
COMMENT ON COLUMN awty.future_job_history.scheduled_by IS 'Who scheduled it';
COMMENT ON COLUMN awty.future_job_history.scheduled_at IS 'When it was scheduled';
COMMENT ON COLUMN awty.future_job_history.started_at IS 'Start of the last run; NULL: it never ran';
COMMENT ON COLUMN awty.future_job_history.finished_at IS 'End of the last run, or when the check ended without one';
COMMENT ON COLUMN awty.future_job_history.run_time IS 'Time of all its runs together';
COMMENT ON COLUMN awty.future_job_history.lateness IS 'Start of the last run minus its slot; NULL: it never ran';
COMMENT ON COLUMN awty.future_job_history.check_count IS 'Checks done';
COMMENT ON COLUMN awty.future_job_history.attempts IS 'Runs in all, failed ones too';
COMMENT ON COLUMN awty.future_job_history.outcome IS 'Why it ended: done, cancelled, replaced, exhausted, past, beyond_horizon, failed, timed_out, missed or expired';
COMMENT ON COLUMN awty.future_job_history.sqlstate IS 'SQLSTATE of the last error, where an error ended it';
COMMENT ON COLUMN awty.future_job_history.message IS 'Message of the last error, cut at 4096 bytes';
COMMENT ON COLUMN awty.future_job_history.role IS 'Role of the job, which may read this row also when the job is gone';

-- What awty keeps for itself

COMMENT ON TABLE awty.tally IS 'What pending checks have used so far';
COMMENT ON COLUMN awty.tally.check_id IS 'Number of the check, as in awty.future_job';
COMMENT ON COLUMN awty.tally.runs IS 'Runs in all, failed ones too';
COMMENT ON COLUMN awty.tally.run_time IS 'Time of all its runs together';
COMMENT ON COLUMN awty.tally.started_at IS 'Start of the last run';
COMMENT ON COLUMN awty.tally.lateness IS 'Start of the last run minus its slot';
COMMENT ON COLUMN awty.tally.crashes IS 'How often in a row the server went down while this check was about to run or running';
COMMENT ON COLUMN awty.tally.exits IS 'How often in a row a run of this check ended its own process';
COMMENT ON TABLE awty.intent IS 'The checks that each worker is about to run; a row that outlives a crash names the suspects';
COMMENT ON COLUMN awty.intent.worker IS 'The worker''s seat in shared memory';
COMMENT ON COLUMN awty.intent.check_ids IS 'Numbers of the checks, as in awty.future_job';
COMMENT ON TABLE awty.origin IS 'Which database the rows of awty were written in; see awty.adopt()';
COMMENT ON COLUMN awty.origin.identity IS 'awty.identity there';
COMMENT ON COLUMN awty.origin.database IS 'OID of the database there';
COMMENT ON SEQUENCE awty.identity IS 'Random number of this installation, drawn once; pg_upgrade carries it along, a dump does not';

-- awty.status

COMMENT ON VIEW awty.status IS 'One row about this database: does awty run here, and how late is it?';
COMMENT ON COLUMN awty.status.database IS 'Name of the database';
COMMENT ON COLUMN awty.status.enabled IS 'awty.enabled';
COMMENT ON COLUMN awty.status.held IS 'Nothing runs: this database was restored or cloned and awaits awty.adopt()';
COMMENT ON COLUMN awty.status.why IS 'Why it is held, and what to do';
COMMENT ON COLUMN awty.status.slot IS 'awty.slot';
COMMENT ON COLUMN awty.status.last_slot_run IS 'The latest slot of which a check has run since the server started';
COMMENT ON COLUMN awty.status.lag IS 'How long the oldest overdue check has been waiting; 0 when none is';
COMMENT ON COLUMN awty.status.oldest_overdue IS 'The slot of that check; paused jobs and held checks do not count';
COMMENT ON COLUMN awty.status.pending IS 'Checks that wait, held ones too; counted up to 100000, beyond that estimated';
COMMENT ON COLUMN awty.status.held_checks IS 'Checks that await awty.release()';
COMMENT ON COLUMN awty.status.workers IS 'Worker processes of awty in this database now';
COMMENT ON COLUMN awty.status.last_error IS 'What last kept awty from running checks in this database';

-- Functions

COMMENT ON FUNCTION awty.register(text, text, interval, interval, integer, interval, integer, interval, text, interval, text, name)
    IS 'Registers a job: f(awty.future_job) returns timestamptz, or f(awty.future_job[]) returns timestamptz[]; NULL means done, a time means check again then';
COMMENT ON FUNCTION awty.alter(text, text, interval, interval, integer, interval, integer, interval, text, interval, text, name, text[])
    IS 'Changes options of a job: those given, and those named in reset back to their defaults; for members of its role';
COMMENT ON FUNCTION awty.unregister(text) IS 'Removes a job, archives its pending checks as cancelled and returns how many those were; for members of its role';
COMMENT ON FUNCTION awty.pause(text) IS 'Lets a job run no more until awty.resume(); for members of its role';
COMMENT ON FUNCTION awty.resume(text) IS 'Lets a paused job run again; what fell due meanwhile follows its on_missed; for members of its role';
COMMENT ON FUNCTION awty.allow(text, name) IS 'Lets a role schedule and cancel checks of a job; for members of the job''s role';
COMMENT ON FUNCTION awty.disallow(text, name) IS 'Takes back what awty.allow() gave; for members of the job''s role';
COMMENT ON FUNCTION awty.schedule(text, text, text, timestamptz, interval, jsonb, text)
    IS 'Schedules one check of an entity, at a time or after an interval from now(), rounded up to a slot; returns its id; on_conflict is replace, keep, earliest, latest or error';
COMMENT ON FUNCTION awty.cancel(text, text, text) IS 'Cancels the pending checks of an entity, of one job or of all that the caller may schedule; returns how many';
COMMENT ON FUNCTION awty.next_slot(timestamptz, text) IS 'The slot that a time rounds up to, of a job or of the server; of a past time, the next slot from now';
COMMENT ON FUNCTION awty.release(bigint) IS 'Lets a held check run again; for members of its job''s role';
COMMENT ON FUNCTION awty.adopt() IS 'Says that this restored or cloned database is the one to run its checks; for the owner of the database';
COMMENT ON FUNCTION awty.runtime() IS 'What awty''s processes know of this database; see awty.status';
COMMENT ON FUNCTION awty.job_changed() IS 'Tells every session that awty.job has changed; the trigger on that table calls it';
