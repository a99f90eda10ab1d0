-- Computes open time minute by minute, without awty's functions. The array shut has the closed minutes of each day in
-- UTC.
CREATE FUNCTION camp.is_open(t timestamptz, shut integer[]) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN NOT (floor(extract(epoch FROM t) / 60)::bigint % 1440)::integer = ANY (shut);

CREATE FUNCTION camp.opened(t timestamptz, shut integer[]) RETURNS timestamptz STRICT LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    WHILE NOT camp.is_open(t, shut) LOOP
        t := to_timestamp(floor(extract(epoch FROM t) / 60) * 60 + 60);
    END LOOP;
    RETURN t;
END $$;

-- Returns the first time at which the open time since t reaches the length.
CREATE FUNCTION camp.later(t timestamptz, length interval, shut integer[]) RETURNS timestamptz STRICT LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE edge timestamptz;
BEGIN
    LOOP
        edge := to_timestamp(floor(extract(epoch FROM t) / 60) * 60 + 60);
        IF camp.is_open(t, shut) THEN
            IF length <= edge - t THEN RETURN t + length; END IF;
            length := length - (edge - t);
        END IF;
        t := edge;
    END LOOP;
END $$;

-- Returns the last time from which the open time until t is the length.
CREATE FUNCTION camp.earlier(t timestamptz, length interval, shut integer[]) RETURNS timestamptz STRICT LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE edge timestamptz;
BEGIN
    LOOP
        edge := to_timestamp(ceil(extract(epoch FROM t) / 60) * 60 - 60);
        IF camp.is_open(edge, shut) THEN
            IF length <= t - edge THEN RETURN t - length; END IF;
            length := length - (t - edge);
        END IF;
        t := edge;
    END LOOP;
END $$;

CREATE FUNCTION camp.open_time(since timestamptz, until timestamptz, shut integer[]) RETURNS interval STRICT LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    sum interval := '0';
    edge timestamptz;
BEGIN
    WHILE since < until LOOP
        edge := least(until, to_timestamp(floor(extract(epoch FROM since) / 60) * 60 + 60));
        IF camp.is_open(since, shut) THEN sum := sum + (edge - since); END IF;
        since := edge;
    END LOOP;
    RETURN sum;
END $$;
