-- Usage: what every process has told of every key and minute, and the sums of it by minute and by day.
-- minute is the start of a minute in unix ms, boot is 32 hex digits, date is YYYY-MM-DD in UTC. An empty key_id stands for
-- keys that had no room of their own. There are no references: a restored database may not know yet whose usage it is told.

-- The highest totals that were applied: what is told again, or late, adds only what is more.
CREATE TABLE usage_ledger (
    minute     BIGINT NOT NULL,
    boot       TEXT   NOT NULL,
    project_id TEXT   NOT NULL,
    key_id     TEXT   NOT NULL,
    requests   BIGINT NOT NULL,
    denied     BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    credits    BIGINT NOT NULL,
    PRIMARY KEY (minute, boot, project_id, key_id)
) WITHOUT ROWID;

CREATE TABLE usage_minute (
    project_id TEXT   NOT NULL,
    minute     BIGINT NOT NULL,
    key_id     TEXT   NOT NULL,
    requests   BIGINT NOT NULL,
    denied     BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    credits    BIGINT NOT NULL,
    PRIMARY KEY (project_id, minute, key_id)
) WITHOUT ROWID;

CREATE INDEX usage_minute_of_key ON usage_minute (key_id, minute);

CREATE TABLE usage_record (
    project_id TEXT   NOT NULL,
    date       TEXT   NOT NULL,
    key_id     TEXT   NOT NULL,
    requests   BIGINT NOT NULL,
    denied     BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    credits    BIGINT NOT NULL,
    PRIMARY KEY (project_id, date, key_id)
) WITHOUT ROWID;

CREATE INDEX usage_record_of_key ON usage_record (key_id, date);
