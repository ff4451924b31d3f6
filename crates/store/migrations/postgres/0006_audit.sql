-- What was decided, row by row, and a chain that shows what was changed in the admin audit behind our back.

-- Times are unix ms. Who asks again after a lost answer writes the same row again, which then counts once:
-- the three columns that tell rows apart are also the order in which they are read.
-- One partition per month (UTC), decision_audit_YYYYMM, made ahead by the running nodes.
CREATE TABLE decision_audit (
    at             BIGINT  NOT NULL,
    tenant_id      TEXT COLLATE "C" NOT NULL,
    request_id     TEXT COLLATE "C" NOT NULL,
    decision       TEXT COLLATE "C" NOT NULL,
    code           TEXT COLLATE "C" NOT NULL,
    status         BIGINT  NOT NULL,
    key_id         TEXT COLLATE "C",
    external_id    TEXT COLLATE "C",
    ip             TEXT COLLATE "C",
    method         TEXT COLLATE "C",
    endpoint       TEXT COLLATE "C",
    path           TEXT COLLATE "C",
    rule           TEXT COLLATE "C",
    limit_name     TEXT COLLATE "C",
    count          BIGINT,
    retry_after_ms BIGINT,
    node           TEXT COLLATE "C" NOT NULL,
    region         TEXT COLLATE "C",
    latency_us     BIGINT  NOT NULL,
    degraded       BOOLEAN NOT NULL
) PARTITION BY RANGE (at);

CREATE UNIQUE INDEX decision_audit_by_time ON decision_audit (tenant_id, at, request_id);
CREATE INDEX decision_audit_of_key ON decision_audit (tenant_id, key_id, at) WHERE key_id IS NOT NULL;
CREATE INDEX decision_audit_of_identity ON decision_audit (tenant_id, external_id, at) WHERE external_id IS NOT NULL;
CREATE INDEX decision_audit_by_decision ON decision_audit (tenant_id, decision, at);

-- The place of a row in its tenant's chain, and SHA-256 over the hash before it and the row. Rows from before this
-- step have no place; the first link of their tenant's chain covers them all.
ALTER TABLE admin_audit ADD COLUMN position BIGINT;
ALTER TABLE admin_audit ADD COLUMN hash BYTEA;

-- Not unique: what somebody changed behind our back is to be found, and must not stop the next change.
CREATE INDEX admin_audit_by_place ON admin_audit (tenant_id, position);

-- The end of each chain, so that a cut tail shows. The seal is made with a key that is not in this database.
CREATE TABLE admin_audit_heads (
    tenant_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position  BIGINT NOT NULL,
    hash      BYTEA  NOT NULL,
    seal      BYTEA
);

CREATE FUNCTION admin_audit_takes_new_rows_only() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'admin_audit takes new rows only';
END
$$;

CREATE FUNCTION admin_audit_takes_chained_rows_only() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.position IS NULL OR NEW.hash IS NULL THEN
        RAISE EXCEPTION 'admin_audit takes chained rows only';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER admin_audit_is_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_audit
    FOR EACH STATEMENT EXECUTE FUNCTION admin_audit_takes_new_rows_only();
CREATE TRIGGER admin_audit_is_chained BEFORE INSERT ON admin_audit
    FOR EACH ROW EXECUTE FUNCTION admin_audit_takes_chained_rows_only();

-- Also by grant: a role that is no superuser cannot even try, the owner included, until it grants itself the right.
REVOKE UPDATE, DELETE, TRUNCATE ON admin_audit FROM PUBLIC;
REVOKE UPDATE, DELETE, TRUNCATE ON admin_audit FROM CURRENT_USER;

-- Decisions added up by the minute, hour and day: counts by outcome, and a histogram of how long they took (l0 to l16,
-- by the bounds of account/src/histogram.rs). An empty text is "none given". Hours are made of minutes and days of hours.
-- One partition per month, as above.
CREATE TABLE metric_minute (
    time         BIGINT NOT NULL,
    tenant_id    TEXT COLLATE "C" NOT NULL,
    endpoint     TEXT COLLATE "C" NOT NULL,
    external_id  TEXT COLLATE "C" NOT NULL,
    region       TEXT COLLATE "C" NOT NULL,
    allowed      BIGINT NOT NULL,
    throttled    BIGINT NOT NULL,
    blocked      BIGINT NOT NULL,
    cache_hits   BIGINT NOT NULL,
    cache_misses BIGINT NOT NULL,
    l0           BIGINT NOT NULL,
    l1           BIGINT NOT NULL,
    l2           BIGINT NOT NULL,
    l3           BIGINT NOT NULL,
    l4           BIGINT NOT NULL,
    l5           BIGINT NOT NULL,
    l6           BIGINT NOT NULL,
    l7           BIGINT NOT NULL,
    l8           BIGINT NOT NULL,
    l9           BIGINT NOT NULL,
    l10          BIGINT NOT NULL,
    l11          BIGINT NOT NULL,
    l12          BIGINT NOT NULL,
    l13          BIGINT NOT NULL,
    l14          BIGINT NOT NULL,
    l15          BIGINT NOT NULL,
    l16          BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, time, endpoint, external_id, region)
) PARTITION BY RANGE (time);

CREATE TABLE metric_hour (
    time         BIGINT NOT NULL,
    tenant_id    TEXT COLLATE "C" NOT NULL,
    endpoint     TEXT COLLATE "C" NOT NULL,
    external_id  TEXT COLLATE "C" NOT NULL,
    region       TEXT COLLATE "C" NOT NULL,
    allowed      BIGINT NOT NULL,
    throttled    BIGINT NOT NULL,
    blocked      BIGINT NOT NULL,
    cache_hits   BIGINT NOT NULL,
    cache_misses BIGINT NOT NULL,
    l0           BIGINT NOT NULL,
    l1           BIGINT NOT NULL,
    l2           BIGINT NOT NULL,
    l3           BIGINT NOT NULL,
    l4           BIGINT NOT NULL,
    l5           BIGINT NOT NULL,
    l6           BIGINT NOT NULL,
    l7           BIGINT NOT NULL,
    l8           BIGINT NOT NULL,
    l9           BIGINT NOT NULL,
    l10          BIGINT NOT NULL,
    l11          BIGINT NOT NULL,
    l12          BIGINT NOT NULL,
    l13          BIGINT NOT NULL,
    l14          BIGINT NOT NULL,
    l15          BIGINT NOT NULL,
    l16          BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, time, endpoint, external_id, region)
) PARTITION BY RANGE (time);

CREATE TABLE metric_day (
    time         BIGINT NOT NULL,
    tenant_id    TEXT COLLATE "C" NOT NULL,
    endpoint     TEXT COLLATE "C" NOT NULL,
    external_id  TEXT COLLATE "C" NOT NULL,
    region       TEXT COLLATE "C" NOT NULL,
    allowed      BIGINT NOT NULL,
    throttled    BIGINT NOT NULL,
    blocked      BIGINT NOT NULL,
    cache_hits   BIGINT NOT NULL,
    cache_misses BIGINT NOT NULL,
    l0           BIGINT NOT NULL,
    l1           BIGINT NOT NULL,
    l2           BIGINT NOT NULL,
    l3           BIGINT NOT NULL,
    l4           BIGINT NOT NULL,
    l5           BIGINT NOT NULL,
    l6           BIGINT NOT NULL,
    l7           BIGINT NOT NULL,
    l8           BIGINT NOT NULL,
    l9           BIGINT NOT NULL,
    l10          BIGINT NOT NULL,
    l11          BIGINT NOT NULL,
    l12          BIGINT NOT NULL,
    l13          BIGINT NOT NULL,
    l14          BIGINT NOT NULL,
    l15          BIGINT NOT NULL,
    l16          BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, time, endpoint, external_id, region)
) PARTITION BY RANGE (time);

CREATE INDEX metric_minute_by_age ON metric_minute (time);
CREATE INDEX metric_hour_by_age ON metric_hour (time);
