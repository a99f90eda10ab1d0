-- Adds thousands of checks far in the future (fillers) and removes them, so that the files of awty's tables grow and
-- shrink. Due checks (followers) have their rows between the fillers' rows.

-- The sum of this table is the number of pending fillers.
CREATE TABLE camp.bulk (checks bigint NOT NULL);

CREATE FUNCTION camp.filler(j awty.future_job) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO camp.bulk VALUES (-1);
    RETURN NULL;
END $$;

-- The first due check runs long, so that its worker still has other checks to run when a fault changes the table.
CREATE FUNCTION camp.fill(tag text, job text, fillers bigint, followers integer, nap float8) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    share bigint := fillers / greatest(followers, 1);
BEGIN
    FOR follower IN 1 .. greatest(followers, 1) LOOP
        IF followers > 0 THEN
            PERFORM camp.schedule('follower', tag || follower, 'erin_watch', 0,
                jsonb_build_object('act', 'ok', 'nap', CASE follower WHEN 1 THEN nap ELSE 0 END, 'again', 0), 'replace');
        END IF;
        PERFORM awty.schedule('filler', concat_ws(' ', tag, follower, n), job, after => '1 day')
        FROM generate_series(1, share) AS n;
    END LOOP;
    INSERT INTO camp.bulk VALUES (share * greatest(followers, 1));
END $$;

CREATE FUNCTION camp.empty() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    keys text[] := ARRAY(SELECT entity_key FROM awty.future_job WHERE entity_name = 'filler');
BEGIN
    INSERT INTO camp.bulk SELECT coalesce(-sum(awty.cancel('filler', key)), 0) FROM unnest(keys) AS key;
END $$;

GRANT SELECT, INSERT ON camp.bulk TO PUBLIC;
